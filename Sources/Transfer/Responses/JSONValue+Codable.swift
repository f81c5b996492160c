extension JSONValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try Self.number(in: container) {
            self = .number(value)
        } else if var elements = try? decoder.unkeyedContainer() {
            // An error in an element is the error of the whole, so nothing else is tried after it.
            var values: [JSONValue] = []
            while !elements.isAtEnd { values.append(try elements.decode(JSONValue.self)) }
            self = .array(values)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Returns the number in `container`; `nil` if the value is of another type.
    ///
    /// - Throws: an error if there is a number that `Double` cannot represent, such as `1e400`.
    private static func number(in container: any SingleValueDecodingContainer) throws -> JSONNumber? {
        do {
            return try container.decode(JSONNumber.self)
        } catch DecodingError.typeMismatch {
            return nil
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let elements): try container.encode(elements)
        case .object(let members): try container.encode(members)
        }
    }
}
