/// The capacity of the network path to a host, as downloads from it have measured it.
enum PathCapacity: Equatable {
    /// Each connection has a rate of its own: throughput grows with their number.
    case each
    /// This number of connections saturates the path at this rate, in bytes per second.
    case shared(connections: Int, rate: Double)
}
