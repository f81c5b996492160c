/// A parameter value to send with a request, as a form field or in JSON.
public enum ParameterValue: Sendable, Equatable {
    /// Text; a string in JSON.
    case string(String)
    /// An integer.
    case int(Int)
    /// A floating-point number. It must be finite to be sent.
    case double(Double)
    /// A Boolean, in a form as ``URLEncoding/BoolEncoding`` defines, in JSON `true` or `false`.
    case bool(Bool)
    /// An array, in a form as ``URLEncoding/ArrayEncoding`` defines.
    case array([ParameterValue])
    /// A dictionary of members by name.
    case dictionary([String: ParameterValue])
    /// A null; in a URL an empty value.
    case null

    /// The maximum nesting depth of arrays and dictionaries; a deeper nesting is an error.
    public static let maximumDepth = 128
}

/// Parameter values by name.
public typealias Parameters = [String: ParameterValue]

extension ParameterValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self = .string(value) }
}

extension ParameterValue: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int) { self = .int(value) }
}

extension ParameterValue: ExpressibleByFloatLiteral {
    public init(floatLiteral value: Double) { self = .double(value) }
}

extension ParameterValue: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension ParameterValue: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }
}

extension ParameterValue: ExpressibleByDictionaryLiteral {
    /// Creates a dictionary; for a repeated name, the last value is used.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .dictionary(Dictionary(elements) { $1 })
    }
}

extension ParameterValue: ExpressibleByNilLiteral {
    public init(nilLiteral: ()) { self = .null }
}

extension ParameterValue: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .string(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .bool(let value): try container.encode(value)
        case .array(let elements): try container.encode(elements)
        case .dictionary(let members): try container.encode(members)
        case .null: try container.encodeNil()
        }
    }
}

extension ParameterValue {
    /// Returns the shortest decimal form that parses back to the same number; it is valid in JSON too (RFC 8259,
    /// section 6).
    static func digits(of value: Double, named name: String) throws(TransferError) -> String {
        guard value.isFinite else {
            throw TransferError(.invalidRequest, "the parameter \(name.debugDescription) is not a finite number")
        }
        return value.description
    }

    static func tooDeep(named name: String) -> TransferError {
        TransferError(.invalidRequest, "the parameter \(name.debugDescription) holds more than \(maximumDepth) levels")
    }
}
