import Crypto

/// An incremental digest of a byte sequence.
enum RunningDigest {
    case md5(Insecure.MD5)
    case sha1(Insecure.SHA1)
    case sha256(SHA256)
    case sha512(SHA512)

    init(_ algorithm: FileDigest.Algorithm) {
        switch algorithm {
        case .md5: self = .md5(Insecure.MD5())
        case .sha1: self = .sha1(Insecure.SHA1())
        case .sha256: self = .sha256(SHA256())
        case .sha512: self = .sha512(SHA512())
        }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // The state is consumed and updated in place, since a copy of it would allocate memory.
        switch consume self {
        case .md5(var digest):
            digest.update(bufferPointer: bytes)
            self = .md5(digest)
        case .sha1(var digest):
            digest.update(bufferPointer: bytes)
            self = .sha1(digest)
        case .sha256(var digest):
            digest.update(bufferPointer: bytes)
            self = .sha256(digest)
        case .sha512(var digest):
            digest.update(bufferPointer: bytes)
            self = .sha512(digest)
        }
    }

    /// Reads the bytes in `range` of `file` and adds them to the digest. Blocks.
    ///
    /// - Parameter space: a buffer that is reused for each read.
    /// - Returns: `false` if the file ends before the end of `range`.
    mutating func update(
        _ file: FileDescriptorOwner, _ range: Range<Int64>, by space: UnsafeMutableRawBufferPointer
    ) throws(TransferError) -> Bool {
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(Int64(space.count), range.upperBound - offset))
            let read = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: offset)
            if read == 0 { return false }
            update(UnsafeRawBufferPointer(rebasing: space[..<read]))
            offset += Int64(read)
        }
        return true
    }

    /// The digest of all bytes so far.
    var value: [UInt8] {
        switch self {
        case .md5(let digest): Array(digest.finalize())
        case .sha1(let digest): Array(digest.finalize())
        case .sha256(let digest): Array(digest.finalize())
        case .sha512(let digest): Array(digest.finalize())
        }
    }
}

extension FileDigest {
    /// Compares this digest with that of a complete file's bytes. Throws `checksumMismatch` if they differ.
    func evaluate(_ digest: RunningDigest) throws(TransferError) {
        let found = FileDigest(algorithm: algorithm, bytes: digest.value).hex
        guard found == hex else {
            throw TransferError(
                .checksumMismatch, "the \(algorithm.rawValue) of the received file is \(found), not \(hex)")
        }
    }

    /// Whether the first `size` bytes of `file` have this digest. Blocks.
    func isRight(for file: FileDescriptorOwner, _ size: Int64) throws(TransferError) -> Bool {
        var found = RunningDigest(algorithm)
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { space.deallocate() }
        return try found.update(file, 0..<size, by: space)
            && FileDigest(algorithm: algorithm, bytes: found.value).hex == hex
    }
}
