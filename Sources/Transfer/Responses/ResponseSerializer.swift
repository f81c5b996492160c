import FoundationEssentials

/// Makes of an answer what the caller wants of it.
public protocol ResponseSerializer<Value>: Sendable {
    /// What it makes.
    associatedtype Value: Sendable

    /// - Parameters:
    ///   - data: the body, empty where there is none.
    ///   - head: the answer's; `nil` where there was no answer.
    /// - Throws: why it cannot; the response's error then has it as ``TransferError/underlying``.
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
    /// Success without a body (RFC 9110, sections 15.3.5 and 15.3.6).
    var isEmptySuccess: Bool { status == 204 || status == 205 }
}

private let empty = TransferError(.serializationFailed, "the body is empty")

/// The body as it is; an empty one only with 204 and 205.
public struct DataSerializer: ResponseSerializer {
    /// The only one there is.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Data {
        guard !data.isEmpty || head?.isEmptySuccess ?? false else { throw empty }
        return data
    }
}

/// The body as text, in the encoding that the answer names, otherwise UTF-8.
public struct StringSerializer: ResponseSerializer {
    /// The only one there is.
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
        // As UTF-8 it would be text as well, with a NUL beside each letter.
        case "utf-16": return try Self.text(data, .utf16)
        case "utf-16le": return try Self.text(data, .utf16LittleEndian)
        case "utf-16be": return try Self.text(data, .utf16BigEndian)
        default:
            guard let text = String(validating: data, as: UTF8.self) else {
                throw TransferError(.serializationFailed, "the body is no text in UTF-8")
            }
            return text
        }
    }
}

extension StringSerializer {
    private static func text(_ data: Data, _ encoding: String.Encoding) throws -> String {
        guard let text = String(bytes: data, encoding: encoding) else {
            throw TransferError(.serializationFailed, "the body is no text in UTF-16")
        }
        return text
    }

    /// Where the code page is not ISO 8859-1 (WHATWG Encoding Standard, index windows-1252).
    private static let windows1252: [UInt8: Unicode.Scalar] = {
        let scalars = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars
        return Dictionary(uniqueKeysWithValues: zip(UInt8(0x80)...0x9F, scalars))
    }()
}

/// A value of any JSON text (RFC 8259).
public enum JSONValue: Sendable, Equatable, Decodable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// Any number, as precisely as a `Double` has it (RFC 8259, section 6).
    case number(Double)
    /// Text, without its escapes.
    case string(String)
    /// Elements in their order.
    case array([JSONValue])
    /// Members by name; of a name that comes twice, one of them.
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

    /// The member of an object; `nil` where there is none, or this is no object.
    public subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// The element of an array; `nil` where there is none, or this is no array.
    public subscript(index: Int) -> JSONValue? {
        if case .array(let elements) = self, elements.indices.contains(index) { elements[index] } else { nil }
    }
}

/// The body as JSON of any shape; with 204 and 205 ``JSONValue/null``.
public struct JSONSerializer: ResponseSerializer {
    /// The only one there is.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> JSONValue {
        if data.isEmpty, head?.isEmptySuccess ?? false { return .null }
        return try DecodableSerializer<JSONValue>().serialize(data, of: head)
    }
}

/// The body as a value of a type of the caller's, from JSON.
public struct DecodableSerializer<Value: Decodable & Sendable>: ResponseSerializer {
    private let decoder: @Sendable () -> JSONDecoder

    /// - Parameter decoder: makes one for each body.
    public init(decoder: @escaping @Sendable () -> JSONDecoder = { JSONDecoder() }) {
        self.decoder = decoder
    }

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Value {
        guard !data.isEmpty else { throw empty }
        return try decoder().decode(Value.self, from: data)
    }
}
