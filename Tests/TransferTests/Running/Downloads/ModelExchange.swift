import Curl
import TestSupport

@testable import Transfer

/// A response of a model server on its way to the client, read as libcurl reads HTTP/1.1 (RFC 9112).
struct ModelExchange {
    /// What libcurl reports next.
    enum Step {
        /// A line of the head, or of the trailers.
        case line([UInt8])
        case body(ModelContent)
        case end(Ending)
    }

    enum Ending {
        case finished
        /// The server sends nothing more and leaves the connection open.
        case stalled
        case failed(CurlError.Code)
    }

    private enum Wire {
        /// A line with its ending.
        case line([UInt8])
        case content(ModelContent, rate: Int?)
        case endless([UInt8])
    }

    private enum Framing: Equatable {
        case head
        case length(left: Int64)
        case untilClose
        case chunkSize
        case chunk(left: Int64)
        case chunkEnd
        case trailers
        case complete
    }

    private var wire: [Wire]
    private var ending: MisbehavingResponse.Ending
    private var framing = Framing.head
    private var status = 0
    private let isEmpty: Bool
    private var isChunked = false
    private var length: Int64?
    private var failure: CurlError.Code?

    /// The longest line that libcurl takes, in bytes.
    private static let longestLine = 100 * 1024

    /// - Parameter loss: the number of bytes at the end of the body that a reset discards.
    init(_ response: MisbehavingResponse, loss: Int64 = 0) {
        var response = response
        if case .reset = response.ending, loss > 0, response.length > 0 {
            response = response.cut(after: max(0, response.length - loss), .reset)
        }
        ending = response.ending
        wire = []
        if !response.isSilent {
            let lines = ["\(response.version) \(response.status) Said"] + response.fields + [""]
            wire = lines.map { Self.line($0) }
            if !response.interim.isEmpty { wire.insert(.content(.bytes(response.interim), rate: nil), at: 0) }
        }
        for piece in response.body { wire += Self.wire(piece, isChunked: response.isChunked) }
        if response.isChunked, case .open = response.ending { wire += [Self.line("0"), Self.line("")] }
        isEmpty = wire.isEmpty
    }

    private static func line(_ text: String) -> Wire { .line(Array("\(text)\r\n".utf8)) }

    private static func wire(_ piece: MisbehavingResponse.Piece, isChunked: Bool) -> [Wire] {
        let (content, speed): (ModelContent, Int?)
        switch piece {
        case .content(let resource, let range, let rate):
            (content, speed) = (.resource(resource, range), rate == MisbehavingResponse.rate ? nil : rate)
        case .bytes(let bytes): (content, speed) = (.bytes(bytes), nil)
        case .raw(let bytes): return [.content(.bytes(bytes), rate: nil)]
        case .endless(let bytes): return [.endless(bytes)]
        case .pause: return []
        }
        guard content.count > 0 else { return [] }
        guard isChunked else { return [.content(content, rate: speed)] }
        return [line(String(content.count, radix: 16)), .content(content, rate: speed), line("")]
    }

    // MARK: State

    /// Whether nothing at all comes before the connection ends.
    var isSilentEnd: Bool {
        guard isEmpty else { return false }
        switch ending {
        case .close, .reset: return true
        case .open, .hang: return false
        }
    }

    /// Whether the head is complete.
    var hasHead: Bool { framing != .head }

    /// Whether the next step is the end.
    var isAtEnd: Bool { wire.isEmpty || framing == .complete }

    /// Whether the connection can carry another request after a complete response.
    var isReusable: Bool {
        guard case .open = ending, framing == .complete else { return false }
        return wire.isEmpty
    }

    /// Ends the response here, as a server does that closes every connection.
    mutating func close() {
        wire = []
        ending = .close
    }

    // MARK: Reading

