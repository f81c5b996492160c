/// The lesson of downloads from a host about the line (the network path) to it.
enum LineLesson: Equatable {
    /// Each connection has a rate of its own: throughput grows with their number.
    case each
    /// This number of connections saturates the line at this rate, in bytes per second.
    case shared(connections: Int, rate: Double)
}
