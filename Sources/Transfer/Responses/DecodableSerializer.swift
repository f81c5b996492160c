public import FoundationEssentials

/// A decoder of response bodies. `JSONDecoder` is one; conform another decoder for another format.
///
/// A decoder is used by any number of threads at the same time. Do not change its properties after you have passed it
/// on.
public protocol DataDecoder: Sendable {
    /// Decodes a value.
    ///
    /// - Throws: an error if `data` is not a valid encoding of the type.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: DataDecoder {}

/// A type with a value for a response without a body.
///
/// A ``DecodableSerializer`` for such a type succeeds for an empty body with status 204 or 205.
public protocol EmptyResponse {
    /// The value for a response without a body.
    static var emptyValue: Self { get }
}

extension Optional: EmptyResponse {
    /// The value `nil`.
    public static var emptyValue: Wrapped? { nil }
}

extension JSONValue: EmptyResponse {
    /// The value ``JSONValue/null``.
    public static var emptyValue: JSONValue { .null }
}

/// A serializer that decodes the body as JSON of any shape. An empty body is an error, except with status 204 or 205,
/// where the value is ``JSONValue/null``.
public struct JSONSerializer: ResponseSerializer {
    /// Creates a serializer.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> JSONValue {
        try DecodableSerializer<JSONValue>().serialize(data, of: head)
    }
}

/// A serializer that decodes the body to a value of the caller's type.
///
/// An empty body is an error, except with status 204 or 205 if the type is an ``EmptyResponse``. Optional types are.
public struct DecodableSerializer<Value: Decodable & Sendable>: ResponseSerializer {
    private let decoder: any DataDecoder

    /// Creates a serializer.
    ///
    /// - Parameter decoder: decodes the bodies.
    public init(decoder: any DataDecoder = JSONDecoder()) {
        self.decoder = decoder
    }

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: decodes the bodies.
    public init(_ type: Value.Type, decoder: any DataDecoder = JSONDecoder()) {
        self.init(decoder: decoder)
    }

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Value {
        guard data.isEmpty else { return try decoder.decode(Value.self, from: data) }
        guard let head, head.isEmptySuccess else { throw TransferError.emptyBody }
        guard let type = Value.self as? any EmptyResponse.Type, let value = type.emptyValue as? Value else {
            throw TransferError(
                .serializationFailed, "the body is empty (status \(head.status)), and \(Value.self) has no empty value")
        }
        return value
    }
}
