import Curl
import Synchronization

/// The loops for FTP, FTPS and SFTP, created on demand and stopped after a period without tasks.
///
/// libcurl waits within its calls for the last reply of such a server (to a transfer, to closing an SFTP file, to
/// renaming), which blocks the loop. These transfers therefore have loops separate from those of HTTP. Each server is
/// assigned a group of loops, over which its tasks are distributed, so that a slow server blocks few of its own tasks
/// and few other servers. These loops may also read small local files.
final class RemoteLoops: Sendable {
    /// The number of groups, and the number of loops in a group.
    static let groups = 16
    static let groupSize = 8
    /// The time in milliseconds for which a loop without tasks is kept. Its idle connections are closed with it.
    static let linger: Int64 = 60_000

    private struct Place {
        let loop: TransferLoop
        var leases = 0
        /// The time at which the last lease ended.
        var idleSince = MonotonicTime.now()
        /// Whether a timer of the loop checks whether it is idle.
        var hasTimer = false
    }

    private let places = Mutex<[Int: Place]>([:])
    private let faults: LoopFaults
    private let linger: Int64

    init(faults: LoopFaults, linger: Int64 = RemoteLoops.linger) {
        self.faults = faults
        self.linger = linger
    }

    /// The number of existing loops.
    var count: Int { places.withLock { $0.count } }

    /// Leases a loop of the server's group for a task, and creates the loop if necessary.
    ///
    /// - Parameters:
    ///   - task: the task's ``TaskCore/identifier``. Consecutive tasks get different loops.
    ///   - otherwise: the loop to use if the system cannot create another thread.
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

    /// Stops a loop that has been idle for the full period.
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

    /// Returns the group of a server, independent of the user in the URL. The assignment differs between processes, so
    /// a server cannot choose which servers share its group.
    private static func group(of url: String) -> Int {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        var authority = url[start...].prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
        var hasher = Hasher()
        for byte in authority.utf8 { hasher.combine(byte | 0x20) }
        return Int(UInt(bitPattern: hasher.finalize()) % UInt(groups))
    }
}

/// A task's lease of a loop. The loop is kept until the lease is released.
final class LoopLease: Sendable {
    let loop: TransferLoop
    private let end: @Sendable () -> Void

    init(_ loop: TransferLoop, end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = end
    }

    deinit { end() }
}
