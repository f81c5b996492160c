/// The state of a stream: a state machine without I/O.
struct StreamState {
    enum Phase: Equatable {
        case connecting, open
        /// The TLS handshake is running: only libcurl reads and writes.
        case upgrading
        /// Both sides were closed locally; bytes that are still received are discarded, see ``Step/linger``.
        case lingering
        case closed
    }

    enum ReadSide: Equatable {
        case open, paused
        /// The side was closed locally: nothing more is delivered.
        case closed
        /// The peer closed the side, with FIN or close_notify.
        case ended
    }

    enum WriteSide: Equatable {
        case open
        /// The side closes as soon as the queued bytes have been sent.
        case closing
        case closed
    }

    /// The action that the state requires.
    enum Step: Equatable {
        case resume
        /// A short wait for the peer's FIN. A close with unread bytes resets the connection (RFC 1122, section
        /// 4.2.2.13), and the reset may overtake the bytes written last.
        case linger
        case finish
    }

    private(set) var phase = Phase.connecting
    private(set) var read = ReadSide.open
    private(set) var write = WriteSide.open

    /// Whether bytes are to be read from the socket.
    var receives: Bool { phase == .open && read == .open || phase == .lingering }
    /// Whether queued bytes, and the FIN after them, may be sent.
    var sends: Bool { phase == .open && write != .closed }
    /// Whether more bytes may be queued.
    var acceptsWrites: Bool { write == .open && phase != .lingering && phase != .closed }

    var step: Step {
        switch (phase, read, write) {
        case (.open, .ended, .closed), (.lingering, .ended, _): .finish
        case (.open, .closed, .closed): .linger
        default: .resume
        }
    }

    mutating func connected() {
        if phase == .connecting { phase = .open }
    }

    mutating func pauseReading() {
        if read == .open { read = .paused }
    }

    /// - Returns: whether reading was paused.
    mutating func resumeReading() -> Bool {
        guard read == .paused else { return false }
        read = .open
        return true
    }

    mutating func peerClosed() { read = .ended }

    mutating func closeRead() {
        if read != .ended { read = .closed }
    }

    mutating func closeWrite() {
        if write == .open { write = .closing }
    }

    mutating func writeClosed() { write = .closed }

    mutating func beganLingering() {
        if phase == .open { phase = .lingering }
    }

    /// - Returns: whether a handshake may start: the connection and both its sides must be open.
    mutating func beginUpgrade() -> Bool {
        guard phase == .open, write == .open, read == .open || read == .paused else { return false }
        phase = .upgrading
        return true
    }

    /// Records that the handshake is over, or did not start after all.
    mutating func endUpgrade() {
        if phase == .upgrading { phase = .open }
    }

    /// - Returns: whether the stream was not closed before.
    mutating func close() -> Bool {
        guard phase != .closed else { return false }
        phase = .closed
        return true
    }
}
