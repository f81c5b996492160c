import Glibc

/// The response of a ``ScriptedServer`` to one request.
package enum ScriptedAnswer: Sendable {
    /// The way in which a connection ends early.
    package enum Cut: Sendable {
        /// An orderly end (FIN).
        case close
        /// A reset (RST).
        case reset
    }

    /// A correct response with the resource: ranges, If-Range and ETag (RFC 9110, section 14).
    case serve(Resource, headers: [String] = [])
    /// A `serve` response whose connection ends after `after` bytes of the body.
    case serveThenCut(Resource, after: Int64, Cut = .close, headers: [String] = [])
    /// A `serve` response that is limited to `bytesPerSecond` after `after` bytes of the body.
    case drip(Resource, after: Int64 = 0, bytesPerSecond: Int)
    /// The whole resource in chunks, without a Content-Length and regardless of ranges.
    case chunked(Resource)
    /// A whole response with a wrong Content-Length, after which the connection ends.
    case claim(Resource, length: Int64)
    /// A response with its own body.
    case status(Int, headers: [String] = [], body: String = "")
    /// A redirect (302) to a URL.
    case redirect(String)
    /// A missing response: the connection stays open until the client disconnects.
    case hang
}

/// A writer that sends one response to a connection.
struct AnswerWriter {
    let descriptor: Int32
    let request: ScriptedServer.Request
    let line: NetworkLine.Connection?
    let sent: (Int64) -> Void

    /// Sends the response.
    ///
    /// - Returns: whether the connection can carry another request.
    func write(_ answer: ScriptedAnswer) -> Bool {
        switch answer {
        case .serve(let resource, let headers):
            return serve(resource, headers)
        case .serveThenCut(let resource, let limit, let cut, let headers):
            guard serve(resource, headers, stopAfter: limit) else { return end(cut) }
            return end(cut)
        case .drip(let resource, let start, let rate):
            return serve(resource, pace: rate, after: start)
        case .chunked(let resource):
            return chunked(resource)
        case .claim(let resource, let length):
            guard head(200, ["Content-Length: \(length)"]) else { return false }
            _ = body(resource, 0..<resource.size, pace: nil)
            return false
        case .status(let code, let headers, let text):
            guard head(code, headers + ["Content-Length: \(text.utf8.count)"]) else { return false }
            guard request.method == "HEAD" || sendAll(descriptor, Array(text.utf8)) else { return false }
            return !headers.contains("Connection: close")
        case .redirect(let location):
            return head(302, ["Location: \(location)", "Content-Length: 0"])
        case .hang:
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
            return false
        }
    }

    private func head(_ status: Int, _ headers: [String]) -> Bool {
        let lines = ["HTTP/1.1 \(status) Scripted"] + headers + ["", ""]
        return sendAll(descriptor, Array(lines.joined(separator: "\r\n").utf8))
    }

    private func serve(
        _ resource: Resource, _ headers: [String] = [], pace: Int? = nil, after start: Int64 = 0,
        stopAfter limit: Int64 = .max
    ) -> Bool {
        var headers = headers + ["Accept-Ranges: bytes"]
        if let tag = resource.entityTag { headers.append("ETag: \(tag)") }
        var range = 0..<resource.size
        var status = 200
        let condition = request.header("if-range")
        if let asked = request.header("range"), condition == nil || condition == resource.entityTag {
            guard let wanted = Self.parse(asked, size: resource.size) else {
                return head(416, headers + ["Content-Range: bytes */\(resource.size)", "Content-Length: 0"])
            }
            range = wanted
            status = 206
            headers.append("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(resource.size)")
        }
        guard head(status, headers + ["Content-Length: \(range.count)"]) else { return false }
        if request.method == "HEAD" { return true }
        let end = limit < Int64(range.count) ? range.lowerBound + limit : range.upperBound
        let middle = min(range.lowerBound + start, end)
        return body(resource, range.lowerBound..<middle, pace: nil) && body(resource, middle..<end, pace: pace)
            && end == range.upperBound
    }

    /// Parses a single range with a first position: `bytes=5-`, `bytes=5-9`.
    static func parse(_ header: String, size: Int64) -> Range<Int64>? {
        guard header.hasPrefix("bytes=") else { return nil }
        let ends = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(ends[0]), first < size else { return nil }
        guard !ends[1].isEmpty else { return first..<size }
        guard let last = Int64(ends[1]), last >= first else { return nil }
        return first..<min(last + 1, size)
    }

    private func body(_ resource: Resource, _ range: Range<Int64>, pace: Int?) -> Bool {
        guard let line else { return plainBody(resource, range, pace: pace) }
        var offset = range.lowerBound
        return line.pass(Int64(range.count)) { count in
            defer { offset += Int64(count) }
            return plainBody(resource, offset..<(offset + Int64(count)), pace: nil)
        }
    }

    private func plainBody(_ resource: Resource, _ range: Range<Int64>, pace: Int?) -> Bool {
        let piece = pace.map { max(1, min($0 / 20, 1 << 16)) } ?? 1 << 16
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 16)
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(Int64(piece), range.upperBound - offset))
            let slice = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            resource.fill(slice, from: offset)
            guard sendAll(descriptor, UnsafeRawBufferPointer(slice)) else { return false }
            sent(Int64(count))
            offset += Int64(count)
            if let pace { usleep(UInt32(count * 1_000_000 / pace)) }
        }
        return true
    }

    private func chunked(_ resource: Resource) -> Bool {
        guard head(200, ["Transfer-Encoding: chunked"]) else { return false }
        var offset: Int64 = 0
        while offset < resource.size {
            let end = min(offset + 1 << 16, resource.size)
            guard sendAll(descriptor, Array("\(String(end - offset, radix: 16))\r\n".utf8)),
                body(resource, offset..<end, pace: nil), sendAll(descriptor, Array("\r\n".utf8))
            else { return false }
            offset = end
        }
        return sendAll(descriptor, Array("0\r\n\r\n".utf8))
    }

    private func end(_ cut: ScriptedAnswer.Cut) -> Bool {
        if case .reset = cut {
            // Closing with a linger time of zero sends RST instead of FIN (socket(7)).
            var none = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
        }
        return false
    }
}
