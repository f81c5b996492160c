import Glibc
public import HTTPTypes

/// The status and header fields of a response.
///
/// The field lines are stored as received and searched on each lookup, because only two or three fields of most
/// responses are used.
public struct ResponseHead: Sendable {
    /// The three-digit status code (RFC 9110, section 15).
    public let status: Int
    /// The protocol version in the status line, such as `1.1` or `2`.
    public let version: String
    /// The reason phrase of the status line, for people only (RFC 9112, section 4); empty in HTTP/2 and HTTP/3.
    public let reason: String
    /// The field lines, each terminated by LF, in the order of arrival.
    private let lines: [UInt8]

    package init(status: Int, version: String, reason: String = "", lines: [UInt8]) {
        self.status = status
        self.version = version
        self.reason = reason
        self.lines = lines
    }

    /// Creates the head of an HTTP/1.1 response, for example for a test of code that reads heads.
    ///
    /// - Parameters:
    ///   - status: the three-digit status code (RFC 9110, section 15).
    ///   - reason: the reason phrase.
    ///   - fields: the header fields, in order. Several fields may have the same name.
    public init(status: Int, reason: String = "", fields: HTTPFields = [:]) {
        var lines: [UInt8] = []
        for field in fields { lines += "\(field.name.rawName): \(field.value)\n".utf8 }
        self.init(status: status, version: "1.1", reason: reason, lines: lines)
    }

    /// Returns the first value of a field. Its name is case-insensitive.
    public func value(of name: StaticString) -> String? {
        var first: String?
        forEachValue(of: name) { value in
            first = Self.text(value)
            return false
        }
        return first
    }

