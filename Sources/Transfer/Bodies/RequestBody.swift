/// What a request carries.
public enum RequestBody: Sendable {
    /// Nothing.
    case none
    /// Bytes in memory.
    case data([UInt8])
    /// A file as it is now: it is read as it is sent, and a change to it meanwhile breaks the request off.
    case file(UploadSource)
    /// A file as it is now with bytes around it, as a form has them; read and watched as ``file(_:)`` is.
    case framed(FramedFile)
    /// Bytes that are made as they are sent.
    case stream(BodyStream)

    /// Bytes, where known beforehand.
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

/// A body that is made as it is sent, and made anew for each time that it has to be sent.
public struct BodyStream: Sendable {
    /// Bytes; without it the body goes out in chunks (RFC 9112, section 7.1).
    public var length: Int64?
    /// Starts making the body, from its beginning.
    var open: @Sendable (BodyPump) -> Task<Void, Never>

    /// - Parameters:
    ///   - length: bytes, where known; a stream that gives fewer fails the request, and what it gives beyond is not sent.
    ///   - make: called for each attempt, redirect and challenge that wants the body.
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
