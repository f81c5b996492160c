import Logging
import Synchronization
import Transfer

/// A factory of the sessions for transfers: one at the start, and a new one each time a setting changes that is fixed
/// when a session is created.
final class SessionMaker: Sendable {
    /// The rate limiters that all sessions share.
    let limiters = (download: RateLimiter(), upload: RateLimiter())
    /// The limit on requests per second that all sessions share.
    private let requestPacer = RequestPacer()
    /// The number of transfers in all sessions that stood still without cause and were restarted; see
    /// `Session.internalFaults`.
    let internalFaults = Atomic<Int>(0)
    private let agent: String
    private let logger: Logger
    private let base: Mutex<SessionConfiguration>
    /// Whether the denied networks do not apply to webhooks, by the settings of the latest session.
    private let exemptsWebhooks = Atomic<Bool>(false)

    /// Creates the factory.
    ///
    /// - Parameters:
    ///   - base: the session configuration, apart from the queue's settings.
    ///   - agent: the `User-Agent` of tasks that set none.
    init(_ base: SessionConfiguration, agent: String, logger: Logger) {
        self.base = Mutex(base)
        self.agent = agent
        self.logger = logger
    }

    func make(_ settings: QueueSettings) throws(TransferError) -> SessionManager {
        try make(settings, base.withLock { $0 })
    }

    /// Creates a new session after a change of settings.
    ///
    /// - Returns: `nil` where the existing session can stay in use.
    func remake(
        _ settings: QueueSettings, _ changed: SessionConfiguration, unless former: QueueSettings
    ) throws(TransferError) -> SessionManager? {
        let before = base.withLock { $0 }
        let isSame =
            before.connectTimeout == changed.connectTimeout && before.stallTimeout == changed.stallTimeout
            && before.connectTimeouts == changed.connectTimeouts && before.stallTimeouts == changed.stallTimeouts
            && before.proxy == changed.proxy && before.proxyExceptions == changed.proxyExceptions
            && before.hostProxies == changed.hostProxies && before.deniedNetworks == changed.deniedNetworks
            && before.caFile == changed.caFile && before.hostTrust == changed.hostTrust
            && former.connectionsPerHost == settings.connectionsPerHost
            && former.networkExemption.includesConfiguration == settings.networkExemption.includesConfiguration
            && former.hostConnections == settings.hostConnections && former.httpVersions == settings.httpVersions
        if isSame {
            requestPacer.rates = settings.hostRequestRates
            return nil
        }
        let manager = try make(settings, changed)
        base.withLock { $0 = changed }
        return manager
    }

    /// Creates a session for webhooks. Their URLs are the administrator's, so an exemption of administrators applies.
    func makeForWebhooks() throws(TransferError) -> SessionManager {
        var session = base.withLock { $0 }
        session.cookieStorage = nil
        session.responseCache = nil
        if exemptsWebhooks.load(ordering: .relaxed) { session.deniedNetworks = [] }
        session.loops = 1
        // Each sender limits its messages. A receiver that hangs must leave others on its host their connections.
        session.maximumConnectionsPerHost = nil
        session.connectionLimits = HostTable()
        return try SessionManager(configuration: session)
    }

    private func make(
        _ settings: QueueSettings, _ base: SessionConfiguration
    ) throws(TransferError) -> SessionManager {
        var session = base
        // Tasks of many owners share the session, so cookies and cached responses of one task must not reach another.
        session.cookieStorage = nil
        session.responseCache = nil
        session.maximumConnectionsPerHost = settings.connectionsPerHost
        session.connectionLimits = settings.hostConnections
        session.httpVersions = settings.httpVersions
        session.downloadLimiter = limiters.download
        session.uploadLimiter = limiters.upload
        session.hostRates = settings.hostRates
        session.requestPacer = requestPacer
        session.checkpointInterval = CheckpointQueue.bytes
        session.checkpointLimit = CheckpointQueue.mostBytesAhead
        let manager = try SessionManager(configuration: session, startRequestsImmediately: false)
        requestPacer.rates = settings.hostRequestRates
        exemptsWebhooks.store(settings.networkExemption.includesConfiguration, ordering: .relaxed)
        manager.adapter = AgentAdapter(agent: agent)
        manager.retrier = InterruptionRetrier(policy: settings.retry)
        manager.delegate.sessionDidFindFault = { [weak self, logger] description in
            self?.internalFaults.wrappingAdd(1, ordering: .relaxed)
            logger.error("internal error: a transfer stalled and was resumed", metadata: ["transfer": "\(description)"])
        }
        return manager
    }
}