    /// Returns what libcurl reports next.
    ///
    /// - Parameters:
    ///   - most: the largest number of body bytes.
    ///   - milliseconds: the time since the last bytes, in which a slow server has sent some.
    mutating func next(upTo most: Int64, after milliseconds: Int64 = 1_000) -> Step {
        while true {
            if let failure { return .end(.failed(failure)) }
            switch framing {
            case .head:
                guard let line = line() else { break }
                return readHead(line)
            case .trailers:
                guard let line = line() else { break }
                if line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) {
                    framing = .complete
                    continue
                }
                return .line(line)
            case .chunkSize:
                guard let line = line() else { break }
                readChunkSize(line)
                continue
            case .chunkEnd:
                guard line() != nil else { break }
                framing = .chunkSize
                continue
            case .complete: return .end(.finished)
            case .length(let left):
                guard let content = content(upTo: min(left, most), milliseconds) else { break }
                framing = content.count == left ? .complete : .length(left: left - content.count)
                return .body(content)
            case .chunk(let left):
                guard let content = content(upTo: min(left, most), milliseconds) else { break }
                framing = content.count == left ? .chunkEnd : .chunk(left: left - content.count)
                return .body(content)
            case .untilClose:
                guard let content = content(upTo: most, milliseconds) else { break }
                return .body(content)
            }
            return .end(failure.map { .failed($0) } ?? endOfConnection)
        }
    }

    private var endOfConnection: Ending {
        switch (ending, framing) {
        case (.open, _), (.hang, _): .stalled
        case (.reset, _): .failed(.recvError)
        case (.close, .untilClose): .finished
        case (.close, .head): .failed(isEmpty ? .gotNothing : .recvError)
        case (.close, _): .failed(.partialFile)
        }
    }

    private mutating func content(upTo most: Int64, _ milliseconds: Int64) -> ModelContent? {
        guard let first = wire.first else { return nil }
        switch first {
        case .line(let line):
            // A line in the place of a body is as good as other bytes.
            wire[0] = .content(.bytes(line), rate: nil)
            return content(upTo: most, milliseconds)
        case .content(let content, let rate):
            var count = min(content.count, most)
            if let rate { count = min(count, max(1, Int64(rate) * milliseconds / 1000)) }
            if count == content.count {
                wire.removeFirst()
                return content
            }
            wire[0] = .content(content.part(count, content.count), rate: rate)
            return content.part(0, count)
        case .endless(let bytes): return .bytes(bytes)
        }
    }

    /// Returns the next line, with its line ending; `nil` if there is none, or if it is too long.
    private mutating func line() -> [UInt8]? {
        var line: [UInt8] = []
        while let first = wire.first {
            switch first {
            case .line(let next):
                wire.removeFirst()
                return line + next
            case .endless(let bytes):
                if line.isEmpty, bytes.firstIndex(of: 0x0A) == bytes.count - 1 { return bytes }
                wire.insert(.content(.bytes(bytes), rate: nil), at: 0)
            case .content(let content, let rate):
                // A resource in the place of a line has no line ending for long.
                let bytes = content.part(0, min(content.count, 65_536)).bytes
                let end = bytes.firstIndex(of: 0x0A).map { $0 + 1 }
                line += bytes[..<(end ?? bytes.count)]
                let taken = Int64(end ?? bytes.count)
                if taken == content.count {
                    wire.removeFirst()
                } else {
                    wire[0] = .content(content.part(taken, content.count), rate: rate)
                }
                if end != nil { return line }
            }
            if line.count > Self.longestLine {
                failure = .outOfMemory
                return nil
            }
        }
        return nil
    }

    private mutating func readHead(_ line: [UInt8]) -> Step {
        if status == 0 {
            let words = String(decoding: line, as: UTF8.self).split(separator: " ")
            guard words.count > 1, words[0].hasPrefix("HTTP/"), let code = Int(words[1]) else {
                return .end(.failed(.unsupportedProtocol))
            }
            status = code
        } else if line.count <= 2 {
            if status >= 200 { framing = framingOfBody } else { status = 0 }
        } else if line[0] == UInt8(ascii: "C") || line[0] == UInt8(ascii: "T") {
            return readField(line)
        }
        return .line(line)
    }

    /// Reads a field that may describe the framing. All names of the catalogue begin with a capital.
    private mutating func readField(_ line: [UInt8]) -> Step {
        let words = String(decoding: line, as: UTF8.self).lowercased().split(separator: ":", maxSplits: 1)
        let value = words.count > 1 ? words[1].filter { !$0.isWhitespace } : ""
        switch words[0] {
        case "transfer-encoding": isChunked = value == "chunked"
        case "content-length":
            let digits = value.prefix { $0.isNumber }
            if digits.isEmpty { return .end(.failed(.weirdServerReply)) }
            length = Int64(digits)
        default: break
        }
        return .line(line)
    }

    private var framingOfBody: Framing {
        if status == 204 || status == 304 { return .complete }
        if isChunked { return .chunkSize }
        return length.map { $0 == 0 ? .complete : .length(left: $0) } ?? .untilClose
    }

    private mutating func readChunkSize(_ line: [UInt8]) {
        let digits = String(decoding: line, as: UTF8.self).prefix { $0.isHexDigit }
        guard let size = Int64(digits, radix: 16) else {
            failure = .recvError
            return
        }
        framing = size == 0 ? .trailers : .chunk(left: size)
    }
}
