/// The watchdog's state of one exchange. It detects an exchange that stands still although it has work: bytes wait in
/// its socket, every byte of its body was received, or it is paused without a reason.
///
/// A value without a clock. Two checks in a row have to find the same standstill, since bytes may arrive at the very
/// moment of a check.
struct StallWatch {
    enum Verdict: Equatable {
        case none
        /// An internal fault: libcurl must process the exchange at once.
        case resume
        /// A repeated fault: the exchange must end with an error, so that it is retried.
        case end
    }

    /// The time without activity before an exchange is checked, in milliseconds.
    static let timeout: Int64 = 2_000
    /// The time between two checks, in milliseconds.
    static let interval: Int64 = 1_000
    /// The most resumptions in one standstill before the exchange is ended.
    private static let resumptionLimit = 2

    /// The time of the last activity when the standstill was first seen.
    private var seen: MonotonicTime?
    /// The number of resumptions since that activity.
    private var resumptions = 0

    /// - Parameters:
    ///   - lastActivity: the time at which a byte was last received or sent, or a pause ended.
    ///   - hasWork: whether something waits for the exchange now.
    mutating func look(lastActivity: MonotonicTime, hasWork: Bool) -> Verdict {
        guard hasWork else {
            seen = nil
            resumptions = 0
            return .none
        }
        guard seen == lastActivity else {
            seen = lastActivity
            resumptions = 0
            return .none
        }
        resumptions += 1
        return resumptions > Self.resumptionLimit ? .end : .resume
    }
}
