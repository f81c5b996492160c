import Glibc
import Synchronization

/// A loopback HTTP server that responds to each request as a closure decides, correctly or not. The closure receives
/// the request, its connection, the number of other requests in progress and the requested range.
package final class MisbehavingServer: Sendable {
    /// A request, and the server's state when it arrived.
    package struct Question: Sendable {
        package let request: ScriptedServer.Request
        /// The number of the request over all connections, from 0, counted since the behaviour was last set.
        package let number: Int
        /// The number of earlier requests that asked for a range.
        package let rangesBefore: Int
        /// The number of the connection, from 0, in the order of creation.
        package let connection: Int
        /// The index of the port on which the request arrived, from 0.
        package let portIndex: Int
        /// The number of requests in progress over other connections.
        package let others: Int
        /// The time since the last response over another connection ended, in milliseconds; `nil` if there was none.
        package let sinceOther: Int64?

        package init(
            _ request: ScriptedServer.Request, number: Int = 0, rangesBefore: Int = 0, connection: Int = 0,
            portIndex: Int = 0, others: Int = 0, sinceOther: Int64? = nil
        ) {
            self.request = request
            self.number = number
            self.rangesBefore = rangesBefore
            self.connection = connection
            self.portIndex = portIndex
            self.others = others
            self.sinceOther = sinceOther
        }

        package var path: String { request.path }
        package var ifRange: String? { request.header("if-range") }
        package var asksForRange: Bool { request.header("range") != nil }

        /// Returns the byte range that `Range` requests of a resource of `size` bytes; `nil` without a satisfiable
        /// range.
        package func range(of size: Int64) -> Range<Int64>? {
            request.header("range").flatMap { AnswerWriter.parse($0, size: size) }
        }
    }

    package let ports: [Int]
    private let listeners: [Int32]
    private let state: Mutex<State>

    package typealias Answering = @Sendable (Question) -> MisbehavingResponse

    private struct State {
        var answering: Answering
        var number = 0
        var ranges = 0
        var requests: [ScriptedServer.Request] = []
        var made = 0
        var busy = 0
        /// The time at which the last response over each connection ended, by connection number.
        var ends: [Int: ContinuousClock.Instant] = [:]
        var connections: Set<Int32> = []
        /// The number of body bytes that may still be sent; `nil` for no limit.
        var allowance: Int64?
        var sent: Int64 = 0
        var isStopped = false

        /// Records a request.
        mutating func ask(
            _ request: ScriptedServer.Request, over connection: Int, portIndex: Int, others: Int, sinceOther: Int64?
        ) -> Question {
            let question = Question(
                request, number: number, rangesBefore: ranges, connection: connection, portIndex: portIndex,
                others: others, sinceOther: sinceOther)
            requests.append(request)
            number += 1
            if question.asksForRange { ranges += 1 }
            return question
        }
    }

    /// Creates a server without sockets, whose responses ``response(to:port:connection:others:sinceOther:)`` returns.
    ///
    /// - Parameter ports: the number of ports that its URLs have.
    package init(withoutSockets count: Int, answering: @escaping Answering) {
        state = Mutex(State(answering: answering))
        listeners = []
        ports = (0..<count).map { 8_000 + $0 }
    }

    /// Returns the response to a request as if it had arrived over a socket.
    ///
    /// - Returns: `nil` if the server does not have the port.
    package func response(
        to request: ScriptedServer.Request, port: Int, connection: Int, others: Int, sinceOther: Int64?
    ) -> MisbehavingResponse? {
        guard let index = ports.firstIndex(of: port) else { return nil }
        let (question, answering) = state.withLock { state in
            let question = state.ask(
                request, over: connection, portIndex: index, others: others, sinceOther: sinceOther)
            return (question, state.answering)
        }
        return answering(question)
    }

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - ports: the number of ports to listen on.
    ///   - answering: returns the response; called on a separate thread for each connection.
    package init(ports count: Int = 1, answering: @escaping Answering) throws {
        state = Mutex(State(answering: answering))
        var opened: [(descriptor: Int32, port: Int)] = []
        for _ in 0..<count { opened.append(try listenOnLoopback(backlog: 1024)) }
        listeners = opened.map(\.descriptor)
        ports = opened.map(\.port)
        for (index, listener) in listeners.enumerated() {
            try startThread { [weak self] in
                while true {
                    let connection = accept(listener, nil, nil)
                    if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                    guard connection >= 0, let self, let number = self.enter(connection) else {
                        if connection >= 0 { close(connection) }
                        close(listener)
                        return
                    }
                    let isServed: Void? = try? startThread {
                        self.converse(on: connection, number, portIndex: index)
                        self.leave(connection)
                    }
                    if isServed == nil { self.leave(connection) }
                }
            }
        }
    }

    deinit { stop() }

    package func url(_ path: String = "/f", port: Int = 0, host: String = "127.0.0.1") -> String {
        "http://\(host):\(ports[port])\(path)"
    }

    /// Changes the behaviour and restarts the count of requests.
    ///
    /// - Parameter bodyBytes: the total number of body bytes to send. After that the server closes every connection,
    ///   including new ones.
    package func turn(bodyBytes: Int64? = nil, to answering: Answering? = nil) {
        state.withLock { state in
            if let answering { state.answering = answering }
            state.allowance = bodyBytes
            state.number = 0
            state.ranges = 0
            state.ends = [:]
        }
    }

    /// All requests so far.
    package var requests: [ScriptedServer.Request] { state.withLock { $0.requests } }
    /// The number of currently open connections.
    package var openConnections: Int { state.withLock { $0.connections.count } }
    /// The number of body bytes passed to the kernel.
    package var bodyBytesSent: Int64 { state.withLock { $0.sent } }

    /// Closes all open connections and refuses new ones.
    package func stop() {
        let wasRunning = state.withLock { state in
            defer { state.isStopped = true }
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
            return !state.isStopped
        }
        guard wasRunning else { return }
        for listener in listeners { shutdown(listener, Int32(SHUT_RDWR)) }
    }

    // MARK: Connections

    private func enter(_ connection: Int32) -> Int? {
        var on: Int32 = 1
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return state.withLock { state in
            guard !state.isStopped else { return nil }
            state.connections.insert(connection)
            state.made += 1
            return state.made - 1
        }
    }

    private func leave(_ connection: Int32) {
        state.withLock { state in
            state.connections.remove(connection)
            close(connection)
        }
    }

    private func converse(on connection: Int32, _ number: Int, portIndex: Int) {
        var reader = RequestReader(descriptor: connection)
        while let request = reader.next() {
            let (question, answering, isSpent) = state.withLock { state in
                let lastEnd = state.ends.filter { $0.key != number }.values.max()
                let question = state.ask(
                    request, over: number, portIndex: portIndex, others: state.busy,
                    sinceOther: lastEnd.map { Int64($0.duration(to: .now) / .milliseconds(1)) })
                state.busy += 1
                return (question, state.answering, state.allowance.map { $0 <= 0 } ?? false)
            }
            defer {
                state.withLock { state in
                    state.busy -= 1
                    state.ends[number] = .now
                }
            }
            guard !isSpent else { return }
            let teller = Teller(descriptor: connection) { [self] in mayPass($0) }
            guard teller.tell(answering(question)) else { return }
        }
    }

    /// - Returns: the number of body bytes that may be sent, at most `count`.
    private func mayPass(_ count: Int) -> Int {
        state.withLock { state in
            let passing = state.allowance.map { Int(max(0, min($0, Int64(count)))) } ?? count
            state.allowance = state.allowance.map { $0 - Int64(passing) }
            state.sent += Int64(passing)
            return passing
        }
    }
}

