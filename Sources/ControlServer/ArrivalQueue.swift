/// The clients that were accepted and that the server has not taken yet: each user's in order of arrival, the users in
/// turns, so that nobody waits for all the connections that one user makes.
///
/// A value without I/O.
struct ArrivalQueue<Arrival> {
    private var queue = FairQueue<Arrival>()
    private(set) var count = 0

    /// - Parameter id: of the connection.
    mutating func append(_ arrival: Arrival, user: UInt32, id: ObjectIdentifier) {
        queue.append(arrival, amount: 1, user: user, owner: id)
        count += 1
    }

    mutating func take(atMost most: Int) -> [Arrival] {
        var taken: [Arrival] = []
        while taken.count < most, let next = queue.next({ _, _ in .yes }, take: { _, _ in }) { taken.append(next) }
        count -= taken.count
        return taken
    }
}
