import FoundationEssentials

/// A unit that a server sends: a whole message, or a control frame.
enum WebSocketEvent: Equatable {
    case message(WebSocketMessage)
    case ping([UInt8])
    case pong([UInt8])
    case close(WebSocketClosure)
}

/// The assembly of messages from frames (RFC 6455, section 5.4): a state machine without I/O.
struct WebSocketAssembler {
    /// The maximum size of a message in bytes.
    let limit: Int
    private var parser = WebSocketFrameParser()
    /// The kind of the message whose fragments are being received; `nil` between two messages.
    private var kind: WebSocketOpcode?
    private var payload: [UInt8] = []
    /// The payload of the control frame that is being received, which may be between the fragments of a message.
    private var control: [UInt8] = []
    private var frame: WebSocketFrameParser.Header?

    init(limit: Int) { self.limit = limit }

    /// Returns the next message or control frame, and removes its bytes.
    ///
    /// - Returns: `nil` if the rest of it has not been received; all bytes are consumed then.
    mutating func next(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> WebSocketEvent? {
        while let part = try parser.next(&bytes) {
            switch part {
            case .header(let header): try begin(header)
            case .payload(let piece):
                if frame?.opcode.isControl == true { control += piece } else { payload += piece }
            case .end:
                if let event = try end() { return event }
            }
        }
        return nil
    }

    private mutating func begin(_ header: WebSocketFrameParser.Header) throws(WebSocketViolation) {
        frame = header
        if header.opcode.isControl {
            control.removeAll()
            return
        }
        if header.opcode == .continuation {
            guard kind != nil else { throw WebSocketViolation("a continuation without a message") }
        } else {
            guard kind == nil else { throw WebSocketViolation("a message within another") }
            kind = header.opcode
        }
        // The sum cannot overflow: both are at most the limit, or the check of the first one fails.
        guard header.length <= limit, payload.count + header.length <= limit else {
            throw WebSocketViolation("a message is larger than \(limit) bytes", .messageTooBig)
        }
    }

    private mutating func end() throws(WebSocketViolation) -> WebSocketEvent? {
        guard let frame else { return nil }
        switch frame.opcode {
        case .ping: return .ping(control)
        case .pong: return .pong(control)
        case .close: return .close(try WebSocketClosure(payload: control))
        case .continuation, .text, .binary:
            guard frame.isFinal else { return nil }
            defer {
                kind = nil
                payload = []
            }
            guard kind == .text else { return .message(.data(Data(payload))) }
            guard let text = String(validating: payload, as: UTF8.self) else {
                throw WebSocketViolation("a text that is not UTF-8", .invalidPayload)
            }
            return .message(.text(text))
        }
    }
}
