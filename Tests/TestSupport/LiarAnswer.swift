/// What a ``Liar`` says to one request: put together as an honest server would, and then bent.
package struct LiarAnswer: Sendable {
    package enum Piece: Sendable {
        /// Of a resource, at so many bytes a second where that is said.
        case content(Resource, Range<Int64>, rate: Int? = nil)
        case bytes([UInt8])
        case pause(milliseconds: Int)
        /// Not framed in chunks, whatever the others are.
        case raw([UInt8])
        /// As raw, again and again until the client goes.
        case endless([UInt8])
    }

    /// What follows the last byte.
    package enum Ending: Sendable {
        case open, close, reset
        /// Nothing, until the client goes.
        case hang
    }

    /// Sent before the head as it is: informational answers.
    package var interim: [UInt8] = []
    package var version = "HTTP/1.1"
    package var status: Int
    package var fields: [String]
    package var body: [Piece] = []
    package var isChunked = false
    /// No head is sent: what is said is the body alone.
    package var isSilent = false
    package var ending = Ending.open

    /// A small answer with a length.
    package init(_ status: Int, _ fields: [String] = [], text: String = "") {
        self.status = status
        self.fields = fields + ["Content-Length: \(text.utf8.count)"]
        body = [.bytes(Array(text.utf8))]
    }

    /// Bytes as they are in place of an answer, and none without pieces.
    package static func raw(_ pieces: [Piece] = [], _ ending: Ending = .close) -> LiarAnswer {
        var answer = LiarAnswer(200)
        answer.isSilent = true
        answer.body = pieces
        answer.ending = ending
        return answer
    }

    /// What an honest server answers (RFC 9110, sections 13.1.5 and 14).
    ///
    /// - Parameters:
    ///   - resource: its entity tag goes along.
    ///   - fields: go along with every answer.
    ///   - ignoresCondition: `If-Range` is passed over: not that honest.
    ///   - rate: bytes a second of this body.
    package init(
        honest resource: Resource, to question: Liar.Question, fields: [String] = [], ignoresCondition: Bool = false,
        rate: Int? = LiarAnswer.rate
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

    /// The whole, whatever was asked.
    package init(whole resource: Resource, fields: [String] = [], rate: Int? = LiarAnswer.rate) {
        status = 200
        self.fields = fields + (resource.entityTag.map { ["ETag: \($0)"] } ?? []) + ["Content-Length: \(resource.size)"]
        body = [.content(resource, 0..<resource.size, rate: rate)]
    }

    /// So fast that a file of a dozen megabytes takes long enough for others to join.
    package static let rate = 24_000_000

    private static func holds(_ condition: String, _ fields: [String]) -> Bool {
        fields.contains {
            $0 == "ETag: \(condition)" && !condition.hasPrefix("W/") || $0 == "Last-Modified: \(condition)"
        }
    }

    // MARK: Bending

    /// Whether it is a part.
    package var isPart: Bool { status == 206 }

    package mutating func remove(_ name: String) {
        fields.removeAll { $0.lowercased().hasPrefix(name.lowercased() + ":") }
    }

    /// - Parameter value: `nil` takes the field away.
    package mutating func set(_ name: String, _ value: String?) {
        remove(name)
        if let value { fields.append("\(name): \(value)") }
    }

    package func with(_ name: String, _ value: String?) -> LiarAnswer {
        var answer = self
        answer.set(name, value)
        return answer
    }

    /// In chunks, its length not told.
    package func chunked() -> LiarAnswer {
        var answer = self
        answer.remove("Content-Length")
        answer.fields.append("Transfer-Encoding: chunked")
        answer.isChunked = true
        return answer
    }

    /// The body breaks off after so many bytes of it.
    package func cut(after limit: Int64, _ ending: Ending = .close) -> LiarAnswer {
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

    /// Bytes of content in the body.
    package var length: Int64 {
        body.reduce(0) { sum, piece in
            switch piece {
            case .content(_, let range, _): sum + Int64(range.count)
            case .bytes(let bytes): sum + Int64(bytes.count)
            case .raw, .pause, .endless: sum
            }
        }
    }

    /// One bit of the resource's byte at `offset` is another, if the body has it.
    package func flippingBit(at offset: Int64) -> LiarAnswer {
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
