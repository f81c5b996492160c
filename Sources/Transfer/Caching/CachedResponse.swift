import HTTPTypes

/// A response as it was stored.
public struct CachedResponse: Sendable {
    /// Without the fields of its one connection; see ``ResponseHead``.
    public let head: ResponseHead
    /// Of the answer, whole.
    public let body: [UInt8]
    /// When the request for it was sent: seconds since 1970.
    public let requestedAt: Int64
    /// When it came, or was last said to be right: seconds since 1970.
    public let storedAt: Int64
    /// What its request carried of the fields that it varies with, names in lower case.
    let varying: [VaryingField]

    /// One field of a request; `value` is `nil` where the request had none.
    struct VaryingField: Sendable, Equatable {
        let name: String
        let value: String?
    }

    /// Bytes of memory, about.
    var size: Int {
        let fields = varying.reduce(0) { $0 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) + 64 }
        return body.count + head.size + fields + 256
    }

    /// Whether a request with these fields may be given it (RFC 9111, section 4.1).
    func matches(_ fields: HTTPFields) -> Bool {
        varying.allSatisfy { Self.value(of: $0.name, in: fields) == $0.value }
    }

    /// What of the request's fields the response varies with: those that its `Vary` names, and `Authorization` always,
    /// so that a program which acts for several people never gives one of them another's answer.
    ///
    /// - Returns: `nil` where nothing can match, as with `Vary: *`.
    static func varying(of head: ResponseHead, request fields: HTTPFields) -> [VaryingField]? {
        var names: [String] = ["authorization"]
        for value in head.values(of: "vary") {
            for name in value.utf8.split(separator: UInt8(ascii: ",")) {
                let name = String(decoding: FieldText.trimmed(name), as: UTF8.self).lowercased()
                guard !name.isEmpty, !names.contains(name) else { continue }
                guard name != "*", HTTPField.Name(name) != nil, names.count < maximumVaryingFields else { return nil }
                names.append(name)
            }
        }
        return names.map { VaryingField(name: $0, value: Self.value(of: $0, in: fields)) }
    }

    /// Names in `Vary`; a response with more is not stored.
    static let maximumVaryingFields = 32

    /// All lines of a field as one, which says the same (RFC 9110, section 5.3).
    private static func value(of name: String, in fields: HTTPFields) -> String? {
        guard let name = HTTPField.Name(name) else { return nil }
        let values = fields[values: name]
        guard !values.isEmpty else { return nil }
        return values.map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self) }.joined(separator: ", ")
    }
}
