import Curl
import Glibc
import HTTPTypes

/// A starter of a run's exchanges, one at a time: it resolves the names, sets the options and hands the exchange to
/// libcurl.
///
/// Used on the loop's thread only.
final class ExchangeLauncher {
    /// The maximum number of bytes of the target and the field lines of a request without a body.
    private static let longestHead = 128 * 1024

    private unowned let core: LoopCore
    private let session: Session
    var task: any LoopTask
    /// The number of launches and cancellations, by which late replies of the resolver are recognised and ignored.
    private var attempt = 0
    private var timer: Int?
    private var proceed: ((Resolver.Answer?) -> Void)?
    /// The pending query to the resolver.
    private var question: Resolver.Question?
    /// Whether the latest exchange is for a further connection of a download.
    private var isFurther = false
    /// The wait of the request for its turn at its host.
    private var turn: RequestTurn?
    private var exchangeID: Int?
    /// The URL of the latest exchange.
    private var url: CurlURL?
    /// The route of the latest exchange.
    private var route: RouteLookup?
    /// The address check of the latest exchange.
    private var evaluator: AddressEvaluator
    private var launchedAt = MonotonicTime.now()
    /// The duration of the latest exchange's name resolution in microseconds; `nil` if the addresses were known.
    private(set) var lookup: Int64?
    /// The duration of the latest exchange's wait for its turn in microseconds.
    private(set) var turnWait: Int64 = 0

    /// Creates a launcher.
    init(core: LoopCore, task: any LoopTask) {
        self.core = core
        self.task = task
        session = task.session
        evaluator = AddressEvaluator(session.configuration, task.originalRequest)
    }

    /// Resolves the names and starts an exchange.
    ///
    /// - Parameters:
    ///   - isFurther: whether the exchange is for a further connection of a download.
    ///   - failed: called if the exchange cannot be started.
    func launch(
        _ options: RequestOptions, isFurther: Bool, handler: any ExchangeHandler,
        failed: @escaping (TransferError) -> Void
    ) {
        attempt += 1
        self.isFurther = isFurther
        url = options.url
        lookup = nil
        turnWait = 0
        launchedAt = .now()
        let proxy = ProxyOptions(configuration: session.configuration, request: options.request, to: options.url)
        evaluator = AddressEvaluator(session.configuration, options.request, proxy: proxy)
        do throws(TransferError) {
            let route = try RouteLookup(
                to: (options.url.host, options.url.port), proxy: proxy.url, evaluator: evaluator)
            try lookUp(route, options, handler, failed)
        } catch {
            failed(error)
        }
    }

    /// Resolves the next name without addresses, or connects if there is none.
    private func lookUp(
        _ route: RouteLookup, _ options: RequestOptions, _ handler: any ExchangeHandler,
        _ failed: @escaping (TransferError) -> Void
    ) throws(TransferError) {
        while let host = route.next {
            guard let known = session.resolver.cached(host) else {
                return ask(for: host, on: route, options, handler, failed)
            }
            try route.found(known)
        }
        // Name resolution takes a varying time, so the turn is taken after it.
        turn = RequestTurn.wait(at: options.url.origin, isFurther: isFurther, of: task, on: core) {
            [unowned self] in
            turnWait = turn?.waited ?? 0
            turn = nil
            start(options, route, handler, failed)
        }
        if turn == nil { start(options, route, handler, failed) }
    }

    /// Whether the request waits for its turn at its host.
    var awaitsTurn: Bool { turn != nil }

    private func ask(
        for host: String, on route: RouteLookup, _ options: RequestOptions, _ handler: any ExchangeHandler,
        _ failed: @escaping (TransferError) -> Void
    ) {
        // The run holds this launcher, and the launcher holds the closure. It is released when the reply arrives or the
        // run ends.
        proceed = { [unowned self] answer in
            do throws(TransferError) {
                switch answer {
                case .success(let addresses):
                    try route.found(addresses)
                    try lookUp(route, options, handler, failed)
                case .failure(let failure): throw Self.error(failure, host: host, for: options.url.host)
                case nil: throw TransferError(.timedOut, "looking up \(host) took too long")
                }
            } catch {
                failed(error)
            }
        }
        let attempt = attempt
        let limit =
            session.configuration.connectTimeout(of: options.request)
            - MonotonicTime.now().milliseconds(since: launchedAt)
        timer = core.after(milliseconds: limit) { [weak self] in self?.resolved(nil, attempt: attempt) }
        let launcher = LoopReference(self, on: core)
        let asker = Resolver.Asker(options.request, of: task)
        question = session.resolver.resolve(host, for: asker) { answer in
            launcher.perform { $0.resolved(answer, attempt: attempt) }
        }
    }

    /// Continues after the resolver's reply.
    ///
    /// - Parameter answer: the reply; `nil` after the time-out.
    private func resolved(_ answer: Resolver.Answer?, attempt: Int) {
        guard attempt == self.attempt, let proceed else { return }
        lookup = Int64((MonotonicTime.now().nanoseconds - launchedAt.nanoseconds) / 1000)
        self.proceed = nil
        question = nil
        if let timer { core.cancelTimer(timer) }
        timer = nil
        proceed(answer)
    }

