import Transfer

/// A file descriptor of a socket or a pipe, closed when the last reference is released.
final class FileDescriptor: Sendable {
    let raw: Int32

    init(_ raw: Int32) { self.raw = raw }

    deinit { PassedFile.close(raw) }
}
