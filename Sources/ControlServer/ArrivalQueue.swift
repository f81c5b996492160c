/// A queue of the accepted clients that the server has not taken yet. Each user's clients are in order of arrival, and
/// the users take turns, so that one user's many connections delay no other user.
///
/// A value without I/O.
struct ArrivalQueue<Arrival> {
    private var queue = FairQueue<Arrival>()
    private(set) var count = 0

    /// - Parameter id: the identity of the connection.
    mutating func append(_ arrival: Arrival, user: UInt32, id: ObjectIdentifier) {
        queue.append(arrival, amount: 1, user: user, owner: id)
        count += 1
    }

    mutating func dequeue(atMost most: Int) -> [Arrival] {
        var taken: [Arrival] = []
        while taken.count < most, let next = queue.next({ _, _ in .yes }, take: { _, _ in }) { taken.append(next) }
        count -= taken.count
        return taken
    }
}
