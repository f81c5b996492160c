/// The place of one request in the line of the limits that it shares with other requests: of its connections, one at a
/// time waits there, in turn.
///
/// Without this a request with sixteen connections would be served sixteen times as often as one with one. Lives on its
/// loop's thread.
final class SharedLine {
    /// Bytes that passed on all connections of the request.
    var passed: Int64 = 0
    private var lastID = 0
    /// The connection that has the place.
    private var holder: Int?
    /// Connections that wait for the place, and how to wake each.
    private var waiting = FIFO<(id: Int, wake: () -> Void)>()

    /// A number for one connection.
    func makeID() -> Int {
        lastID += 1
        return lastID
    }

    /// Gives a connection the place until it leaves.
    ///
    /// - Parameter wake: called once the place is the connection's, where it is another's now.
    /// - Returns: whether the place is the connection's now.
    func enter(_ id: Int, wake: @escaping () -> Void) -> Bool {
        guard let holder, holder != id else {
            self.holder = id
            return true
        }
        if !waiting.elements.contains(where: { $0.id == id }) { waiting.append((id, wake)) }
        return false
    }

    /// A connection needs the place no more, or waits for it no more; the next one has it.
    func leave(_ id: Int) {
        guard holder == id else {
            if !waiting.isEmpty { waiting.remove { $0.id == id } }
            return
        }
        holder = nil
        guard let next = waiting.first else { return }
        waiting.removeFirst()
        holder = next.id
        next.wake()
    }
}
