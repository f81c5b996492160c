/// Counts what was written to a client and that the kernel has not taken yet.
///
/// A value without I/O.
struct UnreadWrites {
    private var begun: UInt64 = 0
    private var taken: UInt64 = 0
    private var marked: UInt64 = 0

    var isEmpty: Bool { taken == begun }

    /// Whether all has been taken that had been written when ``mark()`` was called.
    var isMarkTaken: Bool { taken >= marked }

    mutating func began() { begun &+= 1 }

    /// They end in the order in which they began.
    mutating func ended() { taken &+= 1 }

    mutating func mark() { marked = begun }
}
