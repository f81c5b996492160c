import Curl
import Synchronization

/// How requests show a token, and where a new one comes from.
public protocol TokenAuthentication: Sendable {
    /// What a request shows to say who asks.
    associatedtype Token: Sendable

    /// Puts the token on a request, as a rule into its `Authorization`.
    func apply(_ token: Token, to request: inout TransferRequest)
    /// Whether a failure says that the token no longer counts; by default status 401.
    func isUnauthorised(_ error: TransferError) -> Bool
    /// Gets a new token. Called by one at a time; it is not cancelled when those who wait are, since a server may have
    /// taken the old token back already. It has to come to an end by itself.
    func refresh() async throws -> Token
}

extension TokenAuthentication {
    public func isUnauthorised(_ error: TransferError) -> Bool { error.httpStatus == 401 }
}

/// Puts a token on requests, and gets a new one when it is outdated: once, however many requests find that out.
///
/// While a refresh runs, attempts wait for it. A request that failed with a token older than the present one is tried
/// again with that, and nothing is refreshed. A refresh that fails fails everyone who waits, with
/// ``TransferError/Code/authenticationFailed``. A data or upload request hears of a 401 only where it is validated.
///
/// Use it as both, adapter and retrier. Beside a ``DefaultRetrier`` it comes second: so a request that has waited for
/// its host carries the newest token.
///
///     manager.intercept(with: AuthenticationRefresher(MyTokens()))
public final class AuthenticationRefresher<Authentication: TokenAuthentication>: RequestInterceptor {
    /// That of ``authentication``.
    public typealias Token = Authentication.Token
    private typealias Answer = Result<(token: Token, generation: Int), TransferError>

    /// Puts tokens on requests and gets new ones.
    public let authentication: Authentication

    private struct State {
        var tokens: TokenState<Token>
        var waiting: [Int: CheckedContinuation<Answer, Never>] = [:]
        var last = 0
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> MonotonicTime

    /// - Parameters:
    ///   - authentication: puts tokens on requests and gets new ones.
    ///   - token: absent: the first attempt waits for one.
    ///   - limit: past it requests fail rather than refresh.
    public convenience init(_ authentication: Authentication, token: Token? = nil, limit: RefreshLimit = RefreshLimit())
    {
        self.init(authentication, token: token, limit: limit, now: { MonotonicTime.now() })
    }

    init(
        _ authentication: Authentication, token: Token?, limit: RefreshLimit,
        now: @escaping @Sendable () -> MonotonicTime
    ) {
        self.authentication = authentication
        self.now = now
        state = Mutex(State(tokens: TokenState(token: token, limit: limit)))
    }

    /// The present token. Setting one counts as newer than all that requests are under way with.
    public var token: Token? {
        get { state.withLock { $0.tokens.token } }
        set { state.withLock { $0.tokens.set(newValue) } }
    }

    // MARK: As adapter

    /// - Throws: ``TransferError/Code/authenticationFailed`` where there is no token to be had.
    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        let (token, generation) = try await answer(outdated: nil).get()
        var request = request
        authentication.apply(token, to: &request)
        request.tokenGenerations[ObjectIdentifier(self)] = generation
        return request
    }

    // MARK: As retrier

    public func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        guard authentication.isUnauthorised(error) else { return .doNotRetry }
        let kept = request.keptBytes
        let refreshes = request.retryRecord.withLock { record in
            record.refresh(kept: kept)
            return record.refreshes
        }
        guard refreshes <= RefreshLimit.perRequest else { return .doNotRetry }
        let used = request.task?.originalRequest.tokenGenerations[ObjectIdentifier(self)] ?? 0
        switch await answer(outdated: used) {
        case .success: return .retry(after: 0)
        case .failure(var failure):
            failure.httpStatus = error.httpStatus
            return .fail(failure)
        }
    }

    // MARK: The refresh that all share

    private nonisolated(nonsending) func answer(outdated: Int?) async -> Answer {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in ask(outdated, as: number, continuation) }
        } onCancel: {
            let continuation = state.withLock { $0.waiting.removeValue(forKey: number) }
            continuation?.resume(returning: .failure(.cancelled))
        }
    }

    private func ask(_ outdated: Int?, as number: Int, _ continuation: CheckedContinuation<Answer, Never>) {
        let now = now()
        let step = state.withLock { state -> TokenState<Token>.Step? in
            // A cancellation that came before found nobody waiting.
            if Task.isCancelled { return nil }
            let step = state.tokens.ask(outdated: outdated, now: now)
            switch step {
            case .wait, .refresh: state.waiting[number] = continuation
            case .use, .refuse: break
            }
            return step
        }
        switch step {
        case .use(let token, let generation): continuation.resume(returning: .success((token, generation)))
        case .wait: break
        case .refresh: Task { await refresh() }
        case .refuse:
            continuation.resume(
                returning: .failure(TransferError(.authenticationFailed, "the token was refreshed too often")))
        case nil: continuation.resume(returning: .failure(.cancelled))
        }
    }

    private func refresh() async {
        let result: Result<Token, TransferError>
        do {
            result = .success(try await authentication.refresh())
        } catch {
            // Another type's own words may say anything at all, the token too.
            let words = (error as? TransferError).map { ": \($0.message)" } ?? ""
            result = .failure(
                TransferError(.authenticationFailed, "the token could not be refreshed\(words)", underlying: error))
        }
        let (answer, waiting) = state.withLock { state -> (Answer, [CheckedContinuation<Answer, Never>]) in
            defer { state.waiting = [:] }
            state.tokens.finish(try? result.get())
            let generation = state.tokens.generation
            return (result.map { ($0, generation) }, Array(state.waiting.values))
        }
        for continuation in waiting { continuation.resume(returning: answer) }
    }
}

extension RefreshLimit {
    /// Answers in a row that call a request's token outdated, without progress between them, until it fails with them.
    public static let perRequest = 3
}
