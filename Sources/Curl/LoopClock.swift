/// The time of a loop's current turn.
///
/// An object of its own, so that an exchange reads it in libcurl's callbacks without a reference to its loop.
package final class LoopClock {
    // Read for each chunk of a body, and written between two turns.
    @exclusivity(unchecked) package internal(set) var now = MonotonicTime.now()
}
