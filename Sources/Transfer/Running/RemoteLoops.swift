import Curl
import Synchronization

/// The loops of FTP, FTPS and SFTP, made when they are first wanted, and ended when nobody has wanted them for a while.
///
/// libcurl waits within its calls for the last reply of such a server (to a transfer, to the closing of an SFTP file, to
/// renaming), and blocks the loop meanwhile. So these transfers have loops apart from HTTP's. A server has a group of
/// loops, over which its tasks are spread: a slow server blocks few tasks of its own, and few other servers. These
/// loops may read small local files too.
final class RemoteLoops: Sendable {
    /// Groups of loops, and loops of one group.
    static let groups = 16
    static let groupSize = 8
    /// Milliseconds that a loop stays without a task. Its idle connections end with it.
    static let linger: Int64 = 60_000

    private struct Place {
        let loop: TransferLoop
        var leases = 0
        /// Since when there has been no lease.
        var idleSince = MonotonicTime.now()
        /// Whether a timer of the loop's looks after that.
        var hasTimer = false
    }

    private let places = Mutex<[Int: Place]>([:])
    private let faults: LoopFaults
    private let linger: Int64

    init(faults: LoopFaults, linger: Int64 = RemoteLoops.linger) {
        self.faults = faults
        self.linger = linger
    }

    /// How many loops there are.
    var count: Int { places.withLock { $0.count } }

    /// Takes the loop of a server for a task.
    ///
    /// - Parameters:
    ///   - task: ``TaskCore/home``. Tasks that follow one another have different loops.
    ///   - otherwise: the one to take where the system has no thread for another.
    func lease(for url: String, task: Int, otherwise: TransferLoop) -> LoopLease {
        let number = Self.group(of: url) * Self.groupSize + task % Self.groupSize
        return places.withLock { places in
            guard let loop = places[number]?.loop ?? (try? TransferLoop(name: "dld-remote-\(number)", faults: faults))
            else { return LoopLease(otherwise) {} }
            places[number, default: Place(loop: loop)].leases += 1
            return LoopLease(loop) { [weak self] in self?.release(number) }
        }
    }

    func stop() {
        for place in places.withLock({ $0.values }) { place.loop.stop() }
    }

    private func release(_ number: Int) {
        let loop = places.withLock { places -> TransferLoop? in
            guard var place = places[number] else { return nil }
            place.leases -= 1
            place.idleSince = .now()
            let needsTimer = place.leases == 0 && !place.hasTimer
            place.hasTimer = place.hasTimer || needsTimer
            places[number] = place
            return needsTimer ? place.loop : nil
        }
        if let loop { look(at: number, of: loop, after: linger) }
    }

    private func look(at number: Int, of loop: TransferLoop, after milliseconds: Int64) {
        loop.post { core in
            _ = core.after(milliseconds: milliseconds) { [weak self] in self?.retire(number) }
        }
    }

    /// Ends a loop that has been without a task for long enough.
    private func retire(_ number: Int) {
        let (loop, rest) = places.withLock { places -> (TransferLoop?, Int64) in
            guard let place = places[number] else { return (nil, 0) }
            guard place.leases == 0 else {
                places[number]?.hasTimer = false
                return (nil, 0)
            }
            let rest = linger - MonotonicTime.now().milliseconds(since: place.idleSince)
            if rest <= 0 { places[number] = nil }
            return (place.loop, rest)
        }
        guard let loop else { return }
        if rest > 0 { look(at: number, of: loop, after: rest) } else { loop.stop() }
    }

    /// The group of a server, whoever logs in there. Another one in each process: a server cannot choose its neighbours.
    private static func group(of url: String) -> Int {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        var authority = url[start...].prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        var hasher = Hasher()
        for byte in authority.utf8 { hasher.combine(byte | 0x20) }
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(groups))
    }
}

/// A task's hold on a loop, which stays for as long as the task has it.
final class LoopLease: Sendable {
    let loop: TransferLoop
    private let end: @Sendable () -> Void

    init(_ loop: TransferLoop, end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = end
    }

    deinit { end() }
}
