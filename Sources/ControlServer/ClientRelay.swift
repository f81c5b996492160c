import CReceiver
import Glibc

/// A relay that moves bytes between a client's connection and a pair of sockets, whose other end the server reads and
/// writes. The server therefore never receives the files that a client may send with its bytes: see ``ClientSocket``.
///
/// The relay buffers only the bytes that came with dropped files. All other bytes are consumed from one side once they
/// are written to the other. Belongs to the thread of the ``ClientFront``.
final class ClientRelay {
    enum DirectionState {
        case open
        /// The other side accepts no bytes at the moment.
        case blocked
        /// Reading is suspended, because the server or another process reads the connection.
        case held
        case ended
    }

    /// The result of moving bytes.
    enum Outcome {
        case goesOn
        /// Files wait in the connection.
        case files
        /// The end of the relay, because a side is closed or has failed.
        case over
    }

    let client: ClientSocket
    let peer: Peer
    /// The relay's end of the pair.
    let inner: Int32
    private(set) var toServer = DirectionState.open
    private(set) var toClient = DirectionState.open
    private var isHeldByServer = false
    /// Called once the process that drops files no longer uses the connection.
    private var held: (() -> Void)?
    /// The number of the client's messages whose files were dropped.
    private(set) var drops = 0
    /// The socket on which the process that drops a message's files reports.
    private(set) var answers: Int32?
    /// The bytes that came with those files, still to be sent to the server.
    private var carried: ArraySlice<UInt8> = []
    /// Whether the server has closed its end. Data that it has written is still sent to the client for a while.
    private(set) var isServerGone = false

    /// - Parameter inner: the relay's end of the pair, owned by the relay from now on.
    init(client: ClientSocket, peer: Peer, inner: Int32) {
        self.client = client
        self.peer = peer
        self.inner = inner
    }

    deinit {
        // The client must see the end at once, even while other references to the socket exist.
        _ = shutdown(client.descriptor, Int32(SHUT_RDWR))  // fails if the client has closed
        _ = close(inner)  // its bytes were moved
        if let answers { _ = close(answers) }  // the report is no longer needed
    }

    /// The most moves in a row, so that one client does not delay the others.
    private static let moves = 4

    // MARK: - From the client

    func moveToServer(with buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if toServer == .blocked { toServer = .open }
        if toServer == .open { sendCarried() }
        for _ in 0..<Self.moves where toServer == .open {
            switch client.peek(into: buffer) {
            case .bytes(let count):
                let sent = send(inner, buffer.baseAddress, count, Self.flags)
                if sent < 0 {
                    toServer = Self.isBusy(errno) ? .blocked : .ended
                } else if !client.consume(sent, with: buffer) {
                    return .over
                }
            case .files: return .files
            case .nothing: return .goesOn
            case .end, .failed: endToServer()
            }
        }
        return .goesOn
    }

    private func sendCarried() {
        while !carried.isEmpty, toServer == .open {
            let sent = carried.withUnsafeBytes { send(inner, $0.baseAddress, $0.count, Self.flags) }
            if sent > 0 {
                carried.removeFirst(sent)
            } else {
                toServer = Self.isBusy(errno) ? .blocked : .ended
            }
        }
    }

    private func endToServer() {
        toServer = .ended
        _ = shutdown(inner, Int32(SHUT_WR))  // fails if the server has closed its end
    }

    /// Suspends reading from the client, so that other code can read the connection.
    ///
    /// - Parameter then: called once no other process reads the connection.
    func hold(_ then: @escaping () -> Void) {
        isHeldByServer = true
        settle()
        if answers == nil { then() } else { held = then }
    }

    func resume() {
        isHeldByServer = false
        settle()
    }

    private func settle() {
        guard toServer != .ended else { return }
        if isHeldByServer || answers != nil {
            toServer = .held
        } else {
            // With carried bytes, polling finds out whether the server's end accepts them.
            toServer = carried.isEmpty ? .open : .blocked
        }
    }

    /// Requests that another process read the waiting bytes, up to and including the first files, and drop those files.
    ///
    /// - Returns: whether the process was started.
    func drop() -> Bool {
        var ends: [Int32] = [-1, -1]
        guard creceiver_pair(&ends) == 0 else { return false }
        defer { _ = close(ends[1]) }  // the other process has its own
        do throws(SystemFailure) {
            try ReceivingProcess.request(.drop, client.descriptor, answers: ends[1], user: peer.uid)
        } catch {
            _ = close(ends[0])  // nothing was written to it
            return false
        }
        answers = ends[0]
        client.setShared(true)
        settle()
        return true
    }

    /// Reads the other process's report.
    ///
    /// - Returns: whether bytes were read or the client has closed; `nil` if the report has not been received yet.
    func readReport() -> Bool? {
        guard let answers else { return nil }
        var report = creceiver_report_message()
        let outcome = creceiver_report(answers, &report)
        if outcome < 0, Self.isBusy(errno) { return nil }
        _ = close(answers)  // nothing is written to it
        self.answers = nil
        client.setShared(false)
        if outcome == 1 {
            if report.count > 0 { drops += 1 }
            carried += withUnsafeBytes(of: report.bytes) { Array($0.prefix(Int(report.size))) }
        }
        settle()
        held?()
        held = nil
        return outcome == 1 && (report.outcome == CRECEIVER_DROPPED || report.outcome == CRECEIVER_CLOSED)
    }

    /// Stops reading from the client for good.
    func refuseFiles() { toServer = .ended }

    // MARK: - To the client

    func moveToClient(with buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if toClient == .blocked { toClient = .open }
        for _ in 0..<Self.moves where toClient == .open {
            let count = recv(inner, buffer.baseAddress, buffer.count, Self.flags | Int32(MSG_PEEK))
            guard count > 0 else { return count < 0 && Self.isBusy(errno) ? .goesOn : .over }
            let sent = send(client.descriptor, buffer.baseAddress, count, Self.flags)
            guard sent > 0 else {
                guard Self.isBusy(errno) else { return .over }
                toClient = .blocked
                return .goesOn
            }
            guard recv(inner, buffer.baseAddress, sent, Self.flags) == sent else { return .over }
        }
        return .goesOn
    }

    func serverIsGone() {
        isServerGone = true
        toServer = .ended
    }

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

    private static func isBusy(_ error: Int32) -> Bool { error == EAGAIN || error == EINTR || error == ENOBUFS }
}
