/// The reading of the head of the server's response to the opening handshake, which comes in pieces of any size.
struct WebSocketHeadReader {
    /// The maximum size of all heads in bytes, informational ones included.
    static let limit = 64 * 1024

    private var line: [UInt8] = []
    private var lines: [UInt8] = []
    private var start: (version: String, status: Int, reason: String)?
    private var count = 0

    /// Reads the head.
    ///
    /// - Returns: the head, as soon as it is complete; the bytes that follow it are left.
    mutating func next(_ bytes: inout UnsafeRawBufferPointer) throws(TransferError) -> ResponseHead? {
        while let byte = bytes.first {
            bytes = UnsafeRawBufferPointer(rebasing: bytes[1...])
            count += 1
            guard count <= Self.limit else {
                throw TransferError(.tooLarge, "the head of the response to the WebSocket handshake is too large")
            }
            if byte != 0x0A {
                line.append(byte)
                continue
            }
            if line.last == 0x0D { line.removeLast() }
            defer { line.removeAll(keepingCapacity: true) }
            guard let start else {
                self.start = try Self.statusLine(line)
                continue
            }
            if !line.isEmpty {
                lines += line
                lines.append(0x0A)
                continue
            }
            let head = ResponseHead(
                status: start.status, version: start.version, reason: start.reason, lines: lines)
            self.start = nil
            lines = []
            // The final response follows an informational one (RFC 9110, section 15.2).
            if (100...199).contains(head.status), head.status != 101 { continue }
            return head
        }
        return nil
    }

    /// Parses a status line (RFC 9112, section 4).
    private static func statusLine(
        _ line: [UInt8]
    ) throws(TransferError) -> (version: String, status: Int, reason: String) {
        let words = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count >= 2, words[0].starts(with: "HTTP/1.".utf8), words[1].count == 3,
            let status = Int(String(decoding: words[1], as: UTF8.self)), status >= 100
        else {
            throw TransferError(.protocolNotAllowed, "the server did not answer the WebSocket handshake in HTTP/1.1")
        }
        return (
            String(decoding: words[0].dropFirst(5), as: UTF8.self), status,
            words.count > 2 ? String(decoding: words[2], as: UTF8.self) : ""
        )
    }
}
