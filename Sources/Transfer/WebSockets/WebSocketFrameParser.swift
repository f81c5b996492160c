/// A parser of the frames that a server sends: a state machine without I/O, to which the bytes come in pieces of any
/// size.
struct WebSocketFrameParser {
    /// The header of a frame.
    struct Header: Equatable {
        var opcode: WebSocketOpcode
        /// Whether it is the last frame of its message.
        var isFinal: Bool
        /// The size of the payload in bytes.
        var length: Int
    }

    /// A part of a frame.
    enum Part {
        case header(Header)
        /// Bytes of the payload, valid as long as those that the parser was given.
        case payload(UnsafeRawBufferPointer)
        /// The end of the frame.
        case end
    }

    private enum State {
        case header
        case payload(left: Int)
    }

    private var state = State.header
    /// The bytes of a header that is not complete, at most ``WebSocketFrame/longestHeader``.
    private var head: [UInt8] = []

    /// Returns the next part, and removes its bytes.
    ///
    /// - Returns: `nil` if the rest of the part has not been received; all bytes are consumed then.
    mutating func next(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> Part? {
        switch state {
        case .header:
            guard let header = try header(&bytes) else { return nil }
            state = .payload(left: header.length)
            head.removeAll(keepingCapacity: true)
            return .header(header)
        case .payload(left: 0):
            state = .header
            return .end
        case .payload(let left):
            guard !bytes.isEmpty else { return nil }
            let count = min(left, bytes.count)
            state = .payload(left: left - count)
            defer { bytes = UnsafeRawBufferPointer(rebasing: bytes[count...]) }
            return .payload(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
    }

    private mutating func header(_ bytes: inout UnsafeRawBufferPointer) throws(WebSocketViolation) -> Header? {
        while head.count < 2 {
            guard take(&bytes) else { return nil }
        }
        guard head[0] & 0x70 == 0 else { throw WebSocketViolation("a reserved bit without an extension") }
        guard let opcode = WebSocketOpcode(rawValue: head[0] & 0x0F) else {
            throw WebSocketViolation("the unknown opcode \(head[0] & 0x0F)")
        }
        guard head[1] & 0x80 == 0 else { throw WebSocketViolation("a masked frame") }
        let isFinal = head[0] & 0x80 != 0
        let short = Int(head[1])
        if opcode.isControl {
            guard isFinal else { throw WebSocketViolation("a control frame in fragments") }
            guard short <= WebSocketFrame.longestControl else {
                throw WebSocketViolation("a control frame that is long")
            }
        }
        let size = short < 126 ? 0 : short == 126 ? 2 : 8
        while head.count < 2 + size {
            guard take(&bytes) else { return nil }
        }
        guard size > 0 else { return Header(opcode: opcode, isFinal: isFinal, length: short) }
        var length: UInt64 = 0
        for byte in head[2..<2 + size] { length = length << 8 | UInt64(byte) }
        // The length is in the shortest form, and its highest bit is 0 (RFC 6455, section 5.2).
        guard length >= (size == 2 ? 126 : 0x1_0000), let length = Int(exactly: length) else {
            throw WebSocketViolation("a length in a form that is not allowed")
        }
        return Header(opcode: opcode, isFinal: isFinal, length: length)
    }

    /// Moves a byte to the header.
    private mutating func take(_ bytes: inout UnsafeRawBufferPointer) -> Bool {
        guard let byte = bytes.first else { return false }
        head.append(byte)
        bytes = UnsafeRawBufferPointer(rebasing: bytes[1...])
        return true
    }
}
