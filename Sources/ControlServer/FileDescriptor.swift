import Transfer

/// A descriptor of a socket or a pipe, closed with the last reference.
final class FileDescriptor: Sendable {
    let raw: Int32

    init(_ raw: Int32) { self.raw = raw }

    deinit { PassedFile.close(raw) }
}
