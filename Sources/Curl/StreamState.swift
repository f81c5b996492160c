/// Where a stream stands: a machine without I/O.
struct StreamState {
    enum Phase: Equatable {
        case connecting, open
        /// The TLS handshake runs: nothing is read and nothing written but by libcurl.
        case upgrading
        /// Both sides are closed by us; what still comes is thrown away, see ``Step/linger``.
        case lingering
        case closed
    }

    enum ReadSide: Equatable {
        case open, paused
        /// By us: nothing more is delivered.
        case closed
        /// By the peer, with FIN or close_notify.
        case ended
    }

    enum WriteSide: Equatable {
        case open
        /// Closed as soon as what is queued has gone.
        case closing
        case closed
    }

    /// What the state asks for.
    enum Step: Equatable {
        case goOn
        /// Wait a little for the peer's FIN: a close with unread bytes resets the connection (RFC 1122,
        /// section 4.2.2.13), and the reset may overtake what we wrote last.
        case linger
        case finish
    }

    private(set) var phase = Phase.connecting
    private(set) var read = ReadSide.open
    private(set) var write = WriteSide.open

    /// Whether bytes are to be taken from the socket.
    var receives: Bool { phase == .open && read == .open || phase == .lingering }
    /// Whether queued bytes, and the FIN after them, may go to the socket.
    var sends: Bool { phase == .open && write != .closed }
    /// Whether more may be queued.
    var acceptsWrites: Bool { write == .open && phase != .lingering && phase != .closed }

    var step: Step {
        switch (phase, read, write) {
        case (.open, .ended, .closed), (.lingering, .ended, _): .finish
        case (.open, .closed, .closed): .linger
        default: .goOn
        }
    }

    mutating func connected() {
        if phase == .connecting { phase = .open }
    }

    mutating func pauseReading() {
        if read == .open { read = .paused }
    }

    /// - Returns: whether it was paused.
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

    /// - Returns: whether a handshake may begin: on an open connection with both sides open.
    mutating func beginUpgrade() -> Bool {
        guard phase == .open, write == .open, read == .open || read == .paused else { return false }
        phase = .upgrading
        return true
    }

    /// The handshake is over, or did not begin after all.
    mutating func endUpgrade() {
        if phase == .upgrading { phase = .open }
    }

    /// - Returns: whether it was not closed before.
    mutating func close() -> Bool {
        guard phase != .closed else { return false }
        phase = .closed
        return true
    }
}
