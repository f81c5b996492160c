import Logging
import Synchronization
import Transfer

/// Makes the sessions that tasks are carried out on: one at the start, and another where settings change that a session
/// is made with.
final class SessionMaker: Sendable {
    /// Of all its sessions together.
    let limiters = (download: RateLimiter(), upload: RateLimiter())
    /// Transfers of all its sessions that stood still and had to be kicked; see `Session.internalFaults`.
    let internalFaults = Atomic<Int>(0)
    private let agent: String
    private let logger: Logger
    private let base: Mutex<SessionConfiguration>

    /// - Parameters:
    ///   - base: what the settings do not say.
    ///   - agent: the `User-Agent` of tasks that name none.
    init(_ base: SessionConfiguration, agent: String, logger: Logger) {
        self.base = Mutex(base)
        self.agent = agent
        self.logger = logger
    }

    func make(_ settings: QueueSettings) throws(TransferError) -> SessionManager {
        try make(settings, base.withLock { $0 })
    }

    /// - Returns: `nil` where the session that there is will do.
    func remake(
        _ settings: QueueSettings, _ changed: SessionConfiguration, unless former: QueueSettings
    ) throws(TransferError) -> SessionManager? {
        let before = base.withLock { $0 }
        let isSame =
            before.connectTimeout == changed.connectTimeout && before.stallTimeout == changed.stallTimeout
            && before.proxy == changed.proxy && before.deniedNetworks == changed.deniedNetworks
            && before.caFile == changed.caFile
            && former.connectionsPerHost == settings.connectionsPerHost
            && former.hostConnections == settings.hostConnections && former.httpVersions == settings.httpVersions
        if isSame { return nil }
        let manager = try make(settings, changed)
        base.withLock { $0 = changed }
        return manager
    }

    private func make(
        _ settings: QueueSettings, _ base: SessionConfiguration
    ) throws(TransferError) -> SessionManager {
        var session = base
        // Tasks of many owners share the session: nothing that a server says to one may go along with another's.
        session.cookieStorage = nil
        session.responseCache = nil
        session.maximumConnectionsPerHost = settings.connectionsPerHost
        session.connectionLimits = settings.hostConnections
        session.httpVersions = settings.httpVersions
        session.downloadLimiter = limiters.download
        session.uploadLimiter = limiters.upload
        session.hostRates = settings.hostRates
        session.checkpointInterval = Scheduler.checkpointBytes
        session.checkpointLimit = Scheduler.checkpointLimit
        let manager = try SessionManager(configuration: session, startRequestsImmediately: false)
        manager.adapter = AgentAdapter(agent: agent)
        manager.retrier = InterruptionRetrier(policy: settings.retry)
        manager.delegate.sessionDidFindFault = { [weak self, logger] description in
            self?.internalFaults.wrappingAdd(1, ordering: .relaxed)
            logger.error("internal fault: a transfer had to be kicked", metadata: ["transfer": "\(description)"])
        }
        return manager
    }
}
