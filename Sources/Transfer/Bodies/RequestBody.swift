public import FoundationEssentials

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

extension RequestBody {
    /// Returns a body of bytes in memory, which are copied.
    @_disfavoredOverload
    public static func data(_ data: Data) -> RequestBody { .data(Array(data)) }
}

extension BodyStream {
    /// Creates a body of the data that a sequence yields.
    ///
    /// - Parameters:
    ///   - length: the number of bytes, if known; it has to be exact, as for a sequence of arrays.
    ///   - make: creates the sequence; called for each attempt, redirect and challenge that needs the body.
    @_disfavoredOverload
    public init<Source: AsyncSequence & Sendable>(
        length: Int64? = nil, make: @escaping @Sendable () throws -> Source
    ) where Source.Element == Data {
        self.init(length: length) { try make().map { Array($0) } }
    }
}

extension FramedFile {
    /// Creates a body of a file with data before and after it.
    ///
    /// - Parameters:
    ///   - before: data sent before the file.
    ///   - source: the file.
    ///   - after: data sent after the file.
    @_disfavoredOverload
    public init(before: Data, source: UploadSource, after: Data) {
        self.init(before: Array(before), source: source, after: Array(after))
    }
}

extension RequestBody: CustomStringConvertible, CustomReflectable {
    /// The kind and the size of the body, as in `data, 12 bytes`. The contents are left out, since they may be secret.
    public var description: String {
        switch self {
        case .none: "no body"
        case .data(let bytes): "data, \(ReadableText.bytes(bytes.count))"
        case .file(let source): "file, \(ReadableText.bytes(source.identity.size))"
        case .framed(let framed): framed.description
        case .stream(let stream): stream.length.map { "stream, \(ReadableText.bytes($0))" } ?? "stream of unknown size"
        }
    }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension FramedFile: CustomStringConvertible, CustomReflectable {
    /// The size of the whole body, as in `framed file, 12 bytes`. The contents are left out, since they may be secret.
    public var description: String { "framed file, \(ReadableText.bytes(length))" }

    /// A mirror without children, so that `dump` writes the ``description``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
