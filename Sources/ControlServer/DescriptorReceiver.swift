import CLinux
@preconcurrency import Dispatch
import Glibc
import NIOCore
import TaskQueue
import Transfer

/// Waits for the message with which a client passes open files, while NIO, which would drop them, reads nothing from
/// the connection. Belongs to the event loop.
final class DescriptorReceiver {
    enum Outcome: Sendable {
        case files([PassedFile])
        /// For the client.
        case failed(String)
    }

    private static let queue = DispatchQueue(label: "dld-descriptors")
    private let source: any DispatchSourceRead
    private var deadline: Scheduled<Void>?
    private var ended: ((Outcome) -> Void)?

    /// - Parameters:
    ///   - socket: the connection's.
    ///   - room: for as many files as are to come.
    ///   - limit: how long to wait for them.
    ///   - ended: called once, unless ``cancel()`` is.
    init?(
        socket: Int32, room: DescriptorShares.Reservation, limit: Duration, eventLoop: any EventLoop,
        ended: @escaping (Outcome) -> Void
    ) {
        // NIO may close its own while libdispatch looks at this one.
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { return nil }
        source = DispatchSource.makeReadSource(fileDescriptor: copy, queue: Self.queue)
        self.ended = ended
        source.setCancelHandler { PassedFile.close(copy) }
        let receiver = NIOLoopBound(self, eventLoop: eventLoop)
        source.setEventHandler { [source] in
            guard let outcome = Self.receive(from: copy, room) else { return }
            source.cancel()
            eventLoop.execute { receiver.value.end(outcome) }
        }
        deadline = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limit)) { [self] in
            end(.failed("no message with \(room.count) open files came after the answer to source.receive"))
        }
        source.activate()
    }

    deinit { source.cancel() }

    func cancel() {
        ended = nil
        deadline?.cancel()
        source.cancel()
    }

    private func end(_ outcome: Outcome) {
        let ended = ended
        cancel()
        ended?(outcome)
    }

    /// - Returns: `nil` where nothing has come yet.
    private static func receive(from socket: Int32, _ room: DescriptorShares.Reservation) -> Outcome? {
        var byte: CChar = 0
        var count: Int32 = 0
        var descriptors = [Int32](repeating: -1, count: Int(LINUX_MOST_DESCRIPTORS))
        let received = linux_receive_descriptors(socket, &byte, &descriptors, &count)
        guard received > 0 else {
            if received == 0 { return .failed("the client closed the connection") }
            if errno == EAGAIN || errno == EINTR { return nil }
            return .failed("the open files could not be received: \(String(cString: strerror(errno)))")
        }
        // Also those that nobody wants: they are closed as files of strangers.
        let files = room.take(Array(descriptors.prefix(Int(count))))
        guard byte == CChar(UInt8(ascii: "\n")), files.count == room.count else {
            return .failed("expected one line feed with \(room.count) open files, and got \(files.count) files")
        }
        return .files(files)
    }
}
