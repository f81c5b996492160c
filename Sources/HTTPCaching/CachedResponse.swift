public import HTTPMessages
import HTTPTypes

/// A stored response.
public struct CachedResponse: Sendable {
    /// The head without the fields of its one connection; see ``ResponseHead``.
    public let head: ResponseHead
    /// The complete body.
    public let body: [UInt8]
    /// The time the request was sent, in seconds since 1970.
    public let requestedAt: Int64
    /// The time the response was received or last validated, in seconds since 1970.
    public let storedAt: Int64
    /// The values, in the original request, of the fields that the response varies with; names in lower case.
    let varying: [VaryingField]

    /// A header field of a request; `value` is `nil` if the request did not have it.
    struct VaryingField: Sendable, Equatable {
        let name: String
        let value: String?
    }

    /// The approximate memory use in bytes.
    var size: Int {
        let fields = varying.reduce(0) { $0 + $1.name.utf8.count + ($1.value?.utf8.count ?? 0) + 64 }
        return body.count + head.size + fields + 256
    }

    /// Whether the response may be used for a request with these fields (RFC 9111, section 4.1).
    func matches(_ fields: HTTPFields) -> Bool {
        varying.allSatisfy { Self.value(of: $0.name, in: fields) == $0.value }
    }

    /// Returns the request's fields that the response varies with: those named by its `Vary`, and always
    /// `Authorization`. A program that acts for several users thus never gives one of them another's response.
    ///
    /// - Returns: `nil` if no request can match, as with `Vary: *`.
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

    /// The maximum number of names in `Vary`; a response with more is not stored.
    static let maximumVaryingFields = 32

    /// Returns all lines of a field joined into one, which is equivalent (RFC 9110, section 5.3).
    private static func value(of name: String, in fields: HTTPFields) -> String? {
        guard let name = HTTPField.Name(name) else { return nil }
        let values = fields[values: name]
        guard !values.isEmpty else { return nil }
        return values.map { String(decoding: FieldText.trimmed($0.utf8), as: UTF8.self) }.joined(separator: ", ")
    }
}
