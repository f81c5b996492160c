/// A reason for which no bytes of a file are received from a file server or sent to it. Each reason has one owner, who
/// ends it.
enum RemotePause: UInt8, CaseIterable {
    /// The task is suspended. Its caller resumes it. This reason alone outlives a step.
    case suspended
    /// A rate limit is exhausted. The timer of ``RemoteExchangeAction/rest(_:milliseconds:)`` ends the pause.
    case rate
    /// The receiver of the bytes has no room for more. Its reader makes room.
    case full
    /// The source has no bytes to send yet. It reports when it has some.
    case source
    /// A checkpoint has yet to be confirmed. Its confirmation ends the pause.
    case checkpoint
    /// Too many blocks are queued for the disk. The disk reports when it has written them.
    case disk
}

/// The reasons for which an exchange is paused. Read for every chunk, so that it allocates nothing.
struct RemotePauses: Equatable {
    private var bits: UInt8 = 0

    var isEmpty: Bool { bits == 0 }

    func contains(_ pause: RemotePause) -> Bool { bits & Self.bit(pause) != 0 }

    mutating func insert(_ pause: RemotePause) { bits |= Self.bit(pause) }

    mutating func remove(_ pause: RemotePause) { bits &= ~Self.bit(pause) }

    /// Removes the reasons that end with a connection.
    mutating func endWithConnection() { bits &= Self.bit(.suspended) }

    private static func bit(_ pause: RemotePause) -> UInt8 { 1 << pause.rawValue }
}
