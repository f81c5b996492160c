import Glibc
import Synchronization

@testable import Curl
@testable import TestSupport

/// A peer on loopback: each connection is talked to on a thread of its own and closed after that.
final class TalkingPeer: Sendable {
    let port: Int
    private let listener: Int32

    init(_ talk: @escaping @Sendable (borrowing StreamSocket) throws -> Void) throws {
        let (listener, port) = try listenOnLoopback(backlog: 256)
        self.listener = listener
        self.port = port
        try startThread {
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                try? startThread {
                    let socket = StreamSocket(adopting: connection)
                    socket.setReadTimeout(30)
                    try? talk(socket)
                }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// How many sockets of this process are connected to the peer.
    var connections: Int {
        (0..<2048).count { descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getpeername(Int32(descriptor), $0, &length)
                }
            }
            return result == 0 && address.sin_family == sa_family_t(AF_INET)
                && UInt16(bigEndian: address.sin_port) == UInt16(port)
        }
    }
}

extension StreamSocket {
    borrowing func echo() throws {
        while true {
            let piece = try receive()
            if piece.isEmpty { return }
            send(piece)
        }
    }

    borrowing func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Has the close send RST in place of FIN.
    borrowing func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads up to the empty line.
    borrowing func readHead() throws -> [String] {
        var lines: [String] = []
        while let line = try readLine(), line != "\r" { lines.append(line.filter { $0 != "\r" }) }
        return lines
    }

    /// Carries bytes both ways between this connection and a port, until both sides are done.
    ///
    /// - Parameter pause: microseconds after each piece on the way there.
    borrowing func relay(to port: Int, pausing pause: UInt32 = 0) throws {
        let other = try StreamSocket(port: port)
        let (here, there) = (descriptor, other.descriptor)
        let done = try WakeUp(counting: true)
        try startThread {
            copy(from: there, to: here)
            done.signal()
        }
        copy(from: here, to: there, pausing: pause)
        done.wait()
    }
}

private func copy(from source: Int32, to target: Int32, pausing pause: UInt32 = 0) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        let count = recv(source, &buffer, buffer.count, 0)
        guard count > 0, sendAll(target, buffer[..<count]) else { break }
        if pause > 0 { usleep(pause) }
    }
    shutdown(target, Int32(SHUT_WR))
}

/// What a stream said, for threads other than its loop's.
final class StreamLog: Sendable {
    private struct State {
        var events: [String] = []
        var received: [UInt8] = []
        var written = 0
        var ending: StreamEnding?
        var takesMore = true
    }
    private let state = Mutex(State())

    /// All but the bytes that came and went.
    var events: [String] { state.withLock { $0.events } }
    var received: [UInt8] { state.withLock { $0.received } }
    var text: String { String(decoding: received, as: UTF8.self) }
    var written: Int { state.withLock { $0.written } }
    var ending: StreamEnding? { state.withLock { $0.ending } }
    var errorCode: UInt32? { if case .failed(let error, _) = ending { error.code } else { nil } }
    var errorText: String { if case .failed(let error, _) = ending { error.message } else { "" } }
    var systemError: Int32? { if case .failed(_, let number) = ending { number } else { nil } }

    /// What the handler says after each piece.
    var takesMore: Bool {
        get { state.withLock { $0.takesMore } }
        set { state.withLock { $0.takesMore = newValue } }
    }

    func note(_ event: String) { state.withLock { $0.events.append(event) } }
    func note(received bytes: UnsafeRawBufferPointer) { state.withLock { $0.received += bytes } }
    func note(written count: Int) { state.withLock { $0.written += count } }
    func note(_ ending: StreamEnding) { state.withLock { $0.ending = ending } }

    func end() async throws -> StreamEnding {
        try await eventually(have: "the stream's end", within: .seconds(30), every: .milliseconds(2)) { ending }
    }

    func wait(for text: String) async throws {
        try await eventually(that: "\(text) arrives", within: .seconds(30), every: .milliseconds(2)) {
            self.text.contains(text)
        }
    }

