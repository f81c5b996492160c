/// The watchdog's judgement of one exchange that stands still although it has work: bytes wait in its socket, every byte
/// of its body is there, or it is paused without a reason.
///
/// A value without a clock. Two looks in a row have to find the same standstill, since bytes may arrive at the very
/// moment of one look.
struct ForgottenExchange {
    enum Verdict: Equatable {
        case none
        /// An internal fault: libcurl is to look at the exchange at once.
        case kick
        /// Kicking did not help: the exchange is to end with an error, so that it is tried again.
        case end
    }

    /// Milliseconds without activity before an exchange is looked at.
    static let patience: Int64 = 2_000
    /// Milliseconds between two looks.
    static let interval: Int64 = 1_000
    /// Kicks of one standstill before the exchange is ended.
    private static let kickLimit = 2

    /// The last activity when the standstill was first seen.
    private var seen: MonotonicTime?
    /// Kicks since that activity.
    private var kicks = 0

    /// - Parameters:
    ///   - lastActivity: when a byte last came or went, or a pause ended.
    ///   - hasWork: whether something waits for the exchange now.
    mutating func look(lastActivity: MonotonicTime, hasWork: Bool) -> Verdict {
        guard hasWork else {
            seen = nil
            kicks = 0
            return .none
        }
        guard seen == lastActivity else {
            seen = lastActivity
            kicks = 0
            return .none
        }
        kicks += 1
        return kicks > Self.kickLimit ? .end : .kick
    }
}
