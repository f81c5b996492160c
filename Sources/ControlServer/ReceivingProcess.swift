import CReceiver
import Glibc

/// The process that receives open files from clients in place of this one, which could otherwise be kept from ending by
/// a file system that never answers: see `creceiver.h`.
///
/// There is one, which ends with this process. It is not started anew: its successor would be a child of a process that
/// has much open, and would close all of that.
package enum ReceivingProcess {
    private struct Receiver {
        let descriptor: Int32
        let process: Int32
    }

    private static let receiver: Result<Receiver, SystemFailure> = {
        var process: Int32 = 0
        let descriptor = creceiver_start(&process)
        return descriptor < 0
            ? .failure(SystemFailure(errno)) : .success(Receiver(descriptor: descriptor, process: process))
    }()

    /// To be called early in a program. Where it is not, the first file that a client passes starts the process.
    package static func start() { _ = receiver }

    /// To be called last, once no client is served: whoever waits for this process to end then finds nothing of it left.
    package static func stop() {
        guard case .success(let receiver) = receiver else { return }
        creceiver_end(receiver.descriptor, receiver.process)
    }

    /// Has the message received that waits in a connection.
    ///
    /// - Parameter answers: the other end of the pair of sockets by which the report comes.
    static func ask(_ connection: Int32, answers: Int32, user: UInt32) throws(SystemFailure) {
        let receiver = try receiver.get()
        guard creceiver_ask(receiver.descriptor, connection, answers, user) == 0 else { throw SystemFailure(errno) }
    }
}