    /// Returns the first value of a field whose name is not known before the program runs. The name is
    /// case-insensitive.
    @_disfavoredOverload
    public func value(of name: String) -> String? {
        var (name, first) = (name, String?.none)
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: ":")) else { return nil }
        name.withUTF8 { name in
            forEachValue(of: name) { value in
                first = Self.text(value)
                return false
            }
        }
        return first
    }

    /// Returns all values of a field, in order. Its name is case-insensitive.
    package func values(of name: StaticString) -> [String] {
        var all: [String] = []
        forEachValue(of: name) { value in
            all.append(Self.text(value))
            return true
        }
        return all
    }

    /// Calls `body` with the text after the colon of each line of a field, until it returns `false`. A lookup of a
    /// missing field does not allocate; a dozen such lookups are made for each response.
    private func forEachValue(of name: StaticString, _ body: (Slice<UnsafeRawBufferPointer>) -> Bool) {
        name.withUTF8Buffer { forEachValue(of: $0, body) }
    }

    private func forEachValue(
        of name: UnsafeBufferPointer<UInt8>, _ body: (Slice<UnsafeRawBufferPointer>) -> Bool
    ) {
        lines.withUnsafeBytes { lines in
            var start = 0
            while start < lines.count {
                let end = Self.firstLineFeed(in: lines, from: start)
                let colon = start + name.count
                // The place of the colon rules out most other names.
                if colon < end, lines[colon] == UInt8(ascii: ":"), Self.isName(name, in: lines, at: start),
                    !body(lines[(colon + 1)..<end])
                {
                    return
                }
                start = end + 1
            }
        }
    }

    /// Returns whether a line begins with a name, whatever the case of its letters.
    private static func isName(
        _ name: UnsafeBufferPointer<UInt8>, in lines: UnsafeRawBufferPointer, at start: Int
    ) -> Bool {
        for index in 0..<name.count where folded(lines[start + index]) != folded(name[index]) { return false }
        return true
    }

    /// Returns the index of the first LF at or after `start`; the end if there is none.
    private static func firstLineFeed(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        guard let base = bytes.baseAddress, start < bytes.count,
            let found = memchr(base + start, Int32(UInt8(ascii: "\n")), bytes.count - start)
        else { return bytes.count }
        return UnsafeRawPointer(found) - base
    }

    /// All fields, in order.
    public var headerFields: HTTPFields {
        var fields = HTTPFields()
        for line in lines.split(separator: UInt8(ascii: "\n")) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
            else { continue }
            fields.append(HTTPField(name: name, value: Self.text(line[(colon + 1)...])))
        }
        return fields
    }

    /// Returns this head without the fields of these lower-case names.
    package func removing(_ names: Set<String>) -> ResponseHead {
        ResponseHead(
            status: status, version: version, reason: reason, lines: Self.lines(lines) { !names.contains($0) })
    }

    /// Returns this head with its fields replaced by those of `other`, except the fields named in `kept`. Names are in
    /// lower case.
    package func updated(by other: ResponseHead, except kept: Set<String>) -> ResponseHead {
        var replaced: Set<String> = []
        let new = Self.lines(other.lines) { name in
            guard !kept.contains(name) else { return false }
            replaced.insert(name)
            return true
        }
        return ResponseHead(
            status: status, version: version, reason: reason,
            lines: Self.lines(lines) { !replaced.contains($0) } + new)
    }

    /// The size of the field lines, in bytes.
    package var size: Int { lines.count }

    /// Returns the lines whose lower-case field name satisfies the predicate. Lines without a name are dropped.
    private static func lines(_ lines: [UInt8], where isWanted: (String) -> Bool) -> [UInt8] {
        var chosen: [UInt8] = []
        for line in lines.split(separator: UInt8(ascii: "\n")) {
            guard let name = name(of: line), isWanted(String(decoding: name, as: UTF8.self)) else { continue }
            chosen += line
            chosen.append(UInt8(ascii: "\n"))
        }
        return chosen
    }

    private static func name(of line: ArraySlice<UInt8>) -> [UInt8]? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else { return nil }
        return line[..<colon].map(folded)
    }

    /// Returns a letter in lower case and other bytes unchanged. Setting bit 5 of every byte would turn a carriage
    /// return into a hyphen.
    private static func folded(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Returns a value without the white space around it and the line ending.
    private static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ value: Bytes) -> Bytes
    where Bytes.SubSequence == Bytes {
        var bytes = value
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 || last == 0x0D { bytes.removeLast() }
        return bytes
    }

    fileprivate static func text<Bytes: BidirectionalCollection<UInt8>>(_ line: Bytes) -> String
    where Bytes.SubSequence == Bytes {
        let bytes = trimmed(line)
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        // ISO-8859-1, the former encoding of field values (RFC 9110, section 5.5).
        return String(String.UnicodeScalarView(bytes.lazy.map { Unicode.Scalar($0) }))
    }

    /// The `Content-Length`; `nil` if it is missing or invalid, as a list or several different ones are, or if the body
    /// is chunked, in which case it does not count (RFC 9112, section 6.3).
    public var contentLength: Int64? {
        if isChunked { return nil }
        var (length, isValid) = (Int64?.none, true)
        forEachValue(of: "content-length") { value in
            let number = Int64(digits: Self.trimmed(value))
            isValid = number != nil && length ?? number == number
            length = number
            return isValid
        }
        return isValid ? length : nil
    }

    /// Whether the last transfer coding is `chunked`.
    private var isChunked: Bool {
        var isChunked = false
        forEachValue(of: "transfer-encoding") { value in
            isChunked = Self.text(value).lowercased().hasSuffix("chunked")
            return true
        }
        return isChunked
    }

    /// Whether the length of the body is given by a `Content-Length` that is not one number of 64 bits. libcurl ignores
    /// a number that is too large, and the end of the body would be unknown.
    package var hasInvalidContentLength: Bool {
        contentLength == nil && value(of: "content-length") != nil && !isChunked
    }

    /// The content codings in the order of their application, in lower case, as in `gzip, br`; `nil` for none or
    /// `identity` (RFC 9110, section 8.4).
    public var contentCoding: String? {
        let codings = contentCodings
        return codings.isEmpty ? nil : codings.joined(separator: ", ")
    }

    /// The content codings in the order of their application, in lower case, without `identity`. Some servers put them
    /// in quotes, or add parameters.
    package var contentCodings: [String] {
        values(of: "content-encoding").flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
            .map { FieldText.trimmed($0.prefix { $0 != UInt8(ascii: ";") }).filter { $0 != UInt8(ascii: "\"") } }
            .map { String(decoding: $0, as: UTF8.self).lowercased() }
            .filter { !$0.isEmpty && $0 != "identity" }
    }

    /// The body's media type in lower case, without its parameters (RFC 9110, section 8.3.1); `nil` if it is missing or
    /// too long to be one.
    package var mediaType: String? {
        guard let value = value(of: "content-type") else { return nil }
        let type = FieldText.trimmed(value.utf8.prefix { $0 != UInt8(ascii: ";") })
        guard (1...Self.longestMediaType).contains(type.count) else { return nil }
        return String(decoding: type, as: UTF8.self).lowercased()
    }

    /// The longest media type, in bytes: two names of at most 127 each (RFC 6838, section 4.2).
    private static let longestMediaType = 255

    /// The `charset` parameter of the body's media type, in lower case (RFC 9110, section 8.3.2).
    public var charset: String? {
        for parameter in value(of: "content-type")?.split(separator: ";").dropFirst() ?? [] {
            let words = parameter.split(separator: "=", maxSplits: 1)
                .map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self).lowercased() }
            guard words.count == 2, words[0] == "charset" else { continue }
            return words[1].filter { $0 != "\"" }
        }
        return nil
    }

    /// The validator of this version of the resource.
    public var validator: ResourceValidator {
        ResourceValidator(
            entityTag: value(of: "etag"), lastModified: value(of: "last-modified"), date: value(of: "date"))
    }

    /// The `Last-Modified` date in seconds since 1970 (RFC 9110, section 8.8.2).
    public var lastModified: Int64? { value(of: "last-modified").flatMap(HTTPDate.parse) }

    /// Returns the seconds to wait, from `Retry-After` as a number or a date; `nil` if it is missing or invalid (RFC
    /// 9110, section 10.2.3).
    ///
    /// - Parameter now: The current time in seconds since 1970.
    public func retryAfter(now: Int64) -> Int64? {
        guard let text = value(of: "retry-after") else { return nil }
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // A number that may overflow is replaced by the maximum.
            return text.utf8.count <= 18 ? Int64(text) : .max
        }
        // Some servers send fractions.
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        if parts.count == 2, let seconds = Int64(digits: parts[0].utf8), Int64(digits: parts[1].utf8) != nil {
            return seconds < .max ? seconds + 1 : .max
        }
        guard let date = HTTPDate.parse(text) else { return nil }
        return max(0, date - now)
    }
}

