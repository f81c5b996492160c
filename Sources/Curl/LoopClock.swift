/// The time of a loop's current turn.
///
/// An object of its own, so that an exchange reads it in libcurl's callbacks without a reference to its loop.
final class LoopClock {
    var now = MonotonicTime.now()
}