/// A writer that sends one response piece by piece.
private struct Teller {
    let descriptor: Int32
    let mayPass: (Int) -> Int

    private static let pieceSize = 1 << 16

    /// Sends the response.
    ///
    /// - Returns: whether the connection can carry another request.
    func tell(_ answer: MisbehavingResponse) -> Bool {
        if !answer.isSilent {
            let lines = ["\(answer.version) \(answer.status) Said"] + answer.fields + ["", ""]
            guard sendAll(descriptor, answer.interim + Array(lines.joined(separator: "\r\n").utf8)) else {
                return false
            }
        }
        for piece in answer.body { guard tell(piece, of: answer) else { return false } }
        if answer.isChunked, answer.ending == .open {
            guard sendAll(descriptor, Array("0\r\n\r\n".utf8)) else { return false }
        }
        switch answer.ending {
        case .open: return true
        case .close: return false
        case .reset:
            // Closing with a linger time of zero sends RST instead of FIN (socket(7)).
            var none = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
            return false
        case .hang:
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
            return false
        }
    }

    private func tell(_ piece: MisbehavingResponse.Piece, of answer: MisbehavingResponse) -> Bool {
        switch piece {
        case .bytes(let bytes): return pass(bytes, answer)
        case .raw(let bytes): return sendAll(descriptor, bytes)
        case .pause(let milliseconds):
            usleep(UInt32(milliseconds) * 1000)
            return true
        case .endless(let bytes):
            while sendAll(descriptor, bytes) {}
            return false
        case .content(let resource, let range, let rate):
            var offset = range.lowerBound
            let size = rate.map { max(1, min($0 / 20, Self.pieceSize)) } ?? Self.pieceSize
            var due = microseconds()
            while offset < range.upperBound {
                let end = min(offset + Int64(size), range.upperBound)
                guard pass(resource.bytes(offset..<end), answer) else { return false }
                if let rate {
                    due += Int(end - offset) * 1_000_000 / rate
                    let wait = due - microseconds()
                    if wait > 0 { usleep(UInt32(wait)) }
                }
                offset = end
            }
            return true
        }
    }

    private func pass(_ bytes: [UInt8], _ answer: MisbehavingResponse) -> Bool {
        let count = mayPass(bytes.count)
        let passing = Array(bytes[..<count])
        let framed =
            answer.isChunked && count > 0
            ? Array("\(String(count, radix: 16))\r\n".utf8) + passing + Array("\r\n".utf8) : passing
        return sendAll(descriptor, framed) && count == bytes.count
    }

    private func microseconds() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}
