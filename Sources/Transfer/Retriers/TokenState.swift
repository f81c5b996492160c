import Curl

/// A limit on how often a token may be refreshed.
public struct RefreshLimit: Sendable, Equatable {
    /// The maximum number of refreshes that may begin within ``interval``.
    public var count: Int
    /// The length of the interval, in milliseconds.
    public var interval: Int64

    /// Creates a limit; by default five refreshes within 30 s.
    public init(count: Int = 5, interval: Int64 = 30_000) {
        self.count = count
        self.interval = interval
    }
}

/// The present token and the state of its refreshes. The type has no clock: callers pass the time.
struct TokenState<Token: Sendable> {
    private(set) var token: Token?
    /// A counter of token changes, which tells tokens apart without comparing them; 0 before the first.
    private(set) var generation = 0
    private(set) var isRefreshing = false
    private let limit: RefreshLimit
    /// The start times of the last refreshes, at most as many as the limit.
    private var begun: [MonotonicTime] = []

    enum Step {
        case use(Token, generation: Int)
        /// A refresh is under way.
        case wait
        /// The caller begins a refresh and waits for it.
        case refresh
        /// The refresh limit is reached.
        case refuse
    }

    init(token: Token?, limit: RefreshLimit) {
        self.limit = limit
        if let token { set(token) }
    }

    mutating func set(_ token: Token?) {
        self.token = token
        generation += 1
    }

    /// Decides what a request that needs a token has to do.
    ///
    /// - Parameter outdated: the generation that was found outdated, 0 for a request without a token; `nil` before an
    ///   attempt.
    mutating func ask(outdated: Int?, now: MonotonicTime) -> Step {
        if isRefreshing { return .wait }
        if let token, outdated.map({ $0 < generation }) ?? true { return .use(token, generation: generation) }
        begun = begun.filter { now.milliseconds(since: $0) < limit.interval }
        guard begun.count < limit.count else { return .refuse }
        begun.append(now)
        isRefreshing = true
        return .refresh
    }

    /// Ends the refresh.
    ///
    /// - Parameter token: the new token; `nil` if the refresh failed: the old token is then kept.
    mutating func finish(_ token: Token?) {
        isRefreshing = false
        if let token { set(token) }
    }
}
