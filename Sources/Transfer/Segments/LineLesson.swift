/// What downloads from a host taught about the line to it.
enum LineLesson: Equatable {
    /// Each connection has a rate of its own: the more there are, the more comes.
    case each
    /// So many connections fill the line, which brings so many bytes a second.
    case shared(connections: Int, rate: Double)
}
