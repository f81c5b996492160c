/// The body of an answer whose status is all that counts: read as far as its connection is worth, and not as far as its
/// server likes.
struct OverlookedBody {
    enum Verdict: Equatable {
        case goesOn
        /// The rest would cost more than another connection.
        case isEnough
        /// A server that takes little and says much.
        case isTooMuch
    }

    /// Bytes.
    static let limit: Int64 = 64 << 10
    /// Bytes of an answer for each that was sent, while there are more to send: some servers show what they are sent.
    private static let largestEcho: Int64 = 4
    /// Milliseconds that the body may take where nothing else says.
    static let patience: Int64 = 60_000

    /// Bytes before all was sent, and after that.
    private var early: Int64 = 0
    private var late: Int64 = 0
    /// It was ended by us.
    private(set) var isOver = false

    /// - Parameter sent: bytes of the request so far, where there are more to send.
    mutating func pass(_ count: Int, sent: Int64?) -> Verdict {
        guard let sent else {
            late += Int64(count)
            guard late > Self.limit else { return .goesOn }
            isOver = true
            return .isEnough
        }
        early += Int64(count)
        let (echo, isBeyond) = sent.multipliedReportingOverflow(by: Self.largestEcho)
        return isBeyond || early - Self.limit <= echo ? .goesOn : .isTooMuch
    }

    mutating func end() { isOver = true }
}
