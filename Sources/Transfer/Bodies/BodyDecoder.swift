import CZlib
import Glibc

/// A streaming decoder for one content coding (RFC 9110, section 8.4.1). It detects whether the body was complete.
final class BodyDecoder {
    /// The content codings that the decoder supports.
    enum Coding: Sendable {
        case gzip, deflate

        /// - Parameter name: the name in `Content-Encoding`, in lower case.
        init?(_ name: String) {
            switch name {
            case "gzip", "x-gzip": self = .gzip
            case "deflate": self = .deflate
            default: return nil
            }
        }
    }

    private enum Phase {
        /// Initial state: zero bytes received, zlib stream not initialised.
        case unbegun
        case decoding
        /// The stream ended and its checksum was correct.
        case ended
    }

    private static let pieceLength = 64 * 1024

    private let coding: Coding
    private let stream: UnsafeMutablePointer<z_stream>
    private let piece: UnsafeMutableRawBufferPointer
    private var phase = Phase.unbegun

    init(_ coding: Coding) {
        self.coding = coding
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        piece = .allocate(byteCount: Self.pieceLength, alignment: 16)
    }

    deinit {
        if phase != .unbegun { _ = inflateEnd(stream) }  // fails for an uninitialised stream
        stream.deallocate()
        piece.deallocate()
    }

    /// Decodes the next piece of the body.
    ///
    /// - Parameters:
    ///   - bytes: the encoded bytes as received.
    ///   - take: receives the decoded bytes. The buffer is valid only during the call.
    /// - Throws: `truncated` if the bytes are not valid for this coding; any error that `take` throws.
    func decode(
        _ bytes: UnsafeRawBufferPointer,
        _ take: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        guard let first = bytes.first, let start = bytes.baseAddress else { return }
        if phase == .unbegun { try begin(first) }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(bytes.count)
        while true {
            if phase == .ended {
                guard stream.pointee.avail_in > 0 else { return }
                // Only another gzip member may follow (RFC 1952, section 2.2).
                guard coding == .gzip, inflateReset(stream) == Z_OK else {
                    throw Self.failure("data follows its end")
                }
                phase = .decoding
            }
            stream.pointee.next_out = piece.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(piece.count)
            let outcome = inflate(stream, Z_NO_FLUSH)
            let count = piece.count - Int(stream.pointee.avail_out)
            if count > 0 { try take(UnsafeRawBufferPointer(rebasing: piece[..<count])) }
            switch outcome {
            case Z_STREAM_END: phase = .ended
            // All input is consumed and all output is delivered.
            case Z_OK where stream.pointee.avail_in == 0 && stream.pointee.avail_out > 0, Z_BUF_ERROR: return
            case Z_OK: break
            default: throw Self.failure(stream.pointee.msg.map { String(cString: $0) } ?? "error \(outcome)")
            }
        }
    }

    private func begin(_ first: UInt8) throws(TransferError) {
        // Some servers send `deflate` without the zlib header (RFC 1950, section 2.2).
        let isBare = coding == .deflate && first & 0x0F != 8
        // The number of window bits: negative for raw deflate; plus 32 for detection of gzip or zlib by the header.
        let window = isBare ? -MAX_WBITS : MAX_WBITS + 32
        guard inflateInit2_(stream, window, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw TransferError(.io, "not enough memory to decode the body", systemError: ENOMEM)
        }
        phase = .decoding
    }

    /// Returns the error of a body that ended too early; `nil` if the body is complete. Call after the last byte.
    func failureAtEnd() -> TransferError? {
        phase == .decoding ? Self.failure("it ends too early") : nil
    }

    private static func failure(_ reason: String) -> TransferError {
        TransferError(.truncated, "the encoded body cannot be decoded: \(reason)")
    }
}
