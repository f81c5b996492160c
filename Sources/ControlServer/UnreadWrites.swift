/// A count of the writes to a client that the kernel has not accepted yet.
///
/// A value without I/O.
struct UnreadWrites {
    private var begun: UInt64 = 0
    private var taken: UInt64 = 0
    private var marked: UInt64 = 0

    var isEmpty: Bool { taken == begun }

    /// Whether all writes that had begun when ``mark()`` was called have ended.
    var isMarkTaken: Bool { taken >= marked }

    mutating func began() { begun &+= 1 }

    /// Records that the oldest unfinished write has ended. Writes end in the order in which they began.
    mutating func ended() { if !isEmpty { taken &+= 1 } }

    mutating func mark() { marked = begun }
}
