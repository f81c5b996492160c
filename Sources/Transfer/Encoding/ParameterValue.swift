/// A value to send with a request, as a form's field or in JSON.
public enum ParameterValue: Sendable, Equatable {
    /// Text; JSON has it as a string.
    case string(String)
    /// A whole number.
    case int(Int)
    /// Finite, or it cannot be sent.
    case double(Double)
    /// As ``URLEncoding/BoolEncoding`` says, in JSON `true` or `false`.
    case bool(Bool)
    /// As ``URLEncoding/ArrayEncoding`` says.
    case array([ParameterValue])
    /// Members by name.
    case dictionary([String: ParameterValue])
    /// In a URL an empty value.
    case null

    /// How many arrays and dictionaries may lie within each other; deeper ones are an error.
    public static let maximumDepth = 128
}

/// Values by name.
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
    /// Of a name that comes twice, the last value counts.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .dictionary(Dictionary(elements) { $1 })
    }
}

extension ParameterValue: ExpressibleByNilLiteral {
    public init(nilLiteral: ()) { self = .null }
}

extension ParameterValue {
    /// The shortest digits that read back as the same number, which JSON takes too (RFC 8259, section 6).
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
