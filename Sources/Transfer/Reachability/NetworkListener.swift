import Curl
import Glibc

/// Hears of changes in the network, on a thread that sleeps in the kernel until there is one.
final class NetworkListener: Sendable {
    /// Datagrams that are taken before the network is looked at anew, however fast more come.
    private static let maximumDatagrams = 1024

    private let notices: NetlinkSocket
    private let questions: NetlinkSocket
    private let wakeUp: WakeUp

    /// The sockets belong to the network namespace of the thread that makes them.
    init() throws(TransferError) {
        // First the notices, then the first look: a change between the two is told.
        notices = try NetlinkSocket(listens: true)
        questions = try NetlinkSocket(listens: false)
        guard let wakeUp = try? WakeUp(counting: false) else {
            throw .file(errno, doing: "listen for changes in the network")
        }
        self.wakeUp = wakeUp
    }

    /// What there is now. Not while the thread runs, which asks over the same socket.
    func picture() throws(TransferError) -> NetworkPicture { try questions.picture() }

    /// Starts the thread. It ends after ``stop()``, or where the kernel tells no more.
    ///
    /// - Parameters:
    ///   - onPicture: called on the thread with the network as it is after a change, not always one that matters.
    ///   - onEnd: called last.
    func start(
        onPicture: @escaping @Sendable (NetworkPicture) -> Void, onEnd: @escaping @Sendable () -> Void
    ) -> Bool {
        SystemThread.start(name: "reachability") { [self] in
            while sleep() {
                // Where the kernel cannot be asked, the network stays what it was: the next change comes here again.
                if let picture = try? questions.picture() { onPicture(picture) }
            }
            onEnd()
        }
    }

    func stop() { wakeUp.signal() }

    /// Waits for a notice that may matter.
    ///
    /// - Returns: `false` where it is time to end.
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

    /// Takes the notices there are: many come together.
    ///
    /// - Returns: whether one may matter; `nil` where no more can come.
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
