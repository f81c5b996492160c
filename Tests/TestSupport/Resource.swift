import Glibc

/// The content of a file on a test server. It is generated from a seed, so that any part can be computed at any time.
///
/// Every page begins with its own number, so that no two places hold the same bytes and a shift, swap or repetition is
/// detected.
package struct Resource: Sendable {
    package let size: Int64
    package let seed: UInt64
    /// The ETag with its quotation marks (RFC 9110, section 8.8.3); `nil` for a resource without one.
    package var entityTag: String?
    /// The offset of one byte with a wrong value, as on a faulty disk.
    package var wrongByte: Int64?
    /// A range of zero bytes, as in the image of an empty disk.
    package var zeros: Range<Int64>?

    private static let pageSize = 4096
    private static let pool: [UInt8] = {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 * pageSize)
        for word in 0..<UInt64(64 * pageSize / 8) {
            withUnsafeBytes(of: mixed(word)) { bytes += $0 }
        }
        return bytes
    }()

    package init(size: Int64, seed: UInt64 = 1) {
        self.size = size
        self.seed = seed
        entityTag = "\"\(seed)-\(size)\""
    }

    /// Fills `buffer` with the bytes that start at `offset`.
    package func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
        guard let target = buffer.baseAddress else { return }
        var done = 0
        Self.pool.withUnsafeBytes { pool in
            guard let pool = pool.baseAddress else { return }
            while done < buffer.count {
                let position = offset + Int64(done)
                let page = position / Int64(Self.pageSize)
                let within = Int(position % Int64(Self.pageSize))
                let count = min(Self.pageSize - within, buffer.count - done)
                let key = mixed(seed &+ UInt64(page) &* 0x1_0000_0001)
                let start = Int(key % 64) * Self.pageSize
                // Use memcpy: without optimisation, collections copy byte by byte.
                memcpy(target + done, pool + start + within, count)
                if within < 8 {
                    let left = min(8 - within, count)
                    withUnsafePointer(to: key) { _ = memcpy(target + done, UnsafeRawPointer($0) + within, left) }
                }
                done += count
            }
        }
        if let zeros {
            let hole = zeros.clamped(to: offset..<offset + Int64(buffer.count))
            if !hole.isEmpty { memset(target + Int(hole.lowerBound - offset), 0, hole.count) }
        }
        if let wrongByte, wrongByte >= offset, wrongByte < offset + Int64(buffer.count) {
            buffer[Int(wrongByte - offset)] ^= 0xFF
        }
    }

    package func bytes(_ range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            fill(UnsafeMutableRawBufferPointer(buffer), from: range.lowerBound)
            count = range.count
        }
    }

    package var bytes: [UInt8] { bytes(0..<size) }

    /// Calls `body` with the whole content, one piece at a time.
    private func forEachPiece(_ body: (UnsafeRawBufferPointer, Int64) throws -> Bool) rethrows {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            let count = Int(min(Int64(buffer.count), size - offset))
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            fill(piece, from: offset)
            guard try body(UnsafeRawBufferPointer(piece), offset) else { return }
            offset += Int64(count)
        }
    }

    package func write(to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw SystemError("creating \(path)") }
        defer { close(descriptor) }
        try forEachPiece { piece, offset in
            guard pwrite(descriptor, piece.baseAddress, piece.count, Int(offset)) == piece.count else {
                throw SystemError("writing \(path)")
            }
            return true
        }
    }

    /// Compares the file at `path` with this content.
    ///
    /// - Returns: `nil` if they are equal byte for byte, otherwise a sentence that describes the first difference.
    package func difference(fromFileAt path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return SystemError("opening \(path)").description }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return SystemError("fstat \(path)").description }
        guard Int64(status.st_size) == size else { return "\(path) has \(status.st_size) bytes, not \(size)" }
        let there = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { there.deallocate() }
        var found: String?
        forEachPiece { piece, offset in
            guard pread(descriptor, there.baseAddress, piece.count, Int(offset)) == piece.count else {
                found = SystemError("reading \(path)").description
                return false
            }
            guard let left = there.baseAddress, let right = piece.baseAddress else { return true }
            if memcmp(left, right, piece.count) == 0 { return true }
            let index = (0..<piece.count).first { there[$0] != piece[$0] } ?? 0
            found = "\(path) differs at byte \(offset + Int64(index))"
            return false
        }
        return found
    }
}

/// Mixes 64 bits with the finaliser of SplitMix64, which is cheap.
private func mixed(_ value: UInt64) -> UInt64 {
    var bits = value &+ 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
}

/// A random number generator that produces the same numbers for the same seed.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }
}
