/// The directives of `Cache-Control`, of a request or a response (RFC 9111, section 5.2).
struct CacheControl {
    /// Directives that are read; what follows them is passed over.
    static let maximumDirectives = 64
    /// Seconds: what a greater number means (section 1.2.2).
    static let greatestDelta: Int64 = 1 << 31

    /// By name in lower case; of several of one name the first counts (section 4.2.1).
    private var directives: [String: [UInt8]] = [:]

    /// - Parameter values: of all the field's lines.
    init(_ values: [String]) {
        for value in values {
            var rest = Array(value.utf8)[...]
            while !rest.isEmpty, directives.count < Self.maximumDirectives { take(&rest) }
        }
    }

    private mutating func take(_ rest: inout ArraySlice<UInt8>) {
        let end = rest.firstIndex { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ",") } ?? rest.endIndex
        let name = String(decoding: FieldText.trimmed(rest[..<end]), as: UTF8.self).lowercased()
        rest = rest[end...]
        var argument: [UInt8] = []
        if rest.first == UInt8(ascii: "=") {
            rest = rest.dropFirst()
            while let first = rest.first, FieldText.isBlank(first) { rest = rest.dropFirst() }
            if rest.first == UInt8(ascii: "\"") { argument = FieldText.quotedString(&rest) }
            let end = rest.firstIndex(of: UInt8(ascii: ",")) ?? rest.endIndex
            argument += FieldText.trimmed(rest[..<end])
            rest = rest[end...]
        }
        rest = rest.dropFirst()
        if !name.isEmpty, directives[name] == nil { directives[name] = argument }
    }

    var isEmpty: Bool { directives.isEmpty }

    func contains(_ name: String) -> Bool { directives[name] != nil }

    /// Whether the directive is there without an argument.
    func isBare(_ name: String) -> Bool { directives[name]?.isEmpty ?? false }

    /// A directive's seconds.
    ///
    /// - Returns: `nil` where it is absent, `invalid` where it is no number.
    func seconds(_ name: String, invalid: Int64) -> Int64? {
        guard let argument = directives[name] else { return nil }
        return Self.seconds(argument) ?? invalid
    }

    /// A number of seconds, as in `Age` too; one too large is ``greatestDelta``.
    static func seconds(_ digits: some Collection<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { min($0 * 10 + Int64($1 - 0x30), greatestDelta) }
    }
}
