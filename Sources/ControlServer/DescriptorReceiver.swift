import CLinux
import CReceiver
@preconcurrency import Dispatch
import Glibc
import NIOCore
import Synchronization
import TaskQueue
import Transfer

/// A receiver of the message with which a client passes open files. Nothing else reads the connection while it waits.
/// Belongs to the event loop.
final class DescriptorReceiver {
    enum Outcome: Sendable {
        case files([ReceivedFiles.Entry])
        /// A failure, with the message for the client.
        case failed(String)
    }

    private let delivery: FileDelivery
    private var deadline: Scheduled<Void>?
    private var ended: ((Outcome) -> Void)?

    /// - Parameters:
    ///   - link: the link to the client.
    ///   - room: the reservation for the expected files.
    ///   - limit: how long to wait for the files.
    ///   - ended: called once, unless ``cancel()`` is called first.
    init(
        link: ClientLink, room: DescriptorQuota.Reservation, limit: Duration, eventLoop: any EventLoop,
        ended: @escaping (Outcome) -> Void
    ) {
        delivery = FileDelivery(room: room)
        self.ended = ended
        let receiver = NIOLoopBound(self, eventLoop: eventLoop)
        deadline = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) { [self] in
            end(.failed("no message with \(room.count) open files followed the response to source.receive"))
        }
        link.hold { [delivery] connection in
            delivery.start(with: connection) { outcome in
                eventLoop.execute { receiver.value.end(outcome) }
            }
        }
    }

    deinit { delivery.cancel() }

    func cancel() {
        ended = nil
        deadline?.cancel()
        delivery.cancel()
    }

    private func end(_ outcome: Outcome) {
        let ended = ended
        cancel()
        ended?(outcome)
    }
}
