import NIOCore

/// A connection as an entry of the table.
protocol TabledConnection: AnyObject {
    var peer: Peer { get }
    /// The time since which the connection is idle; `nil` while a request is carried out or a stream of events is
    /// served.
    var idleSince: NIODeadline? { get }
    /// Closes the connection at once.
    func close()
    /// Closes the connection once the response to the current request is sent.
    func drain()
}

/// A table of all connections of a server, which closes one when a new one needs room. Belongs to the event loop.
final class ConnectionTable {
    private let limits: ConnectionLimits
    private var connections: [ObjectIdentifier: any TabledConnection] = [:]
    private var countByUser: [UInt32: Int] = [:]
    private var subscriptionsByUser: [UInt32: Int] = [:]
    /// The number of tasks that have yet to report to the event loop.
    private var tasks = 0
    private var isDraining = false
    private var quiet: EventLoopPromise<Bool>?

    private let countChanged: (Int) -> Void

    /// - Parameter countChanged: called with the number of connections whenever it changes.
    init(limits: ConnectionLimits, countChanged: @escaping (Int) -> Void = { _ in }) {
        self.limits = limits
        self.countChanged = countChanged
    }

    var count: Int { connections.count }

    /// Admits `connection`. If a limit is reached, the connection that has been idle longest is closed for it.
    ///
    /// - Returns: `false` if no connection is idle or the server is shutting down: the connection is not admitted.
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

    /// Removes `connection`; removing an unknown one is not an error.
    func remove(_ connection: any TabledConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        let uid = connection.peer.uid
        let left = countByUser[uid, default: 1] - 1
        countByUser[uid] = left > 0 ? left : nil
        countChanged(connections.count)
        notifyIfQuiet()
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

    /// Closes the connection that has been idle longest, if it has been for half a second: a new one gets time to send
    /// its request.
    func closeLongestIdle() {
        let latest = NIODeadline.now() - .milliseconds(500)
        _ = evict { $0.idleSince.map { $0 <= latest } ?? false }  // where none is, the client waits
    }

    /// Closes a connection of the user who has the most, for a user who has far fewer, if no connection is idle.
    /// Several users must not be able to keep another one out together.
    private func evictFromLargest(for uid: UInt32) -> Bool {
        guard let largest = countByUser.max(by: { $0.value < $1.value }),
            largest.value / 2 > countByUser[uid, default: 0],
            let connection = connections.values.first(where: { $0.peer.uid == largest.key })
        else { return false }
        remove(connection)
        connection.close()
        return true
    }

    // MARK: - Subscriptions

    /// Counts a subscription of `uid`.
    ///
    /// - Returns: `false` if too few connections would be left for other commands: it is not counted.
    func beginSubscription(of uid: UInt32) -> Bool {
        guard subscriptionsByUser[uid, default: 0] < limits.subscriptionsPerUser else { return false }
        subscriptionsByUser[uid, default: 0] += 1
        return true
    }

    func endSubscription(of uid: UInt32) {
        let left = subscriptionsByUser[uid, default: 1] - 1
        subscriptionsByUser[uid] = left > 0 ? left : nil
    }

    // MARK: - Shutdown

    func taskBegan() { tasks += 1 }

    func taskEnded() {
        tasks -= 1
        notifyIfQuiet()
    }

    /// Lets the running requests complete, for at most `limits.grace`, and those of clients that have just connected.
    ///
    /// - Returns: whether nothing will use `eventLoop` any more.
    func drain(on eventLoop: any EventLoop) -> EventLoopFuture<Bool> {
        let promise = eventLoop.makePromise(of: Bool.self)
        isDraining = true
        quiet = promise
        // The request of a client that has just connected may be on its way.
        let latest = NIODeadline.now() - TimeAmount(limits.requestTime)
        for connection in Array(connections.values) where connection.idleSince.map({ $0 <= latest }) ?? true {
            connection.drain()
        }
        let draining = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.requestTime)) {
            for connection in Array(self.connections.values) { connection.drain() }
        }
        let closing = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.grace)) {
            for connection in Array(self.connections.values) { connection.close() }
        }
        let givingUp = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.grace + .seconds(1))) {
            self.quiet?.succeed(false)
            self.quiet = nil
        }
        promise.futureResult.assumeIsolated().whenComplete { _ in
            draining.cancel()
            closing.cancel()
            givingUp.cancel()
        }
        notifyIfQuiet()
        return promise.futureResult
    }

    private func notifyIfQuiet() {
        guard connections.isEmpty, tasks == 0 else { return }
        quiet?.succeed(true)
        quiet = nil
    }
}
