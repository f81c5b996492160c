/// The body of a request.
public enum RequestBody: Sendable {
    /// An empty body.
    case none
    /// Bytes in memory.
    case data([UInt8])
    /// A file in its present state. It is read while it is sent; a change in the meantime fails the request.
    case file(UploadSource)
    /// A file in its present state with bytes around it, as in a form. It is read and checked as with ``file(_:)``.
    case framed(FramedFile)
    /// Bytes that are produced while they are sent.
    case stream(BodyStream)

    /// The length in bytes, if known in advance.
    public var length: Int64? {
        switch self {
        case .none: 0
        case .data(let bytes): Int64(bytes.count)
        case .file(let source): source.identity.size
        case .framed(let framed): framed.length
        case .stream(let stream): stream.length
        }
    }
}

/// A request body that is produced while it is sent, and produced again each time it has to be sent.
public struct BodyStream: Sendable {
    /// The length in bytes. Without it the body is sent in chunks (RFC 9112, section 7.1).
    public var length: Int64?
    /// Starts producing the body from its beginning.
    var open: @Sendable (BodyPump) -> Task<Void, Never>

    /// - Parameters:
    ///   - length: the number of bytes, if known. A stream that yields fewer fails the request. Bytes beyond the length
    ///     are not sent, and fail the request if they are read together with bytes within it.
    ///   - make: creates the stream; called for each attempt, redirect and challenge that needs the body.
    public init<Source: AsyncSequence & Sendable>(
        length: Int64? = nil, make: @escaping @Sendable () throws -> Source
    ) where Source.Element == [UInt8] {
        self.length = length
        open = { pump in
            Task {
                do {
                    for try await chunk in try make() {
                        guard await pump.put(chunk) else { return }
                    }
                    pump.finish(nil)
                } catch {
                    pump.finish(
                        TransferError(.bodyStreamFailed, "the body's source failed: \(error)", underlying: error))
                }
            }
        }
    }
}
