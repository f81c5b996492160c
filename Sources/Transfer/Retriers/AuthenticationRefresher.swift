import Curl
import Synchronization

/// A scheme for authenticating requests with a token, and for obtaining a new token.
public protocol TokenAuthentication: Sendable {
    /// The token that authenticates a request.
    associatedtype Token: Sendable

    /// Adds the token to a request, usually in its `Authorization` field.
    func apply(_ token: Token, to request: inout TransferRequest)
    /// Returns whether a failure means that the token is no longer valid; by default status 401.
    func isUnauthorised(_ error: TransferError) -> Bool
    /// Obtains a new token. Calls never overlap. A call is not cancelled when the requests that wait for it are, since
    /// the server may already have revoked the old token. So it has to end by itself.
    ///
    /// The call must not use a manager whose requests wait for the token: the adapter would let the request for the
    /// new token wait for the new token, so that neither would ever end.
    func refresh() async throws -> Token
}

extension TokenAuthentication {
    public func isUnauthorised(_ error: TransferError) -> Bool { error.httpStatus == 401 }
}

/// A retrier and adapter that adds a token to requests and refreshes it when it is outdated. It refreshes the token
/// once, however many requests find it outdated.
///
/// While a refresh runs, attempts wait for it. A request that failed with an older token is retried with the present
/// one, without a refresh. A failed refresh fails all requests that wait for it, with
/// ``TransferError/Code/authenticationFailed``. A data or upload request fails with status 401 only if it is validated.
///
/// Use it both as adapter and as retrier. Next to a ``DefaultRetrier`` it comes second, so that a request that has
/// waited for its host gets the newest token.
///
///     manager.intercept(with: AuthenticationRefresher(MyTokens()))
public final class AuthenticationRefresher<Authentication: TokenAuthentication>: RequestInterceptor {
    /// The token type of ``authentication``.
    public typealias Token = Authentication.Token
    private typealias Answer = Result<(token: Token, generation: Int), TransferError>

    /// The scheme that adds tokens to requests and obtains new ones.
    public let authentication: Authentication

    private struct State {
        var tokens: TokenState<Token>
        var waiting: [Int: CheckedContinuation<Answer, Never>] = [:]
        var last = 0
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> MonotonicTime

    /// - Parameters:
    ///   - authentication: adds tokens to requests and obtains new ones.
    ///   - token: the initial token. Without it the first attempt waits for a refresh.
    ///   - limit: beyond it, requests fail instead of refreshing the token.
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

    /// The present token. A token that is set is newer than the tokens of all requests under way.
    public var token: Token? {
        get { state.withLock { $0.tokens.token } }
        set { state.withLock { $0.tokens.set(newValue) } }
    }

    // MARK: As adapter

    /// - Throws: ``TransferError/Code/authenticationFailed`` if no token can be obtained.
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

    // MARK: The shared refresh

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
            // A cancellation that came earlier found no waiting continuation.
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
            // The message of another error type may contain anything, even the token.
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
    /// The number of consecutive responses without progress that may reject a request's token as outdated and be
    /// followed by a retry. After one more, the request fails with the response's error.
    public static let perRequest = 3
}
