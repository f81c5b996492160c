import Synchronization

extension SessionManager {
    private static let shared = Mutex<SessionManager?>(nil)

    /// One manager for all who want no other, with the ``SessionConfiguration/default`` configuration: made when it is
    /// first asked for, and there until the process ends.
    ///
    ///     let text = try await SessionManager.default.request("https://example.org/").string
    ///
    /// - Throws: ``TransferError`` where the system has no threads or descriptors to give; the next who asks tries again.
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

    /// Called when the session has nothing left to do: its last request is complete and that request's handlers have
    /// run; once for each time that this becomes so, on threads where it may block. A request that waits for its next
    /// attempt is something left to do, one that was never started is not.
    ///
    /// A session of Foundation's that works in the background wakes an app for its events and hands it a completion
    /// handler, to be called when all of them have been delivered. Here the process is there anyway, so that the handler
    /// tells just this: all events of the session so far have been delivered. (What outlives the process is the daemon's,
    /// whose client has a handler of its own.) `sessionDidFinishEvents` of the delegate takes its place. It lives in the
    /// delegate, and is called for what ends by the release of the manager too.
    public var backgroundCompletionHandler: (@Sendable () -> Void)? {
        get { delegate.backgroundCompletionHandler }
        set { delegate.backgroundCompletionHandler = newValue }
    }
}