    func wait(forEvent event: String) async throws {
        try await eventually(that: event, within: .seconds(30), every: .milliseconds(2)) { events.contains(event) }
    }
}

/// Notes what a stream says, and reacts.
final class LoggingStreamHandler: StreamHandler {
    private let log: StreamLog
    private let react: (StreamConnection, String) -> Void

    /// - Parameter react: called with each event.
    init(_ log: StreamLog, react: @escaping (StreamConnection, String) -> Void = { _, _ in }) {
        self.log = log
        self.react = react
    }

    private func hear(_ event: String, _ stream: StreamConnection) {
        log.note(event)
        react(stream, event)
    }

    func streamDidConnect(_ stream: StreamConnection) { hear("connected", stream) }
    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool {
        log.note(received: bytes)
        react(stream, "received")
        return log.takesMore
    }
    func streamDidCloseRead(_ stream: StreamConnection) { hear("read closed", stream) }
    func stream(_ stream: StreamConnection, didWrite count: Int) { log.note(written: count) }
    func streamCanWrite(_ stream: StreamConnection) { react(stream, "can write") }
    func streamDidSecure(_ stream: StreamConnection) { hear("secured", stream) }
    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding) {
        log.note(ending)
        hear("ended", stream)
    }
}

extension TransferLoop {
    /// Opens a stream and returns its number; what libcurl does not take is an error of the test.
    func open(
        _ host: String = "127.0.0.1", port: Int, secure: Bool = false, log: StreamLog,
        proxy: String = "", trusting pem: String? = nil, timeout: Int = 20_000,
        react: @escaping @Sendable (StreamConnection, String) -> Void = { _, _ in }
    ) async throws -> Int {
        let id: Int? = await run { core in
            guard let peer = StreamPeer(host: host, port: port) else { return nil }
            let handler = LoggingStreamHandler(log, react: react)
            return try? core.openStream(to: peer, secure: secure, handler: handler) {
                (easy: inout EasyHandle) throws(CurlError) in
                try easy.set(.proxy, to: proxy)
                try easy.set(.connectTimeout, to: timeout)
                if let pem { try easy.set(.caCertificates, to: pem.utf8) }
            }.id
        }
        guard let id else { throw SystemError("opening a stream", number: EINVAL) }
        return id
    }

    func with<Value: Sendable>(
        _ id: Int, _ work: @escaping @Sendable (StreamConnection) -> Value
    ) async -> Value? {
        await run { core in core.stream(id).map(work) }
    }
}

/// Writes a resource, as fast as it is taken, and then closes the write side.
final class Pump: Sendable {
    private let bytes: [UInt8]
    private let offset = Mutex(0)

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func push(_ stream: StreamConnection) {
        offset.withLock { offset in
            let taken = bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            offset += taken
            if offset == bytes.count { stream.closeWrite() }
        }
    }
}

/// `openssl s_server`, which answers each line with the same line backwards, and a certificate.
final class TLSEcho: Sendable {
    let port: Int
    /// The certificate, for those that are to trust it.
    let certificate: String
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    /// - Parameter names: as `subjectAltName` takes them.
    init(names: String = "IP:127.0.0.1,DNS:peer.test") async throws {
        directory = try TemporaryDirectory()
        let (key, chain) = (directory.file("key.pem"), directory.file("chain.pem"))
        let made = try await TestSupport.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=peer", "-addext", "subjectAltName=\(names)", "-keyout", key, "-out", chain,
        ])
        guard made.succeeded else { throw SystemError("openssl req: \(made.error)", number: EINVAL) }
        certificate = try await TestSupport.run(["cat", chain]).output
        port = try FreePort.next()
        process = try ChildProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-cert", chain, "-key", key, "-rev", "-quiet",
        ])
        let port = self.port
        try await eventually(that: "s_server listens") { (try? StreamSocket(port: port)) != nil }
    }
}
