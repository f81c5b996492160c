import CZlib
import Glibc

/// A streaming decoder for content codings (RFC 9110, section 8.4.1). It detects whether the body was complete.
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

    /// Decoded bytes for each received byte; more is an attack.
    private static let largestExpansion: Int64 = 200
    /// Decoded bytes up to which any expansion is accepted.
    private static let smallestExpanded: Int64 = 64 << 20

    /// Returns the largest number of bytes to which so many received ones may decode.
    static func largestSize(of received: Int64) -> Int64 {
        let (product, isBeyond) = received.multipliedReportingOverflow(by: largestExpansion)
        return max(smallestExpanded, isBeyond ? .max : product)
    }

    /// The maximum number of codings of a body that are undone.
    private static let mostCodings = 4

    /// The suffixes of files whose own format a coding is. Servers often label such a file with the coding; its bytes
    /// are then the file itself.
    private static let suffixes: [String: [String]] = [
        "gzip": [".gz", ".tgz", ".gzip", ".svgz"], "x-gzip": [".gz", ".tgz", ".gzip", ".svgz"],
        "deflate": [".zz", ".zlib"], "br": [".br"], "zstd": [".zst", ".tzst"], "compress": [".z", ".taz"],
        "x-compress": [".z", ".taz"],
    ]

    /// Returns the codings of a body that have to be undone to get the file, the outermost first.
    ///
    /// They end at the first one that is unknown: servers also send words here that name no coding, such as `UTF-8` and
    /// `aws-chunked`. The coding that was applied first is not undone if it is the format of the file.
    ///
    /// - Parameters:
    ///   - codings: the names in the order of application, in lower case.
    ///   - names: names or paths of the file; none where any format is possible.
    static func undone(_ codings: [String], ofFile names: [String]) -> [Coding] {
        var undone: [Coding] = []
        for (index, name) in codings.enumerated().reversed() {
            guard undone.count < mostCodings, let coding = Coding(name), index > 0 || !isFormat(name, ofFile: names)
            else { break }
            undone.append(coding)
        }
        return undone
    }

    /// Returns the coding, registered with IANA, that a file still has because this type cannot undo it.
    static func kept(_ codings: [String], ofFile names: [String]) -> String? {
        guard let last = codings.last, Coding(last) == nil, suffixes[last] != nil,
            codings.count > 1 || !isFormat(last, ofFile: names)
        else { return nil }
        return last
    }

    private static func isFormat(_ coding: String, ofFile names: [String]) -> Bool {
        let suffixes = suffixes[coding] ?? []
        return names.contains { name in
            let name = name.lowercased()
            return suffixes.contains { name.hasSuffix($0) }
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
    /// The decoder of the next coding.
    private let next: BodyDecoder?
    /// The number of bytes given to the first decoder.
    private var received: Int64 = 0
    /// The number of bytes that were given to the next decoder.
    private var passed: Int64 = 0

    /// - Parameter codings: the codings, the outermost first.
    /// - Returns: `nil` if there are none.
    convenience init?(_ codings: some Collection<Coding>) {
        guard let first = codings.first else { return nil }
        self.init(first, followedBy: BodyDecoder(codings.dropFirst()))
    }

    private init(_ coding: Coding, followedBy next: BodyDecoder?) {
        self.coding = coding
        self.next = next
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
    /// - Throws: `truncated` if the bytes are not valid for this coding, `tooLarge` if they expand too much between two
    ///   codings; any error that `take` throws.
    func decode(
        _ bytes: UnsafeRawBufferPointer,
        _ take: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        received += Int64(bytes.count)
        try decode(bytes, upTo: Self.largestSize(of: received), take)
    }

    /// - Parameter limit: the number of bytes that may pass from one coding to the next. Those of the last coding are
    ///   bounded by their receiver, which may get none of them.
    private func decode(
        _ bytes: UnsafeRawBufferPointer, upTo limit: Int64,
        _ take: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        guard let next else { return try undo(bytes, take) }
        try undo(bytes) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
            passed += Int64(piece.count)
            guard passed <= limit else {
                throw TransferError(.tooLarge, "the encoded body expands too much when it is decoded")
            }
            try next.decode(piece, upTo: limit, take)
        }
    }

    private func undo(
        _ bytes: UnsafeRawBufferPointer, _ take: (UnsafeRawBufferPointer) throws(TransferError) -> Void
    ) throws(TransferError) {
        guard let first = bytes.first, let start = bytes.baseAddress else { return }
        if phase == .unbegun { try begin(first) }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(bytes.count)
        while true {
            if phase == .ended {
                // gzip(1) passes over zeros too, with which tapes and some servers fill blocks.
                while coding == .gzip, stream.pointee.avail_in > 0, stream.pointee.next_in.pointee == 0 {
                    stream.pointee.next_in += 1
                    stream.pointee.avail_in -= 1
                }
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
        phase == .decoding ? Self.failure("it ends too early") : next?.failureAtEnd()
    }

    private static func failure(_ reason: String) -> TransferError {
        TransferError(.truncated, "the encoded body cannot be decoded: \(reason)")
    }
}
