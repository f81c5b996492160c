import HTTPMessages

/// The directives of `Cache-Control`, of a request or a response (RFC 9111, section 5.2).
struct CacheControl {
    /// The maximum number of directives parsed; further ones are ignored.
    static let maximumDirectives = 64
    /// The greatest number of seconds represented; a larger one is read as this one (section 1.2.2).
    static let greatestDelta: Int64 = 1 << 31

    /// The arguments by directive name in lower case. If a name occurs more than once, the first occurrence counts
    /// (section 4.2.1).
    private var directives: [String: [UInt8]] = [:]

    /// - Parameter values: the values of all `Cache-Control` field lines.
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

    /// Whether the directive is present without an argument.
    func isBare(_ name: String) -> Bool { directives[name]?.isEmpty ?? false }

    /// Returns a directive's argument as a number of seconds.
    ///
    /// - Returns: `nil` if the directive is absent, `invalid` if its argument is not a number.
    func seconds(_ name: String, invalid: Int64) -> Int64? {
        guard let argument = directives[name] else { return nil }
        return Self.seconds(argument) ?? invalid
    }

    /// Parses a number of seconds, also that of `Age`. Returns ``greatestDelta`` for a larger one, `nil` for anything
    /// but digits.
    static func seconds(_ digits: some Collection<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { min($0 * 10 + Int64($1 - 0x30), greatestDelta) }
    }
}
