import Synchronization

extension SessionManager {
    private static let shared = Mutex<SessionManager?>(nil)

    /// A shared manager with the ``SessionConfiguration/default`` configuration. It is created on first use and lives
    /// until the process ends.
    ///
    ///     let text = try await SessionManager.default.request("https://example.org/").string
    ///
    /// - Throws: ``TransferError`` if the system has no threads or descriptors left; the next use tries again.
    public static var `default`: SessionManager {
        get throws(TransferError) {
            try shared.withLock { (shared) throws(TransferError) in
                if let shared { return shared }
                let manager = try SessionManager()
                shared = manager
                return manager
            }
        }
    }

    /// The handler called when the session has nothing left to do: its last request is complete and the handlers of
    /// that request have run. It is called each time this happens, on a thread where it may block. A request that waits
    /// for its next attempt counts as something left to do; a request that was never started does not.
    ///
    /// In Foundation, a background session wakes an app for its events and passes it a completion handler, to be called
    /// when all events have been delivered. Here the process runs anyway, so the handler reports only this: all events
    /// of the session so far have been delivered. (A transfer that outlives the process is the daemon's, whose client
    /// has a handler of its own.) The delegate's `sessionDidFinishEvents` replaces it. The delegate stores the handler,
    /// which is therefore also called for requests ended by the release of the manager.
    public var backgroundCompletionHandler: (@Sendable () -> Void)? {
        get { delegate.backgroundCompletionHandler }
        set { delegate.backgroundCompletionHandler = newValue }
    }
}
