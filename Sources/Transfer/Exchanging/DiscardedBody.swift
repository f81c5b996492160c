/// The byte accounting of a response body that is discarded because only the status matters. The body is read as long
/// as that is cheaper than another connection.
struct DiscardedBody {
    enum Verdict: Equatable {
        case goesOn
        /// The rest would cost more than another connection.
        case isEnough
        /// The server reads little of the request but sends much.
        case isTooMuch
    }

    /// The maximum number of bytes read after the request was sent, and the allowance before that.
    static let limit: Int64 = 64 << 10
    /// The maximum number of response bytes per request byte while the request is being sent. Some servers echo the
    /// request.
    private static let largestEcho: Int64 = 4
    /// The time limit for the body in milliseconds if the session has no stall timeout.
    static let longestDuration: Int64 = 60_000

    /// The number of bytes received before the request was completely sent, and after that.
    private var early: Int64 = 0
    private var late: Int64 = 0
    /// Whether this client ended the response.
    private(set) var isOver = false

    /// Counts received bytes.
    ///
    /// - Parameter sent: the number of request bytes sent so far; `nil` once all are sent.
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
