import Glibc

/// A lease for writing on a file of this process (fcntl(2), `F_SETLEASE`). While it lasts, the kernel lets nobody else
/// open the file.
package final class FileLease: Sendable {
    private let descriptor: Int32

    package init(on path: String) throws {
        let (setSignal, setLease): (Int32, Int32) = (10, 1024)  // F_SETSIG, F_SETLEASE
        descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        // The default signal, by which the kernel asks for the end of the lease, ends the process.
        guard fcntl(descriptor, setSignal, SIGURG) == 0, fcntl(descriptor, setLease, Int32(F_WRLCK)) == 0 else {
            let error = SystemError("F_SETLEASE")
            _ = close(descriptor)  // nothing was written
            throw error
        }
    }

    package func end() {
        _ = fcntl(descriptor, 1024, Int32(F_UNLCK))  // F_SETLEASE; closing the descriptor ends the lease at the latest
    }

    deinit { _ = close(descriptor) }  // nothing was written
}
