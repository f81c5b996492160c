import Synchronization

/// Whether this machine has a network to go out by, and when that changes, from the kernel (rtnetlink(7)).
///
/// Says nothing about whether a certain server answers: only that trying is not hopeless. The network is reachable
/// where an interface other than the loopback is up and running, has an address of global or site scope, and a route
/// leads over it that is neither the machine's own nor confined to the link. A network without a way to the Internet
/// counts, since servers may be in it.
///
/// It is that of the network namespace which the thread is in that calls ``startListening()`` or ``status``.
public final class NetworkReachabilityManager: Sendable {
    /// Whether there is a network.
    public enum Status: Sendable {
        /// Trying is not hopeless.
        case reachable
        /// There is no way out of this machine.
        case notReachable
    }

    /// What happened to the network.
    public enum Change: Sendable {
        /// It became reachable.
        case up
        /// It is no longer reachable.
        case down
        /// It is reachable by other addresses or gateways than before: connections may be dead, and what failed may
        /// work now.
        case changed
    }

    /// Changes that wait for a reader who is slow; of more the oldest are dropped.
    private static let bufferedChanges = 16

    private struct State {
        var listener: NetworkListener?
        var picture: NetworkPicture?
        var readers: [UInt64: AsyncStream<Change>.Continuation] = [:]
        var nextReader: UInt64 = 0
    }

    /// Apart from the manager, so that its thread does not keep it alive.
    private final class Shared: Sendable {
        let state = Mutex(State())

        /// Notes the picture that `listener` brought, and tells the readers.
        func note(_ picture: NetworkPicture, from listener: NetworkListener) {
            let (change, readers) = state.withLock { state -> (Change?, [AsyncStream<Change>.Continuation]) in
                // One that was stopped may have been about to tell.
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

        /// Ends listening, where `listener` (`nil`: whichever) is the one that does.
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

    /// One that does not listen yet.
    public init() {}

    deinit { stopListening() }

    /// While listening: as the kernel last told; otherwise asked for on the spot. Where the kernel cannot be asked,
    /// reachable: trying is then the only way to know.
    public var status: Status {
        if let picture = shared.state.withLock({ $0.picture }) { return Self.status(picture) }
        guard let picture = try? NetlinkSocket(listens: false).picture() else { return .reachable }
        return Self.status(picture)
    }

    /// What happens from now on, once there is listening; a stream for each call. It ends with ``stopListening()``.
    public var changes: AsyncStream<Change> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Change.self, bufferingPolicy: .bufferingNewest(Self.bufferedChanges))
        let reader = shared.state.withLock { state in
            state.nextReader += 1
            state.readers[state.nextReader] = continuation
            return state.nextReader
        }
        continuation.onTermination = { [weak shared] _ in
            // The last reference to a continuation must not go under the lock that its end takes.
            _ = shared?.state.withLock { $0.readers.removeValue(forKey: reader) }
        }
        return stream
    }

    /// Starts to listen, on a thread that sleeps until the kernel tells of something. Does nothing where it listens.
    ///
    /// - Throws: ``TransferError`` where the kernel cannot be asked, as in some sandboxes.
    public func startListening() throws(TransferError) {
        guard shared.state.withLock({ $0.listener == nil }) else { return }
        let listener = try NetworkListener()
        let picture = try listener.picture()
        let isFirst = shared.state.withLock { state in
            // Another thread may have been as far.
            guard state.listener == nil else { return false }
            state.listener = listener
            state.picture = picture
            return true
        }
        guard isFirst else { return }
        let hasThread = listener.start(
            onPicture: { [shared] in shared.note($0, from: listener) }, onEnd: { [shared] in shared.end(listener) })
        guard hasThread else {
            shared.end(listener)
            throw TransferError(.internal, "there is no thread to listen for changes in the network")
        }
    }

    /// Ends listening and all streams of ``changes``. Nothing is told after it but what a stream already held.
    public func stopListening() { shared.end(nil) }

    private static func status(_ picture: NetworkPicture) -> Status {
        picture.paths.isEmpty ? .notReachable : .reachable
    }
}
