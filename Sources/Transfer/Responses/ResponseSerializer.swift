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
    /// Whether the status announces a success without a body (RFC 9110, sections 15.3.5 and 15.3.6).
    var isEmptySuccess: Bool { status == 204 || status == 205 }
}

extension TransferError {
    /// An error for an empty body that cannot be converted.
    static let emptyBody = TransferError(.serializationFailed, "the body is empty")
}

/// A serializer that returns the body unchanged, also an empty one.
public struct DataSerializer: ResponseSerializer {
    /// Creates a serializer.
    public init() {}

    public func serialize(_ data: Data, of head: ResponseHead?) throws -> Data { data }
}
