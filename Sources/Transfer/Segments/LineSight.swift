/// The state of a download's line at one moment: all that the number of its connections is decided by.
struct LineSight {
    /// A connection that has begun to bring bytes.
    struct Connection {
        /// Grows from one connection to the next.
        var number: Int
        /// Milliseconds since its first answer.
        var age: Int64
        /// Bytes that it brought so far.
        var received: Int64
    }

    /// Milliseconds of a clock that nobody sets.
    var now: Int64
    /// Bytes that came so far, over all downloads from the host.
    var received: Int64
    /// Connections of this download that bring bytes.
    var connections: [Connection]
    /// Connections of other downloads from the host.
    var others = 0
    /// Bytes that are missing.
    var left: Int64
    /// Milliseconds that pass until a request is answered.
    var setUp: Int64 = 0
    /// This machine can hardly take more than it gets.
    var isBusy = false
    /// Bytes are kept back by this machine: by a rate limit, a slow disk or a suspension.
    var isHeld = false
    /// What other downloads from the host taught.
    var lesson: LineLesson?
    /// No other download from the host tries out a number of connections.
    var mayTry = true
}
