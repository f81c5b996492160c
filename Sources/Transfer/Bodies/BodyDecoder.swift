import CZlib
import Glibc

/// Undoes the coding of a body piece by piece (RFC 9110, section 8.4.1), and knows whether it came to its end.
final class BodyDecoder {
    /// What can be undone.
    enum Coding: Sendable {
        case gzip, deflate

        /// - Parameter name: as `Content-Encoding` has it, in lower case.
        init?(_ name: String) {
            switch name {
            case "gzip", "x-gzip": self = .gzip
            case "deflate": self = .deflate
            default: return nil
            }
        }
    }

    private enum Phase {
        /// Before the first byte.
        case unbegun
        case decoding
        /// The sums at the end agreed.
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
        if phase != .unbegun { _ = inflateEnd(stream) }  // fails for a stream that was never begun
        stream.deallocate()
        piece.deallocate()
    }

    /// - Parameters:
    ///   - bytes: as they came.
    ///   - take: is handed what they are, and does not keep it.
    /// - Throws: `truncated` where they are not of this coding; what `take` throws.
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
                // Another member may follow (RFC 1952, section 2.2), and nothing else.
                guard coding == .gzip, inflateReset(stream) == Z_OK else {
                    throw Self.failure("it goes on behind its end")
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
            // Everything is used up, and everything that came of it is out.
            case Z_OK where stream.pointee.avail_in == 0 && stream.pointee.avail_out > 0, Z_BUF_ERROR: return
            case Z_OK: break
            default: throw Self.failure(stream.pointee.msg.map { String(cString: $0) } ?? "error \(outcome)")
            }
        }
    }

    private func begin(_ first: UInt8) throws(TransferError) {
        // Some servers call deflate what has no header of zlib's (RFC 1950, section 2.2) around it.
        let isBare = coding == .deflate && first & 0x0F != 8
        // So many bits of window; 32 more tell gzip from zlib by its first bytes.
        let window = isBare ? -MAX_WBITS : MAX_WBITS + 32
        guard inflateInit2_(stream, window, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw TransferError(.io, "there is no memory to decode with", systemError: ENOMEM)
        }
        phase = .decoding
    }

    /// After the last byte: why what came is not the whole; `nil` where it is.
    func failureAtEnd() -> TransferError? {
        phase == .decoding ? Self.failure("it ends too early") : nil
    }

    private static func failure(_ reason: String) -> TransferError {
        TransferError(.truncated, "what the server sent coded cannot be decoded: \(reason)")
    }
}
