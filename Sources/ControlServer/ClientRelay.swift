import CReceiver
import Glibc

/// Moves bytes between a client's connection and the pair of sockets whose other end the server reads and writes. So the
/// server never meets the files that a client may send along: see ``ClientSocket``.
///
/// Nothing is kept here but what came with dropped files: bytes are taken from one side once the other side has taken
/// them. Belongs to the thread of the ``ClientFront``.
final class ClientRelay {
    enum Way {
        case open
        /// The other side takes nothing at the moment.
        case blocked
        /// Another process reads the connection.
        case held
        case ended
    }

    /// What a move came to.
    enum Outcome {
        case goesOn
        /// Files wait.
        case files
        /// One of the two is gone: nothing more can be moved.
        case over
    }

    let client: ClientSocket
    let peer: Peer
    /// This side's end of the pair.
    let inner: Int32
    private(set) var toServer = Way.open
    private(set) var toClient = Way.open
    private var isHeldByServer = false
    /// Called once the process that drops files has let go of the connection.
    private var held: (() -> Void)?
    /// Messages of the client whose files were dropped.
    private(set) var drops = 0
    /// Where the process that drops a message's files reports.
    private(set) var answers: Int32?
    /// What came with those files, for the server.
    private var carried: ArraySlice<UInt8> = []
    /// The server has closed its end; what it has written goes on to the client for a while.
    private(set) var isServerGone = false

    /// - Parameter inner: belongs to the relay from now on.
    init(client: ClientSocket, peer: Peer, inner: Int32) {
        self.client = client
        self.peer = peer
        self.inner = inner
    }

    deinit {
        // The client's end must not wait for whoever else has a reference.
        _ = shutdown(client.descriptor, Int32(SHUT_RDWR))  // fails where the client is gone
        _ = close(inner)  // what counts was moved
        if let answers { _ = close(answers) }  // nobody waits for the report
    }

    /// Moves in a row, so that one client keeps nobody waiting.
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
                } else if !client.take(sent, with: buffer) {
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
        _ = shutdown(inner, Int32(SHUT_WR))  // fails where the server has closed its end
    }

    /// Leaves what the client sends to somebody else, or takes it again.
    ///
    /// - Parameter then: called once nobody else has the connection.
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
            // The other side is asked whether it takes what is here.
            toServer = carried.isEmpty ? .open : .blocked
        }
    }

    /// Has another process take what waits, as far as the first files, and these.
    ///
    /// - Returns: whether it does.
    func drop() -> Bool {
        var ends: [Int32] = [-1, -1]
        guard creceiver_pair(&ends) == 0 else { return false }
        defer { _ = close(ends[1]) }  // the other process has its own
        do throws(SystemFailure) {
            try ReceivingProcess.ask(.drop, client.descriptor, answers: ends[1], user: peer.uid)
        } catch {
            _ = close(ends[0])  // nothing was written to it
            return false
        }
        answers = ends[0]
        client.share(true)
        settle()
        return true
    }

    /// Reads the other process's report.
    ///
    /// - Returns: `false` where nothing was taken; `nil` where the report has not come.
    func readReport() -> Bool? {
        guard let answers else { return nil }
        var report = creceiver_report_message()
        let outcome = creceiver_report(answers, &report)
        if outcome < 0, Self.isBusy(errno) { return nil }
        _ = close(answers)  // nothing is written to it
        self.answers = nil
        client.share(false)
        if outcome == 1 {
            if report.count > 0 { drops += 1 }
            carried += withUnsafeBytes(of: report.bytes) { Array($0.prefix(Int(report.size))) }
        }
        settle()
        held?()
        held = nil
        return outcome == 1 && (report.outcome == CRECEIVER_DROPPED || report.outcome == CRECEIVER_CLOSED)
    }

    /// Takes nothing more from the client.
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
