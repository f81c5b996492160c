import CReceiver
import Glibc

/// The process that receives open files from clients in place of this one, which could otherwise be kept from ending by
/// a file system that never answers: see `creceiver.h`.
///
/// There is one, which ends with this process. It is not started anew: its successor would be a child of a process that
/// has much open, and would close all of that.
package enum ReceivingProcess {
    private static let descriptor: Result<Int32, SystemFailure> = {
        let descriptor = creceiver_start()
        return descriptor < 0 ? .failure(SystemFailure(errno)) : .success(descriptor)
    }()

    /// To be called early in a program. Where it is not, the first file that a client passes starts the process.
    package static func start() { _ = descriptor }

    /// Has the message received that waits in a connection.
    ///
    /// - Parameter answers: the other end of the pair of sockets by which the report comes.
    static func ask(_ connection: Int32, answers: Int32, user: UInt32) throws(SystemFailure) {
        let receiver = try descriptor.get()
        guard creceiver_ask(receiver, connection, answers, user) == 0 else { throw SystemFailure(errno) }
    }
}
