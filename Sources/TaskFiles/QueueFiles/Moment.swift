import TaskModel

/// The reference for a time given without a date or a zone.
struct Moment: Sendable {
    var now: Milliseconds
    var utcOffset: @Sendable (Milliseconds) -> Int
}
