import Glibc
import Synchronization

/// An HTTP server on loopback that says of each request what a closure wants it to say, true or not: it knows which
/// request this is, over which connection, how many others are being answered, and for which bytes it asks.
package final class Liar: Sendable {
    /// A request, and what the server knows of it.
    package struct Question: Sendable {
        package let request: ScriptedServer.Request
        /// From 0 on, over all connections, since the server was last told how to answer.
        package let number: Int
        /// So many of the earlier ones asked for a range.
        package let rangesBefore: Int
        /// From 0 on, in the order of their making.
        package let connection: Int
        /// Of the ports that the server listens on; from 0 on.
        package let portIndex: Int
        /// Requests over other connections that are being answered just now.
        package let others: Int
        /// Milliseconds since the last answer over another connection ended; `nil` where none has.
        package let sinceOther: Int64?

        package var path: String { request.path }
        package var ifRange: String? { request.header("if-range") }
        package var asksForRange: Bool { request.header("range") != nil }

        /// What `Range` asks for of so many bytes; `nil` without one, or where nothing of it is there.
        package func range(of size: Int64) -> Range<Int64>? {
            request.header("range").flatMap { AnswerWriter.parse($0, size: size) }
        }
    }

    package let ports: [Int]
    private let listeners: [Int32]
    private let state: Mutex<State>

    package typealias Answering = @Sendable (Question) -> LiarAnswer

    private struct State {
        var answering: Answering
        var number = 0
        var ranges = 0
        var requests: [ScriptedServer.Request] = []
        var made = 0
        var busy = 0
        /// When the last answer over each connection ended, by the connection's number.
        var ends: [Int: ContinuousClock.Instant] = [:]
        var connections: Set<Int32> = []
        /// Bytes of body that may still be sent; `nil`: any number.
        var allowance: Int64?
        var sent: Int64 = 0
        var isStopped = false
    }

    /// - Parameters:
    ///   - ports: so many to listen on.
    ///   - answering: called on a thread of each connection's own.
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

    /// From now on it answers so, and counts requests anew.
    ///
    /// - Parameter bodyBytes: so many it sends in all; then it cuts every connection, and each new one.
    package func turn(bodyBytes: Int64? = nil, to answering: Answering? = nil) {
        state.withLock { state in
            if let answering { state.answering = answering }
            state.allowance = bodyBytes
            state.number = 0
            state.ranges = 0
            state.ends = [:]
        }
    }

    /// All so far.
    package var requests: [ScriptedServer.Request] { state.withLock { $0.requests } }
    /// Connections that are open just now.
    package var openConnections: Int { state.withLock { $0.connections.count } }
    /// Bytes of bodies that were handed to the kernel.
    package var bodyBytesSent: Int64 { state.withLock { $0.sent } }

    /// Refuses connections from now on and cuts those that are open.
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
                let question = Question(
                    request: request, number: state.number, rangesBefore: state.ranges, connection: number,
                    portIndex: portIndex, others: state.busy,
                    sinceOther: lastEnd.map { Int64($0.duration(to: .now) / .milliseconds(1)) })
                state.requests.append(request)
                state.number += 1
                state.busy += 1
                if question.asksForRange { state.ranges += 1 }
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

    /// - Returns: how many of `count` bytes of body may be sent.
    private func mayPass(_ count: Int) -> Int {
        state.withLock { state in
            let passing = state.allowance.map { Int(max(0, min($0, Int64(count)))) } ?? count
            state.allowance = state.allowance.map { $0 - Int64(passing) }
            state.sent += Int64(passing)
            return passing
        }
    }
}

/// Sends one answer as it is put together.
private struct Teller {
    let descriptor: Int32
    let mayPass: (Int) -> Int

    private static let pieceSize = 1 << 16

    /// - Returns: whether the connection can carry another request.
    func tell(_ answer: LiarAnswer) -> Bool {
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
            // Closing with a linger of zero sends RST in place of FIN (socket(7)).
            var none = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, socklen_t(MemoryLayout<linger>.size))
            return false
        case .hang:
            var byte: UInt8 = 0
            while recv(descriptor, &byte, 1, 0) > 0 {}
            return false
        }
    }

    private func tell(_ piece: LiarAnswer.Piece, of answer: LiarAnswer) -> Bool {
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

    private func pass(_ bytes: [UInt8], _ answer: LiarAnswer) -> Bool {
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
