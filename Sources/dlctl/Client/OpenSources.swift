import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// Source files that the daemon cannot open itself, or not for this user. They are opened here and passed to the
/// daemon.
struct OpenSources: ~Copyable {
    private var descriptors: [Int32] = []

    deinit {
        for descriptor in descriptors { _ = close(descriptor) }  // nothing was written, so close cannot lose data
    }

    /// Opens the files for reading.
    ///
    /// - Returns: `nil` if one of the files cannot be opened.
    init?(_ paths: [String]) {
        for path in paths {
            // O_NONBLOCK prevents the open of a FIFO from blocking.
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            guard descriptor >= 0 else { return nil }
            descriptors.append(descriptor)
        }
    }

    /// Takes over an open file.
    init(closing descriptor: Int32) { descriptors.append(descriptor) }

    func pass(over client: ControlClient) throws(ClientError) {
        try client.pass(descriptors)
    }
}
