import CLinux
import CReceiver
@preconcurrency import Dispatch
import Glibc
import TaskQueue
import Transfer

/// The delivery of one message from a client's connection through the ``ReceivingProcess``. When the message is there,
/// a child of that process receives it and reports where its files lie. The child then passes on the files that this
/// process wants.
///
/// `@unchecked`: its state belongs to its queue, on which nothing blocks.
final class FileDelivery: @unchecked Sendable {
    private static let queue = DispatchQueue(label: "dld-descriptors")
    /// The number of attempts, and the pause between them, if the receiving process has the most children allowed.
    private static let (attempts, pause) = (20, DispatchTimeInterval.milliseconds(100))

    private enum Step {
        case begun
        /// The delivery waits for the message.
        case message(ClientSocket)
        /// A child reads the connection, and its report is awaited.
        case report(FileDescriptor, ClientSocket)
        /// The child knows which files are wanted (`nil`) or why they are not, and the files are awaited.
        case files(FileDescriptor, [PassedFile.Unfitness?])
        case over
    }

    private let room: DescriptorQuota.Reservation
    private var step = Step.begun
    private var source: (any DispatchSourceRead)?
    private var ended: (@Sendable (DescriptorReceiver.Outcome) -> Void)?
    private var attempt = 0

    init(room: DescriptorQuota.Reservation) { self.room = room }

    /// - Parameters:
    ///   - connection: the client's connection, which nothing else reads in the meantime.
    ///   - ended: called once, on the queue, unless ``cancel()`` is called first.
    func start(
        with connection: ClientSocket, _ ended: @escaping @Sendable (DescriptorReceiver.Outcome) -> Void
    ) {
        Self.queue.async { [self] in
            guard case .begun = step else { return }
            self.ended = ended
            step = .message(connection)
            listen(to: connection.descriptor, of: connection) { $0.messageCame() }
        }
    }

    /// Cancels the delivery. A child that has the message finds the other end of its socket closed, and exits.
    func cancel() {
        Self.queue.async { [self] in finish() }
    }

