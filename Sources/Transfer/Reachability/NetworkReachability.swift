import Synchronization

/// The reachability of the network and its changes, from the kernel (rtnetlink(7)).
///
/// It does not tell whether a certain server responds, only whether an attempt can succeed at all. The network is
/// reachable if an interface other than the loopback is up and running, has an address of global or site scope, and is
/// used by a route that is neither the machine's own nor link-local. A network without Internet access counts, because
/// it may contain servers.
///
/// The result applies to the network namespace of the thread that calls ``startListening()`` or ``status``.
public final class NetworkReachabilityManager: Sendable {
    /// The reachability of the network.
    public enum Status: Sendable {
        /// The network is reachable, so an attempt may succeed.
        case reachable
        /// The machine has no route to other machines.
        case notReachable
    }

    /// A change of the network.
    public enum Change: Sendable {
        /// The network became reachable.
        case up
        /// The network is no longer reachable.
        case down
        /// The addresses or gateways changed while the network remained reachable. Connections may be dead, and failed
        /// attempts may now succeed.
        case changed
    }

    /// The number of changes buffered for a slow reader. Beyond it, the oldest are dropped.
    private static let bufferedChanges = 16

    private struct State {
        var listener: NetworkListener?
        var picture: NetworkPicture?
        var readers: [UInt64: AsyncStream<Change>.Continuation] = [:]
        var nextReader: UInt64 = 0
    }

    /// State separate from the manager, so that the thread does not keep the manager alive.
    private final class Shared: Sendable {
        let state = Mutex(State())

        /// Records a snapshot from `listener` and notifies the readers of a change.
        func record(_ picture: NetworkPicture, from listener: NetworkListener) {
            let (change, readers) = state.withLock { state -> (Change?, [AsyncStream<Change>.Continuation]) in
                // A stopped listener may still deliver a snapshot.
                guard state.listener === listener, let before = state.picture else { return (nil, []) }
                state.picture = picture
                let change: Change? =
                    switch (before.paths.isEmpty, picture.paths.isEmpty) {
                    case (true, false): .up
                    case (false, true): .down
                    case (true, true): nil
                    case (false, false): before == picture ? nil : .changed
                    }
                return (change, Array(state.readers.values))
            }
            if let change { for reader in readers { reader.yield(change) } }
        }

        /// Stops listening if `listener` is the current listener or `nil`.
        func end(_ listener: NetworkListener?) {
            let (ended, readers) = state.withLock {
                state -> (NetworkListener?, [AsyncStream<Change>.Continuation]) in
                guard listener == nil || listener === state.listener else { return (nil, []) }
                defer {
                    state.listener = nil
                    state.picture = nil
                    state.readers = [:]
                }
                return (state.listener, Array(state.readers.values))
            }
            ended?.stop()
            for reader in readers { reader.finish() }
        }
    }

    private let shared = Shared()

    /// Creates a manager that does not listen yet.
    public init() {}

    deinit { stopListening() }

    /// The current status. While listening, it is the kernel's last notification; otherwise the kernel is queried. If
    /// the kernel cannot be queried, the status is reachable, because only an attempt can then tell.
    public var status: Status {
        if let picture = shared.state.withLock({ $0.picture }) { return Self.status(picture) }
        guard let picture = try? NetlinkSocket(listens: false).picture() else { return .reachable }
        return Self.status(picture)
    }

    /// A new stream of the changes from now on, while listening. It ends with ``stopListening()``.
    public var changes: AsyncStream<Change> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Change.self, bufferingPolicy: .bufferingNewest(Self.bufferedChanges))
        let reader = shared.state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            return state.nextReader
        }
        continuation.onTermination = { [weak shared] _ in
            // The last reference to a continuation must not be released under this lock, because its termination
            // handler acquires the lock.
            _ = shared?.state.withLock { $0.readers.removeValue(forKey: reader) }
        }
        return stream
    }

    /// Starts listening, on a thread that blocks until the kernel sends a notification. Has no effect while already
    /// listening.
    ///
    /// - Throws: ``TransferError`` if the kernel cannot be queried, as in some sandboxes.
    public func startListening() throws(TransferError) {
        guard shared.state.withLock({ $0.listener == nil }) else { return }
        let listener = try NetworkListener()
        let picture = try listener.picture()
        let isFirst = shared.state.withLock { state in
            // Another thread may have started listening meanwhile.
            guard state.listener == nil else { return false }
            state.listener = listener
            state.picture = picture
            return true
        }
        guard isFirst else { return }
        let hasThread = listener.start(
            onPicture: { [shared] in shared.record($0, from: listener) }, onEnd: { [shared] in shared.end(listener) })
        guard hasThread else {
            shared.end(listener)
            throw TransferError(.internal, "there is no thread to listen for changes in the network")
        }
    }

    /// Stops listening and ends all streams of ``changes``. Only changes already buffered in a stream are delivered
    /// after it.
    public func stopListening() { shared.end(nil) }

    private static func status(_ picture: NetworkPicture) -> Status {
        picture.paths.isEmpty ? .notReachable : .reachable
    }
}
