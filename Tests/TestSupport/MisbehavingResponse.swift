/// A response of a ``MisbehavingServer``: created as a correct response, and then modified.
package struct MisbehavingResponse: Sendable {
    package enum Piece: Sendable {
        /// A range of a resource, sent at `rate` bytes per second if given.
        case content(Resource, Range<Int64>, rate: Int? = nil)
        case bytes([UInt8])
        case pause(milliseconds: Int)
        /// Bytes that are not framed as a chunk even if the response is chunked.
        case raw([UInt8])
        /// Raw bytes that are repeated until the client disconnects.
        case endless([UInt8])
    }

    /// The action after the last byte.
    package enum Ending: Sendable {
        case open, close, reset
        /// The connection stays open and silent until the client disconnects.
        case hang
    }

    /// Raw bytes sent before the head, for informational responses.
    package var interim: [UInt8] = []
    package var version = "HTTP/1.1"
    package var status: Int
    package var fields: [String]
    package var body: [Piece] = []
    package var isChunked = false
    /// Whether the head is omitted and only the body is sent.
    package var isSilent = false
    package var ending = Ending.open

    /// Creates a small response with a Content-Length.
    package init(_ status: Int, _ fields: [String] = [], text: String = "") {
        self.status = status
        self.fields = fields + ["Content-Length: \(text.utf8.count)"]
        body = [.bytes(Array(text.utf8))]
    }

    /// Returns raw bytes in place of a response; without pieces, nothing is sent.
    package static func raw(_ pieces: [Piece] = [], _ ending: Ending = .close) -> MisbehavingResponse {
        var answer = MisbehavingResponse(200)
        answer.isSilent = true
        answer.body = pieces
        answer.ending = ending
        return answer
    }

    /// Creates the response of a correct server (RFC 9110, sections 13.1.5 and 14).
    ///
    /// - Parameters:
    ///   - resource: the resource, whose ETag is included.
    ///   - fields: header fields that are included in every response.
    ///   - ignoresCondition: whether `If-Range` is ignored, contrary to the RFC.
    ///   - rate: the rate of this body in bytes per second.
    package init(
        honest resource: Resource, to question: MisbehavingServer.Question, fields: [String] = [],
        ignoresCondition: Bool = false,
        rate: Int? = MisbehavingResponse.rate
    ) {
        var fields = fields
        if let tag = resource.entityTag { fields.append("ETag: \(tag)") }
        var range = 0..<resource.size
        status = 200
        if question.asksForRange, ignoresCondition || question.ifRange.map({ Self.holds($0, fields) }) ?? true {
            guard let asked = question.range(of: resource.size) else {
                status = 416
                self.fields = fields + ["Content-Range: bytes */\(resource.size)", "Content-Length: 0"]
                return
            }
            range = asked
            status = 206
            fields.append("Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(resource.size)")
        }
        self.fields = fields + ["Content-Length: \(range.count)"]
        body = [.content(resource, range, rate: rate)]
    }

    /// Creates a response with the whole resource, whatever range was requested.
    package init(whole resource: Resource, fields: [String] = [], rate: Int? = MisbehavingResponse.rate) {
        status = 200
        self.fields = fields + (resource.entityTag.map { ["ETag: \($0)"] } ?? []) + ["Content-Length: \(resource.size)"]
        body = [.content(resource, 0..<resource.size, rate: rate)]
    }

    /// The default rate in bytes per second. A file of a dozen megabytes takes long enough for other connections to
    /// join.
    package static let rate = 24_000_000

    private static func holds(_ condition: String, _ fields: [String]) -> Bool {
        fields.contains {
            $0 == "ETag: \(condition)" && !condition.hasPrefix("W/") || $0 == "Last-Modified: \(condition)"
        }
    }

    // MARK: Modification

    /// Whether the response is partial (206).
    package var isPart: Bool { status == 206 }

    package mutating func remove(_ name: String) {
        fields.removeAll { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }

    /// - Parameter value: the new value; `nil` removes the field.
    package mutating func set(_ name: String, _ value: String?) {
        remove(name)
        if let value { fields.append("\(name): \(value)") }
    }

    package func with(_ name: String, _ value: String?) -> MisbehavingResponse {
        var answer = self
        answer.set(name, value)
        return answer
    }

    /// Returns the response with chunked coding and without a Content-Length.
    package func chunked() -> MisbehavingResponse {
        var answer = self
        answer.remove("Content-Length")
        answer.fields.append("Transfer-Encoding: chunked")
        answer.isChunked = true
        return answer
    }

    /// Returns the response with a body that ends after `limit` bytes.
    package func cut(after limit: Int64, _ ending: Ending = .close) -> MisbehavingResponse {
        var answer = self
        var left = limit
        answer.body = []
        for piece in body {
            switch piece {
            case .content(let resource, let range, let rate):
                let end = min(range.upperBound, range.lowerBound + left)
                if end > range.lowerBound { answer.body.append(.content(resource, range.lowerBound..<end, rate: rate)) }
                left -= end - range.lowerBound
            case .bytes(let bytes):
                let count = min(Int64(bytes.count), left)
                answer.body.append(.bytes(Array(bytes.prefix(Int(count)))))
                left -= count
            case .raw, .pause, .endless: answer.body.append(piece)
            }
        }
        answer.ending = ending
        return answer
    }

    /// The number of content bytes in the body.
    package var length: Int64 {
        body.reduce(0) { sum, piece in
            switch piece {
            case .content(_, let range, _): sum + Int64(range.count)
            case .bytes(let bytes): sum + Int64(bytes.count)
            case .raw, .pause, .endless: sum
            }
        }
    }

    /// Returns the response with one bit of the resource's byte at `offset` inverted, if the body contains that byte.
    package func flippingBit(at offset: Int64) -> MisbehavingResponse {
        var answer = self
        answer.body = body.flatMap { piece -> [Piece] in
            guard case .content(let resource, let range, let rate) = piece, range.contains(offset) else {
                return [piece]
            }
            let wrong = resource.bytes(offset..<(offset + 1)).map { $0 ^ 0x10 }
            return [
                .content(resource, range.lowerBound..<offset, rate: rate), .bytes(wrong),
                .content(resource, (offset + 1)..<range.upperBound, rate: rate),
            ]
        }
        return answer
    }
}