    /// - Parameter holder: keeps the descriptor open for as long as libdispatch watches it.
    private func listen(
        to descriptor: Int32, of holder: any Sendable & AnyObject,
        _ handler: @escaping @Sendable (FileDelivery) -> Void
    ) {
        source?.cancel()
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: Self.queue)
        source.setCancelHandler { withExtendedLifetime(holder) {} }
        source.setEventHandler { [weak self] in
            if let self { handler(self) }
        }
        self.source = source
        source.activate()
    }

    private func finish(_ outcome: DescriptorReceiver.Outcome? = nil) {
        source?.cancel()
        source = nil
        step = .over
        let ended = ended
        self.ended = nil
        if let outcome { ended?(outcome) }
    }

    private func fail(_ errno: Int32) {
        finish(.failed("the open files could not be received: \(String(cString: strerror(errno)))"))
    }

    private func failCount(_ count: Int) {
        finish(.failed("expected one line feed with \(room.count) open files, but got \(count) files"))
    }

    // MARK: - Steps

    private func messageCame() {
        guard case .message(let connection) = step else { return }
        var byte: UInt8 = 0
        switch withUnsafeMutableBytes(of: &byte, { connection.peek(into: $0) }) {
        case .files where byte == UInt8(ascii: "\n"): request(connection)
        case .files, .bytes: failCount(0)
        case .nothing: return
        case .end: finish(.failed("the client closed the connection"))
        case .failed(let error): fail(error)
        }
    }

    private func request(_ connection: ClientSocket) {
        var ends: [Int32] = [-1, -1]
        guard creceiver_pair(&ends) == 0 else { return fail(errno) }
        let (own, other) = (FileDescriptor(ends[0]), FileDescriptor(ends[1]))
        do throws(SystemFailure) {
            try withExtendedLifetime(other) { () throws(SystemFailure) in
                try ReceivingProcess.request(.receive, connection.descriptor, answers: other.raw, user: room.user)
            }
        } catch {
            // Other requests keep the process busy at the moment.
            if error.errno == EAGAIN { return tryAgain(connection) }
            return finish(
                .failed(
                    "the daemon's process that receives open files does not respond (\(error)): ask the administrator "
                        + "to restart the daemon or to set uploads.roots"))
        }
        connection.setShared(true)
        step = .report(own, connection)
        // A single source serves all messages on this descriptor. A second source on the same descriptor can miss an
        // event that was delivered to the first.
        listen(to: own.raw, of: own) { $0.responseReceived() }
    }

    private func responseReceived() {
        switch step {
        case .report(let answers, let connection): reportReceived(answers, connection)
        case .files(let answers, let unfitness): filesReceived(answers, unfitness)
        case .begun, .message, .over: break
        }
    }

    private func reportReceived(_ answers: FileDescriptor, _ connection: ClientSocket) {
        var report = creceiver_report_message()
        switch creceiver_report(answers.raw, &report) {
        case 1: break
        case 0: return fail(ECHILD)
        default:
            if errno == EAGAIN || errno == EINTR { return }
            return fail(errno)
        }
        connection.setShared(false)
        switch report.outcome {
        case CRECEIVER_RECEIVED: choose(Self.facts(report), of: report.bytes.0, answers)
        case CRECEIVER_CLOSED: finish(.failed("the client closed the connection"))
        case CRECEIVER_FULL: tryAgain(connection)
        default: fail(report.error)
        }
    }

    private static func facts(
        _ report: creceiver_report_message
    ) -> [Result<PassedFile.Facts, PassedFile.Unfitness>] {
        withUnsafeBytes(of: report.files) { bytes in
            bytes.bindMemory(to: creceiver_file.self).prefix(Int(report.count)).map { file in
                guard file.error == 0 else { return .failure(.system(file.error)) }
                return .success(
                    PassedFile.Facts(
                        mount: file.mount, device: (file.major, file.minor), isOnDisk: file.is_on_disk == 1,
                        mode: file.mode))
            }
        }
    }

    private func choose(
        _ facts: [Result<PassedFile.Facts, PassedFile.Unfitness>], of byte: UInt8, _ answers: FileDescriptor
    ) {
        guard byte == UInt8(ascii: "\n"), facts.count == room.count else { return failCount(facts.count) }
        let unfitness = PassedFile.unfitness(of: facts, isTrusted: room.isTrusted)
        let wanted = unfitness.map { UInt8($0 == nil ? 1 : 0) }
        guard wanted.contains(1) else { return finish(.files(Self.entries(unfitness, []))) }
        guard creceiver_choose(answers.raw, wanted, Int32(wanted.count)) == 0 else { return fail(errno) }
        step = .files(answers, unfitness)
    }

    private func filesReceived(_ answers: FileDescriptor, _ unfitness: [PassedFile.Unfitness?]) {
        var byte: CChar = 0
        var count: Int32 = 0
        var descriptors = [Int32](repeating: -1, count: Int(LINUX_MOST_DESCRIPTORS))
        let received = linux_receive_descriptors(answers.raw, &byte, &descriptors, &count)
        guard received > 0 else {
            if received < 0, errno == EAGAIN || errno == EINTR { return }
            return fail(received == 0 ? ECHILD : errno)
        }
        let files = room.adopt(Array(descriptors.prefix(Int(count))))
        guard files.count == unfitness.count(where: { $0 == nil }) else { return fail(EPROTO) }
        finish(.files(Self.entries(unfitness, files)))
    }

    /// - Parameter files: the received files, in order.
    private static func entries(
        _ unfitness: [PassedFile.Unfitness?], _ files: [PassedFile]
    ) -> [ReceivedFiles.Entry] {
        var files = files.makeIterator()
        return unfitness.map { unfitness in
            if let unfitness { return .failure(unfitness) }
            guard let file = files.next() else { return .failure(.system(EPROTO)) }
            return .success(file)
        }
    }

    /// Retries after a pause, or fails after the last attempt. The message is still in the connection. The children of
    /// a well-behaved user end by themselves within moments.
    private func tryAgain(_ connection: ClientSocket) {
        attempt += 1
        source?.cancel()
        source = nil
        step = .message(connection)
        guard attempt < Self.attempts else {
            return finish(
                .failed(
                    "the open files were not accepted: too many processes of the daemon wait for a file system, "
                        + "such as FUSE, to close files that you passed before; unmount it and try again"))
        }
        Self.queue.asyncAfter(deadline: .now() + Self.pause) { [self] in
            guard case .message = step else { return }
            listen(to: connection.descriptor, of: connection) { $0.messageCame() }
        }
    }
}
