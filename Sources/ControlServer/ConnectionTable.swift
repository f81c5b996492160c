import NIOCore

/// A connection as the table knows it.
protocol TabledConnection: AnyObject {
    var peer: Peer { get }
    /// Since when nothing happens on it; `nil` while a request is carried out, or a stream of events served.
    var idleSince: NIODeadline? { get }
    /// Ends it at once.
    func close()
    /// Ends it once the request under way is answered.
    func drain()
}

/// All connections of a server, and who makes room for a new one. Belongs to the event loop.
final class ConnectionTable {
    private let limits: ConnectionLimits
    private var connections: [ObjectIdentifier: any TabledConnection] = [:]
    private var countByUser: [UInt32: Int] = [:]
    /// Tasks that will still report to the event loop.
    private var tasks = 0
    private var isDraining = false
    private var quiet: EventLoopPromise<Bool>?

    private let countChanged: (Int) -> Void

    /// - Parameter countChanged: is told how many connections there are.
    init(limits: ConnectionLimits, countChanged: @escaping (Int) -> Void = { _ in }) {
        self.limits = limits
        self.countChanged = countChanged
    }

    var count: Int { connections.count }

    /// Takes `connection` in; where a limit is reached, the longest idle one is closed for it.
    ///
    /// - Returns: `false` where none is idle, or the server is about to end: the connection is not taken.
    func admit(_ connection: any TabledConnection) -> Bool {
        guard !isDraining else { return false }
        let uid = connection.peer.uid
        if countByUser[uid, default: 0] >= limits.perUser {
            guard evict(where: { $0.peer.uid == uid }) else { return false }
        } else if connections.count >= limits.total {
            guard evict(where: { _ in true }) || evictFromLargest(for: uid) else { return false }
        }
        connections[ObjectIdentifier(connection)] = connection
        countByUser[uid, default: 0] += 1
        countChanged(connections.count)
        return true
    }

    /// Forgets `connection`; one that is not known is no error.
    func remove(_ connection: any TabledConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        let uid = connection.peer.uid
        let left = countByUser[uid, default: 1] - 1
        countByUser[uid] = left > 0 ? left : nil
        countChanged(connections.count)
        tellIfQuiet()
    }

    private func evict(where isCandidate: (any TabledConnection) -> Bool) -> Bool {
        var longest: (connection: any TabledConnection, since: NIODeadline)?
        for connection in connections.values where isCandidate(connection) {
            guard let since = connection.idleSince, longest.map({ since < $0.since }) ?? true else { continue }
            longest = (connection, since)
        }
        guard let longest else { return false }
        remove(longest.connection)
        longest.connection.close()
        return true
    }

    /// Closes a connection of the user who has the most, for one who has far fewer, where none is idle: several users
    /// must not keep another one out together.
    private func evictFromLargest(for uid: UInt32) -> Bool {
        guard let largest = countByUser.max(by: { $0.value < $1.value }),
            largest.value / 2 > countByUser[uid, default: 0],
            let connection = connections.values.first(where: { $0.peer.uid == largest.key })
        else { return false }
        remove(connection)
        connection.close()
        return true
    }

    // MARK: - The end

    func taskBegan() { tasks += 1 }

    func taskEnded() {
        tasks -= 1
        tellIfQuiet()
    }

    /// Lets the requests under way come to their end, for `limits.grace` and no longer.
    ///
    /// - Returns: whether nothing will use `eventLoop` any more.
    func drain(on eventLoop: any EventLoop) -> EventLoopFuture<Bool> {
        let promise = eventLoop.makePromise(of: Bool.self)
        isDraining = true
        quiet = promise
        for connection in Array(connections.values) { connection.drain() }
        let closing = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.grace)) {
            for connection in Array(self.connections.values) { connection.close() }
        }
        let givingUp = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.grace + .seconds(1))) {
            self.quiet?.succeed(false)
            self.quiet = nil
        }
        promise.futureResult.assumeIsolated().whenComplete { _ in
            closing.cancel()
            givingUp.cancel()
        }
        tellIfQuiet()
        return promise.futureResult
    }

    private func tellIfQuiet() {
        guard connections.isEmpty, tasks == 0 else { return }
        quiet?.succeed(true)
        quiet = nil
    }
}