    private func start(
        _ options: RequestOptions, _ route: RouteLookup, _ handler: any ExchangeHandler,
        _ failed: (TransferError) -> Void
    ) {
        self.route = route
        var options = options
        options.receiveBuffer = min(options.receiveBuffer, session.resources.receiveBuffer(on: core))
        let evaluatesAddresses = evaluator.evaluatesSockets
        let lines = options.fieldLines()
        let head = lines.reduce(options.url.target.utf8.count) { $0 + $1.utf8.count }
        // libcurl 7.88 never sends the rest of such a head if the kernel takes a part of it only.
        if head > Self.longestHead, !options.sendsBody {
            let words = "the URL and the header fields have \(head) bytes, more than \(Self.longestHead)"
            return failed(TransferError(.invalidRequest, words))
        }
        do throws(CurlError) {
            exchangeID = try core.start(handler: handler) { (exchange: Exchange) throws(CurlError) in
                try options.apply(to: exchange, lines: lines, route: route)
                if evaluatesAddresses {
                    try exchange.evaluatesAddresses()
                    exchange.evaluatesConnectedAddresses()
                }
            }
        } catch {
            failed(TransferError(.invalidRequest, "libcurl rejected the request: \(error.message)"))
        }
    }

    /// Checks whether the exchange may connect to an address.
    func allows(_ address: UnsafeRawBufferPointer) -> Bool { evaluator.allows(address) }

    /// Checks whether the exchange may use a connection to an address.
    func allowsConnection(to address: String) -> Bool { evaluator.allowsConnection(to: address) }

    /// Whether the latest exchange ended because the connection that libcurl chose for it leads to a denied address.
    var refusedConnection: Bool { evaluator.refusedConnection }

    /// Cancels the current lookup, wait or exchange.
    ///
    /// - Returns: whether an exchange was cancelled; its handler has then been notified.
    func cancel() -> Bool {
        attempt += 1
        proceed = nil
        question = nil
        if let timer { core.cancelTimer(timer) }
        timer = nil
        turn?.stop()
        turn = nil
        guard let id = exchangeID, core.exchange(id) != nil else { return false }
        core.cancel(id)
        return true
    }

    /// The current exchange; `nil` where there is none.
    var exchange: Exchange? { exchangeID.flatMap { core.exchange($0) } }

    /// The address and port of the current exchange's connection; `nil` where there is none.
    var peerAddress: String? { exchange?.easy.peerAddress() }

    /// Resumes the current exchange after a pause.
    func unpause() {
        guard let id = exchangeID else { return }
        core.exchange(id)?.unpause()
    }

    /// Returns the error of an exchange that ended; `nil` if libcurl reports success.
    ///
    /// - Parameter bodyBegun: whether bytes of a body were received or sent.
    func error(for ending: ExchangeEnding, of exchange: Exchange, bodyBegun: Bool) -> TransferError? {
        switch ending {
        case .finished: return nil
        case .cancelled: return .cancelled
        case .stalled:
            let time = TransferError.duration(exchange.activity.stallTimeout)
            return TransferError(.stalled, "no data, or too little, for \(time)")
        case .failed(let error):
            let host = url?.host ?? "the server"
            let peer = route?.peer
            // CURLE_COULDNT_CONNECT and CURLE_PROXY: no address responded.
            if error.code == .couldntConnect || error.code == .proxy { route?.forget(in: session.resolver) }
            if let refusal = evaluator.error(peer?.host ?? host) { return refusal }
            let words = exchange.failureText.map { CurlError(error, message: $0) } ?? error
            if let peer, let url {
                let server = (url.host, url.port)
                let proxy = ProxyOptions(
                    configuration: session.configuration, request: task.originalRequest, to: url)
                if proxy.hasLogin, let origin = proxy.origin, exchange.indicatesImpatientProxy(words),
                    !session.resources.isImpatient(proxy: origin)
                {
                    session.resources.recordImpatience(ofProxy: origin)
                    return .impatientProxy(origin).caused(by: words)
                }
                let error =
                    TransferError.plainHTTPResponse(words, exchange, to: peer, for: server)
                    ?? .connecting(words, exchange, to: peer, for: server, by: proxy)
                if let error {
                    return error.blamed(on: proxy.url, exchange, peer: peer, server: server).caused(by: words)
                }
            }
            return .exchange(words, bodyBegun: bodyBegun, host: host).caused(by: words)
        }
    }

    /// Returns the error for a failed name resolution.
    ///
    /// - Parameters:
    ///   - host: the name that was resolved.
    ///   - server: the host of the request's URL. If it differs from `host`, `host` is its proxy.
    static func error(_ failure: Resolver.Failure, host: String, for server: String) -> TransferError {
        let host = (host == server ? "" : "of the proxy ") + host
        return switch failure {
        case .unknownName: TransferError(.unknownHost, "the name \(host) does not resolve")
        case .unavailable: TransferError(.resolverUnavailable, "no name server answers (looking up \(host))")
        case .other(let words): TransferError(.unknownHost, "looking up \(host) failed: \(words)")
        }
    }
}
