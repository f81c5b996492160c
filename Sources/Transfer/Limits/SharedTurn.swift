import DequeModule

/// The position of one request in the queue of the limits that it shares with other requests. One of its connections at
/// a time waits there, in turn.
///
/// Without it, a request with sixteen connections would be served sixteen times as often as a request with one. Used on
/// the loop's thread only.
final class SharedTurn {
    /// The number of bytes that have passed on all connections of the request.
    // Changed for each chunk of a body.
    @exclusivity(unchecked) var passed: Int64 = 0
    private var lastID = 0
    /// The connection that holds the position.
    private var holder: Int?
    /// The connections waiting for the position, and the closures that wake them up.
    private var waiting = Deque<(id: Int, wake: () -> Void)>()

    /// Returns an identifier for one connection.
    func makeID() -> Int {
        lastID += 1
        return lastID
    }

    /// Gives the position to a connection until it leaves, or enqueues the connection.
    ///
    /// - Parameter wake: called when the connection gets the position later.
    /// - Returns: whether the connection has the position now.
    func enter(_ id: Int, wake: @escaping () -> Void) -> Bool {
        guard let holder, holder != id else {
            self.holder = id
            return true
        }
        if !waiting.contains(where: { $0.id == id }) { waiting.append((id, wake)) }
        return false
    }

    /// Releases a connection's position, or removes it from the queue; the next waiting connection gets the position.
    func remove(_ id: Int) {
        guard holder == id else {
            if !waiting.isEmpty { waiting.removeAll { $0.id == id } }
            return
        }
        holder = nil
        guard let next = waiting.first else { return }
        waiting.removeFirst()
        holder = next.id
        next.wake()
    }
}
