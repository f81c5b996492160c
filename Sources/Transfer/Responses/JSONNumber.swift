/// A JSON number (RFC 8259, section 6): a 64-bit integer exactly, any other number with the precision of `Double`.
///
/// Numbers are equal if their values are equal. `1.0` and `1e0` in JSON are the integer 1.
public struct JSONNumber: Sendable, Hashable {
    /// An integer is always in the first case that can represent it.
    private enum Value: Sendable, Hashable {
        case signed(Int64)
        case unsigned(UInt64)
        case double(Double)
    }

    private let value: Value

    /// Creates a number. A value that neither `Int64` nor `UInt64` can represent is rounded to a `Double`.
    public init(_ integer: some BinaryInteger) {
        if let exact = Int64(exactly: integer) {
            value = .signed(exact)
        } else if let exact = UInt64(exactly: integer) {
            value = .unsigned(exact)
        } else {
            value = .double(Double(integer))
        }
    }

    /// Creates a number. One that is not finite cannot be encoded.
    public init(_ number: Double) {
        if let exact = Int64(exactly: number) {
            value = .signed(exact)
        } else if let exact = UInt64(exactly: number) {
            value = .unsigned(exact)
        } else {
            value = .double(number)
        }
    }

    /// The number as `Int`; `nil` if it is no integer or too large.
    public var int: Int? { int64.flatMap { Int(exactly: $0) } }

    /// The number as `Int64`; `nil` if it is no integer or too large.
    public var int64: Int64? {
        if case .signed(let value) = value { value } else { nil }
    }

    /// The number as `UInt64`; `nil` if it is no integer, negative or too large.
    public var uint64: UInt64? {
        switch value {
        case .signed(let value): UInt64(exactly: value)
        case .unsigned(let value): value
        case .double: nil
        }
    }

    /// The number as the nearest `Double`.
    public var double: Double {
        switch value {
        case .signed(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .double(let value): value
        }
    }
}

extension JSONNumber: CustomStringConvertible {
    /// The number as in JSON: the digits of an integer, otherwise the shortest text that is read as the same `Double`.
    public var description: String {
        switch value {
        case .signed(let value): String(value)
        case .unsigned(let value): String(value)
        case .double(let value): value.description
        }
    }
}

extension JSONNumber: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    public init(integerLiteral value: Int64) { self.init(value) }

    public init(floatLiteral value: Double) { self.init(value) }
}

extension JSONNumber: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // A decoder that converted an integer by way of `Double` would round it.
        if let value = try? container.decode(Int64.self) {
            self.init(value)
        } else if let value = try? container.decode(UInt64.self) {
            self.init(value)
        } else {
            self.init(try container.decode(Double.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch value {
        case .signed(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        }
    }
}
