public import FoundationEssentials

/// A converter from a response to a value of the caller's type.
public protocol ResponseSerializer<Value>: Sendable {
    /// The type of the value.
    associatedtype Value: Sendable

    /// Converts a response to a value.
    ///
    /// - Parameters:
    ///   - data: the body, empty if the response has none.
    ///   - head: the head of the response; `nil` if there was no response.
    /// - Throws: an error if the body cannot be converted. ``TransferError/underlying`` of the response's error then
    ///   holds it, unless it is a ``TransferError`` itself.
    func serialize(_ data: Data, of head: ResponseHead?) throws -> Value
}

extension ResponseSerializer {
    func result(_ data: Data, of head: ResponseHead?) -> Result<Value, TransferError> {
        do {
            return .success(try serialize(data, of: head))
        } catch let error as TransferError {
            return .failure(error)
        } catch {
            return .failure(
                TransferError(.serializationFailed, "the body is not what was expected: \(error)", underlying: error))
        }
    }
}

extension ResponseHead {
    /// Whether the status permits a successful response without a body (RFC 9110, sections 15.3.5 and 15.3.6).
    var isEmptySuccess: Bool { status == 204 || status == 205 }
}

private let empty = TransferError(.serializationFailed, "the body is empty")

/// A serializer that returns the body unchanged. An empty body is accepted only with status 204 or 205.
public struct DataSerializer: ResponseSerializer {
    /// Creates a serializer.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Data {
        guard !data.isEmpty || head?.isEmptySuccess ?? false else { throw empty }
        return data
    }
}

/// A serializer that decodes the body as text. The charset is that of the response if it is ISO 8859-1, windows-1252 or
/// UTF-16, otherwise UTF-8.
public struct StringSerializer: ResponseSerializer {
    /// Creates a serializer.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> String {
        if data.isEmpty {
            guard head?.isEmptySuccess ?? false else { throw empty }
            return ""
        }
        switch head?.charset {
        case "iso-8859-1", "latin1":
            return String(String.UnicodeScalarView(data.map { Unicode.Scalar($0) }))
        case "windows-1252", "cp1252":
            return String(String.UnicodeScalarView(data.map { Self.windows1252[$0] ?? Unicode.Scalar($0) }))
        // UTF-16 data would also be valid UTF-8, with a NUL next to each letter.
        case "utf-16": return try Self.text(data, .utf16)
        case "utf-16le": return try Self.text(data, .utf16LittleEndian)
        case "utf-16be": return try Self.text(data, .utf16BigEndian)
        default:
            guard let text = String(validating: data, as: UTF8.self) else {
                throw TransferError(.serializationFailed, "the body is not UTF-8 text")
            }
            return text
        }
    }
}

extension StringSerializer {
    private static func text(_ data: Data, _ encoding: String.Encoding) throws -> String {
        guard let text = String(bytes: data, encoding: encoding) else {
            throw TransferError(.serializationFailed, "the body is not UTF-16 text")
        }
        return text
    }

    /// The characters in which windows-1252 differs from ISO 8859-1 (WHATWG Encoding Standard, index windows-1252).
    private static let windows1252: [UInt8: Unicode.Scalar] = {
        let scalars = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
        return Dictionary(uniqueKeysWithValues: zip(UInt8(0x80)...0x9F, scalars))
    }()
}

/// A JSON value of any type (RFC 8259).
public enum JSONValue: Sendable, Equatable, Decodable {
    /// The literal `null`.
    case null
    /// The literal `true` or `false`.
    case bool(Bool)
    /// A number with the precision of `Double` (RFC 8259, section 6).
    case number(Double)
    /// A string with its escapes resolved.
    case string(String)
    /// The elements in order.
    case array([JSONValue])
    /// The members by name; of duplicate names, one member is kept.
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// The member with the given name; `nil` if it does not exist or the value is not an object.
    public subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// The element at the given index; `nil` if it does not exist or the value is not an array.
    public subscript(index: Int) -> JSONValue? {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
    }
}

/// A serializer that decodes the body as JSON of any shape. An empty body with status 204 or 205 yields
/// ``JSONValue/null``.
public struct JSONSerializer: ResponseSerializer {
    /// Creates a serializer.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> JSONValue {
        if data.isEmpty, head?.isEmptySuccess ?? false { return .null }
        return try DecodableSerializer<JSONValue>().serialize(data, of: head)
    }
}

/// A serializer that decodes the body from JSON to a value of the caller's type.
public struct DecodableSerializer<Value: Decodable & Sendable>: ResponseSerializer {
    private let decoder: @Sendable () -> JSONDecoder

    /// Creates a serializer.
    ///
    /// - Parameter decoder: creates a decoder for each body.
    public init(decoder: @escaping @Sendable () -> JSONDecoder = { JSONDecoder() }) {
        self.decoder = decoder
    }

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Value {
        guard !data.isEmpty else { throw empty }
        return try decoder().decode(Value.self, from: data)
    }
}
