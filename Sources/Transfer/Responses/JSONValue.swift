/// A JSON value of any type (RFC 8259).
///
/// Accessors return `nil` for a value of another type, so that they can be chained:
///
///     let name = json["items"]?[0]?["name"]?.string
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// The literal `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(JSONNumber)
    /// A string with its escapes resolved.
    case string(String)
    /// The elements in order.
    case array([JSONValue])
    /// The members by name; of duplicate names, one member is kept.
    case object([String: JSONValue])

    /// Whether the value is `null`.
    public var isNull: Bool { self == .null }

    /// The Boolean; `nil` for a value of another type, also for a number.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The number; `nil` for a value of another type. ``JSONNumber`` has the 64-bit integers of both signs.
    public var number: JSONNumber? {
        if case .number(let value) = self { value } else { nil }
    }

    /// The integer; `nil` for a value of another type, for a fraction, and for a number that is too large.
    public var int: Int? { number?.int }

    /// The number as the nearest `Double`; `nil` for a value of another type.
    public var double: Double? { number?.double }

    /// The string; `nil` for a value of another type.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The elements; `nil` for a value of another type.
    public var array: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The members by name; `nil` for a value of another type.
    public var object: [String: JSONValue]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The member with the given name; `nil` if it does not exist or the value is not an object.
    public subscript(key: String) -> JSONValue? { object?[key] }

    /// The element at the given index; `nil` if it does not exist or the value is not an array.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self = .string(value) }
}

extension JSONValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    public init(integerLiteral value: Int64) { self = .number(JSONNumber(value)) }

    public init(floatLiteral value: Double) { self = .number(JSONNumber(value)) }
}

extension JSONValue: ExpressibleByBooleanLiteral {
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension JSONValue: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
}

extension JSONValue: ExpressibleByDictionaryLiteral {
    /// Creates an object; for a repeated name, the last value is used.
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(Dictionary(members) { $1 })
    }
}

extension JSONValue: ExpressibleByNilLiteral {
    public init(nilLiteral: ()) { self = .null }
}

extension JSONValue: CustomStringConvertible {
    /// The value as JSON on one line, with names in the order of their text.
    public var description: String {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += value.description.utf8
        case .number(let value): bytes += value.description.utf8
        case .string(let value): JSONText.append(value, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONText.append(member.key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}
