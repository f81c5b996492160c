import Curl

/// How often a token may be refreshed.
public struct RefreshLimit: Sendable, Equatable {
    /// Refreshes that may begin within ``interval``.
    public var count: Int
    /// Milliseconds in which no more than `count` refreshes begin.
    public var interval: Int64

    /// Five refreshes within 30 s, unless said otherwise.
    public init(count: Int = 5, interval: Int64 = 30_000) {
        self.count = count
        self.interval = interval
    }
}

/// Which token there is, and when a new one is due. A value without a clock: times are handed in.
struct TokenState<Token: Sendable> {
    private(set) var token: Token?
    /// Counts tokens, so that one can be told from a later one without comparing them; 0: there has been none.
    private(set) var generation = 0
    private(set) var isRefreshing = false
    private let limit: RefreshLimit
    /// When the last refreshes began, at most as many as the limit.
    private var begun: [MonotonicTime] = []

    enum Step {
        case use(Token, generation: Int)
        /// A refresh is under way.
        case wait
        /// The caller begins a refresh, and waits for it.
        case refresh
        /// There have been too many.
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

    /// Somebody wants a token.
    ///
    /// - Parameter outdated: the generation that was found outdated, 0 for a request that had none; `nil`: before an
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

    /// The refresh is at its end.
    ///
    /// - Parameter token: `nil` where it failed: the old one stays, for what can still be done with it.
    mutating func finish(_ token: Token?) {
        isRefreshing = false
        if let token { set(token) }
    }
}
