import HTTPTypes
import Synchronization
public import Transfer

/// A substitute for HTTP servers in tests of code that uses `Transfer`. No name is resolved and no connection is made.
///
///     let stub = StubTransport()
///     stub.on("GET", "https://api.example.org/users") { _ in .json([User(name: "Ada")]) }
///
///     var configuration = SessionConfiguration()
///     configuration.transportStub = stub
///     let manager = try SessionManager(configuration: configuration)
///     let users = try await manager.request("https://api.example.org/users").decoded(as: [User].self)
///     #expect(stub.requests("GET", "https://api.example.org/users").count == 1)
///
/// Redirects, challenges, cookies, the cache, validation, retries and the resumption of downloads work as with a
/// server. A request for which there is no rule fails with ``TransferError/Code/invalidRequest``, or goes to the
/// network, as ``StubTransport/Unexpected`` says.
public final class StubTransport: StubResponder {
    /// The treatment of a request for which there is no rule.
    public enum Unexpected: Sendable {
        /// The request fails with ``TransferError/Code/invalidRequest``, which no retrier of the library repeats.
        case fail
        /// The request goes to the network.
        case network
    }

    /// A closure that returns the result of a request. An error that it throws becomes the result.
    public typealias Handler = @Sendable (SentRequest) async throws -> StubResult

    private struct Rule {
        let pattern: RequestPattern
        let handler: Handler
    }

    private struct State {
        /// The rules in the order in which they were added; the latest that matches applies.
        var rules: [Rule] = []
        var requests: [SentRequest] = []
        var unexpected: [SentRequest] = []
    }

    private let state = Mutex(State())
    private let treatment: Unexpected

    /// Creates a stub without rules.
    ///
    /// - Parameter unexpected: the treatment of a request for which there is no rule.
    public init(unexpected: Unexpected = .fail) {
        treatment = unexpected
    }

    // MARK: Rules

    /// Adds a rule. Of several rules that match a request, the one added last applies.
    ///
    /// | URL of the rule | matches |
    /// |---|---|
    /// | `https://host/path` or `https://host/path?*` | this path with any query, and without one |
    /// | `https://host/path?page=2` | exactly this query; the order of its pairs counts |
    /// | `https://host/path?*page=2*` | a query that contains `page=2` |
    /// | `https://host/path?` | this path without a query |
    /// | `https://host/*/photo`, `https://*.host/*`, `*` | any text in place of each `*`, also with slashes |
    ///
    /// Notations of one URL are equal: `HTTPS://Host:443` and `https://host/`. Fragments do not count.
    ///
    /// - Parameters:
    ///   - method: the method, such as `GET`; `nil` for any method.
    ///   - url: an absolute URL, in which a `*` stands for any text.
    ///   - handler: returns the result, such as `.json("[]")`. It may wait.
    @discardableResult
    public func on(_ method: String?, _ url: String, _ handler: @escaping Handler) -> Self {
        let rule = Rule(pattern: RequestPattern(method: method, url: url), handler: handler)
        state.withLock { $0.rules.append(rule) }
        return self
    }

    /// Adds a rule whose results are used one after another, for example a failure and then a success. The last one is
    /// repeated.
    ///
    /// - Parameters:
    ///   - method: the method, such as `GET`; `nil` for any method.
    ///   - url: an absolute URL, as in ``on(_:_:_:)``.
    ///   - results: the results in order. Without any, the request fails as one without a rule does.
    @discardableResult
    public func on(_ method: String?, _ url: String, inOrder results: [StubResult]) -> Self {
        let rest = Mutex(results[...])
        return on(method, url) { request in
            let next = rest.withLock { rest in rest.count > 1 ? rest.popFirst() : rest.first }
            guard let next else { throw Self.unexpected(request) }
            return next
        }
    }

    /// Removes all rules and records.
    public func removeAll() { state.withLock { $0 = State() } }

    // MARK: Records

    /// The requests that were received, in order, with and without a rule. Bodies are included.
    public var requests: [SentRequest] { state.withLock { $0.requests } }

    /// The requests for which there was no rule, in order.
    public var unexpectedRequests: [SentRequest] { state.withLock { $0.unexpected } }

    /// Returns the received requests that match a method and a URL, in order.
    ///
    /// - Parameters:
    ///   - method: the method, such as `GET`; `nil` for any method.
    ///   - url: an absolute URL, as in ``on(_:_:_:)``.
    public func requests(_ method: String?, _ url: String) -> [SentRequest] {
        let pattern = RequestPattern(method: method, url: url)
        return requests.filter(pattern.matches)
    }

    // MARK: From the engine

    public func result(of request: SentRequest) async -> StubResult {
        let handler = state.withLock { state -> Handler? in
            state.requests.append(request)
            let rule = state.rules.last { $0.pattern.matches(request) }
            if rule == nil { state.unexpected.append(request) }
            return rule?.handler
        }
        guard let handler else {
            switch treatment {
            case .fail: return .failure(Self.unexpected(request))
            case .network: return .network
            }
        }
        do {
            return try await handler(request)
        } catch let error as TransferError {
            return .failure(error)
        } catch {
            return .failure(TransferError(.internal, "the handler of the stub failed: \(error)", underlying: error))
        }
    }

    private static func unexpected(_ request: SentRequest) -> TransferError {
        let request = TransferRequest(url: request.url, method: request.method)
        return TransferError(.invalidRequest, "the stub has no rule for \(request)")
    }
}
