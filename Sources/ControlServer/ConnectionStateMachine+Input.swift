import NIOCore

/// The input: its charge, the turns for long lines, and the deadline for the rest of a line.
extension ConnectionStateMachine {
    /// Returns the change of the charge for the bytes that were received beyond those that the client may send. When
    /// the client closes its end, NIO reads everything it has sent, whether the handler permits reading or not.
    func surplusChange() -> ConnectionAction? {
        let isSurplus = longLine != .granted && decoder.count > 2 * limits.shortLine && !isOver
        let bytes = isSurplus ? decoder.capacity : 0
        return bytes == surplus ? nil : .changeSurplus(from: surplus, to: bytes)
    }

    /// Requests a turn for a line longer than a short one, or gives it back. Such lines are received only in turn,
    /// because their end may take long to arrive.
    mutating func longLineChange() -> ConnectionAction? {
        let isLong = decoder.count > limits.shortLine
        var isHeld = isLong
        if case .waiting(let line, _) = request, line.readableBytes > limits.shortLine { isHeld = true }
        switch longLine {
        case .none where isLong && !decoder.hasItem && lifecycle == .open:
            longLine = .requested
            return .requestLongLine
        case .granted where !isHeld:
            longLine = .none
            return .releaseLongLine
        case .requested where isOver: longLine = .none
        default: break
        }
        return nil
    }

    /// Returns the change of the deadline for the rest of a line. The deadline exists only while half a line waits, so
    /// that an idle connection causes no wake-ups.
    mutating func lineDeadlineChange() -> ConnectionAction? {
        // A client that may not send on is not late.
        let isStopped = isOver || isInputClosed || ahead != nil || longLine == .requested
        let line = isStopped ? nil : decoder.growingLine
        guard line != lineOfDeadline else { return nil }
        lineOfDeadline = line
        return line == nil ? .cancelLineDeadline : .startLineDeadline
    }
}