/// A parser that collects header lines until the head of the final response is complete.
package struct ResponseHeadParser {
    /// The maximum size of a head, in bytes of all lines.
    package static let maximumLength = 256 * 1024
    /// The initial capacity for the field lines, in bytes, which holds most heads of files. It is kept for as long as the
    /// response is received.
    private static let commonLength = 256
    /// The maximum number of heads, including informational heads and heads of proxies.
    static let maximumHeads = 32

    private var status = 0
    private var version = ""
    private var reason = ""
    private var lines: [UInt8] = []
    private var heads = 0

    package init() {}

    package enum Progress {
        case incomplete
        case complete(ResponseHead)
        case tooLong
    }

    /// Adds a header line.
    ///
    /// - Parameter line: The line from libcurl, with its line ending.
    package mutating func add(_ line: UnsafeRawBufferPointer) -> Progress {
        let isEmpty = line.allSatisfy { $0 == 0x0D || $0 == 0x0A }
        if isEmpty {
            guard status >= 200 else {
                lines.removeAll(keepingCapacity: true)
                return .incomplete
            }
            return .complete(ResponseHead(status: status, version: version, reason: reason, lines: lines))
        }
        if line.first == UInt8(ascii: "H"), line.starts(with: "HTTP/".utf8) {
            heads += 1
            guard heads <= Self.maximumHeads else { return .tooLong }
            lines.removeAll(keepingCapacity: true)
            var rest = line.dropFirst(5)
            version = String(decoding: Self.word(&rest), as: UTF8.self)
            status = 0
            for byte in Self.word(&rest).prefix(3) where (0x30...0x39).contains(byte) {
                status = status * 10 + Int(byte - 0x30)
            }
            while rest.first == 0x20 { rest.removeFirst() }
            reason = ResponseHead.text(rest.last == 0x0A ? rest.dropLast() : rest)
            return .incomplete
        }
        guard lines.count + line.count <= Self.maximumLength else { return .tooLong }
        if lines.isEmpty { lines.reserveCapacity(Self.commonLength) }
        lines.append(contentsOf: line)
        if line.last != 0x0A { lines.append(0x0A) }
        return .incomplete
    }

    /// Removes the next word of a status line, with the spaces before it.
    private static func word(_ line: inout Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        line = line.drop { $0 == 0x20 }
        let word = line.prefix { $0 != 0x20 }
        line = line[word.endIndex...]
        return word
    }
}
