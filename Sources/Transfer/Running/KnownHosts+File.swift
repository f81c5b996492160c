import Glibc

extension KnownHosts {
    /// What a file of OpenSSH's form holds. Blocks; on the loops of file servers alone.
    ///
    /// - Returns: nothing where there is no such file: then no host is known.
    static func read(_ path: String) throws(TransferError) -> [UInt8] {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard raw >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return [] }
            throw TransferError(.hostKey, "cannot read \(path): \(String(cString: strerror(errno)))")
        }
        let descriptor = FileDescriptorOwner(raw)
        let size = Int(try descriptor.status().st_size)
        guard size <= maximumSize else {
            throw TransferError(.hostKey, "\(path) is larger than \(maximumSize) bytes")
        }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 1)
        defer { space.deallocate() }
        return Array(space[..<(try descriptor.read(into: space, at: 0))])
    }
}
