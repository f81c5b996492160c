import Glibc

extension KnownHosts {
    /// Reads a file in OpenSSH's known_hosts format. The call blocks; it is made only on the loops of file servers.
    ///
    /// - Returns: the contents, empty if the file does not exist: no host is known then.
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
