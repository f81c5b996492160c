import ControlProtocol
import NIOCore

/// The lines and their requests, one after the other.
extension ConnectionStateMachine {
    /// Takes the next line that can be carried out now.
    mutating func takeLine() -> ConnectionAction? {
        guard lifecycle == .open, !isBusy, isWritable else { return nil }
        if let ticket = ahead {
            ahead = nil
            request = .running(quick: nil)
            return .executeAhead(ticket)
        }
        while let item = decoder.next() {
            switch item {
            case .line(let line) where RequestProcessor.isHTTP(line):
                end()
                return refuse("this socket takes JSON-RPC, one JSON text a line, not HTTP")
            case .line(let line):
                let length = line.readableBytes
                if length > limits.shortLine {
                    request = .waiting(line, .heavy)
                    let bytes = RequestCost.longLine(length, isBatch: RequestProcessor.isBatch(line))
                    return .requestTurn(.heavy, bytes: bytes)
                }
                guard !RequestProcessor.isBlank(line) else { continue }
                request = .waiting(line, .quick)
                return .requestTurn(.quick, bytes: RequestCost.quick)
            case .tooLong:
                end()
                return refuse("a line is longer than \(MessageLimits.lineLength) bytes")
            }
        }
        return nil
    }

    mutating func turnGranted(_ ticket: Workload.Ticket) -> ConnectionAction {
        guard !isOver, case .waiting(let line, let lane) = request else { return .release(ticket) }
        request = .running(quick: lane == .quick ? line : nil)
        return .execute(line, lane, ticket)
    }

    /// Enqueues a request again that costs more than a quick one.
    mutating func costFound(_ bytes: Int, _ ticket: Workload.Ticket) -> ConnectionAction {
        guard case .running(let line) = request else { return .release(ticket) }
        guard !isOver, let line else {
            request = .none
            return .release(ticket)
        }
        request = .waiting(line, .heavy)
        return .requestTurn(.heavy, bytes: bytes, releasing: ticket)
    }

    mutating func replied(
        _ reply: RequestProcessor.Reply, _ ticket: Workload.Ticket
    ) -> ConnectionAction {
        guard case .running = request else { return .release(ticket) }
        request = .none
        guard !isOver else { return .release(ticket) }
        var reply = reply
        if lifecycle == .draining {
            reply.room = nil
            reply.subscription = nil
            end()
        }
        if reply.room != nil {
            guard ahead == nil, decoder.count == 0, !isInputClosed else {
                end()
                return refuse("no request may follow source.receive before its response", releasing: ticket)
            }
            request = .receivingFiles
        }
        if reply.answer != nil { unread.began() }
        if reply.subscription != nil { subscription = .active(.none) }
        if lifecycle == .open { stage = .takeLines }
        return .respond(reply, ticket)
    }

    /// Requests the decoding of the next long line while one line is being carried out. It is still carried out after
    /// that one.
    func requestAhead() -> ConnectionAction? {
        guard lifecycle == .open, case .running = request, ahead == nil, decoder.lineLength > limits.shortLine,
            decoder.lineLength <= MessageLimits.lineLength
        else { return nil }
        return .requestAhead(bytes: RequestCost.longLine(decoder.lineLength, isBatch: false))
    }

    mutating func decodeAhead(_ ticket: Workload.Ticket) -> ConnectionAction {
        guard requestAhead() != nil, case .line(let line) = decoder.next() else { return .release(ticket) }
        ahead = ticket
        return .decodeAhead(line)
    }

    mutating func filesEnded(_ event: ConnectionEvent) -> ConnectionAction {
        guard case .receivingFiles = request else { return .none }
        request = .none
        guard case .filesFailed(let reason) = event else {
            stage = .takeLines
            return .resumeInput
        }
        end()
        return refuse(reason)
    }
}
