import Curl
import Glibc

/// A listener for network changes, on a thread that blocks in `poll` until there is one.
final class NetworkListener: Sendable {
    /// The maximum number of datagrams read before the network state is requested again, even if more arrive.
    private static let maximumDatagrams = 1024

    private let notices: NetlinkSocket
    private let questions: NetlinkSocket
    private let wakeUp: WakeUp

    /// Creates the sockets in the network namespace of the calling thread.
    init() throws(TransferError) {
        // The notification socket is opened before the first dump, so that a change between the two is notified.
        notices = try NetlinkSocket(listens: true)
        questions = try NetlinkSocket(listens: false)
        guard let wakeUp = try? WakeUp(counting: false) else {
            throw .file(errno, doing: "listen for changes in the network")
        }
        self.wakeUp = wakeUp
    }

    /// Returns the current state. It must not be called while the thread runs, because the thread uses the same socket.
    func picture() throws(TransferError) -> NetworkPicture { try questions.picture() }

    /// Starts the thread. It ends after ``stop()``, or if the notification socket fails.
    ///
    /// - Parameters:
    ///   - onPicture: Called on the thread with the network state after a change, which may be irrelevant.
    ///   - onEnd: Called on the thread when it ends.
    func start(
        onPicture: @escaping @Sendable (NetworkPicture) -> Void, onEnd: @escaping @Sendable () -> Void
    ) -> Bool {
        SystemThread.start(name: "reachability") { [self] in
            while sleep() {
                // If the kernel cannot be queried, the state remains unchanged until the next change.
                if let picture = try? questions.picture() { onPicture(picture) }
            }
            onEnd()
        }
    }

    func stop() { wakeUp.signal() }

    /// Waits for a notification that may be relevant.
    ///
    /// - Returns: `false` if the thread must end.
    private func sleep() -> Bool {
        var entries = [
            pollfd(fd: notices.descriptor.raw, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let count = poll(&entries, nfds_t(entries.count), -1)
            if count < 0, errno == EINTR { continue }
            guard count > 0, entries[1].revents == 0 else { return false }
            switch drain() {
            case true?: return true
            case false?: continue
            case nil: return false
            }
        }
    }

    /// Reads the pending notifications, because many arrive at once.
    ///
    /// - Returns: Whether any of them may be relevant; `nil` if the socket failed.
    private func drain() -> Bool? {
        var matters = false
        for _ in 0..<Self.maximumDatagrams {
            switch notices.receive() {
            case .messages(let messages):
                matters = matters || messages.contains { $0.content != .other }
            case .lost: matters = true
            case .nothing: return matters
            case .failed: return nil
            }
        }
        return matters
    }
}
