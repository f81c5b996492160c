import FoundationEssentials
import Glibc

/// A conversion of text from another encoding to UTF-8 by iconv(3).
struct CharacterConverter: ~Copyable {
    private let descriptor: iconv_t
    /// The name of the encoding, for messages.
    private let name: String

    /// Creates a converter.
    ///
    /// - Returns: `nil` if the system does not know the encoding, or has no memory for it.
    init?(from name: String) {
        // iconv_open(3) returns (iconv_t)-1 for an error.
        guard let descriptor = iconv_open("UTF-8", name), descriptor != iconv_t(bitPattern: -1) else { return nil }
        self.descriptor = descriptor
        self.name = name
    }

    deinit { _ = iconv_close(descriptor) }  // It fails only for an invalid descriptor.

    /// Converts a whole text.
    ///
    /// - Throws: ``TransferError/Code/serializationFailed`` for bytes that are invalid or incomplete in the encoding.
    func utf8(_ data: Data) throws(TransferError) -> [UInt8] {
        let result = data.withUnsafeBytes { bytes in
            Result { () throws(TransferError) in try utf8(bytes) }
        }
        return try result.get()
    }

    private func utf8(_ bytes: UnsafeRawBufferPointer) throws(TransferError) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var piece = [CChar](repeating: 0, count: 16_384)
        // iconv(3) does not change the input, in spite of its declaration.
        var next = UnsafeMutablePointer(mutating: bytes.bindMemory(to: CChar.self).baseAddress)
        var remaining = bytes.count
        while true {
            let (before, isAtEnd) = (remaining, remaining == 0)
            var (failed, code, written) = (false, Int32(0), 0)
            piece.withUnsafeMutableBufferPointer { piece in
                var (space, room) = (piece.baseAddress, piece.count)
                // A call without input writes what the encoding's state requires.
                let result =
                    isAtEnd
                    ? iconv(descriptor, nil, nil, &space, &room) : iconv(descriptor, &next, &remaining, &space, &room)
                code = errno
                failed = result == -1
                written = piece.count - room
                output += UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(piece)[..<written])
            }
            if !failed {
                if isAtEnd { return output }
                // Without this check, a call that does nothing would be repeated for ever.
                guard remaining == 0 || remaining < before || written > 0 else {
                    throw invalid(at: bytes.count - remaining)
                }
            } else if code != E2BIG || (remaining == before && written == 0) {
                throw invalid(at: bytes.count - remaining)
            }
        }
    }

    private func invalid(at offset: Int) -> TransferError {
        TransferError(.serializationFailed, "the body is not text in \(name): byte \(offset) is invalid")
    }
}
