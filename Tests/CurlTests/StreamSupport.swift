import Glibc
import Synchronization

@testable import Curl
@testable import TestSupport

/// A record of a stream's events that threads other than its loop's may read.
final class StreamLog: Sendable {
    private struct State {
        var events: [String] = []
        var received: [UInt8] = []
        var written = 0
        var ending: StreamEnding?
        var endedAt: MonotonicTime?
        var takesMore = true
    }
    private let state = Mutex(State())

    /// All events except bytes received and written.
    var events: [String] { state.withLock { $0.events } }
    var received: [UInt8] { state.withLock { $0.received } }
    var text: String { String(decoding: received, as: UTF8.self) }
    var written: Int { state.withLock { $0.written } }
    var ending: StreamEnding? { state.withLock { $0.ending } }
    /// The time of the end. A waiting test may be notified later on a busy machine.
    var endedAt: MonotonicTime? { state.withLock { $0.endedAt } }
    var errorCode: UInt32? { if case .failed(let error, _) = ending { error.code.rawValue } else { nil } }
    var errorText: String { if case .failed(let error, _) = ending { error.message } else { "" } }
    var systemError: Int32? { if case .failed(_, let number) = ending { number } else { nil } }

    /// The handler's return value after each received piece.
    var takesMore: Bool {
        get { state.withLock { $0.takesMore } }
        set { state.withLock { $0.takesMore = newValue } }
    }

    func record(_ event: String) { state.withLock { $0.events.append(event) } }
    func record(received bytes: UnsafeRawBufferPointer) { state.withLock { $0.received += bytes } }
    func record(written count: Int) { state.withLock { $0.written += count } }
    func record(_ ending: StreamEnding) {
        state.withLock { state in
            state.ending = ending
            state.endedAt = .now()
        }
    }

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

/// A handler that records the events of a stream and reacts to them.
final class LoggingStreamHandler: StreamHandler {
    private let log: StreamLog
    private let react: (StreamConnection, String) -> Void

    /// - Parameter react: called with each event.
    init(_ log: StreamLog, react: @escaping (StreamConnection, String) -> Void = { _, _ in }) {
        self.log = log
        self.react = react
    }

    private func hear(_ event: String, _ stream: StreamConnection) {
        log.record(event)
        react(stream, event)
    }

    func streamDidConnect(_ stream: StreamConnection) { hear("connected", stream) }
    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool {
        log.record(received: bytes)
        react(stream, "received")
        return log.takesMore
    }
    func streamDidCloseRead(_ stream: StreamConnection) { hear("read closed", stream) }
    func stream(_ stream: StreamConnection, didWrite count: Int) { log.record(written: count) }
    func streamCanWrite(_ stream: StreamConnection) { react(stream, "can write") }
    func streamDidSecure(_ stream: StreamConnection) { hear("secured", stream) }
    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding) {
        log.record(ending)
        hear("ended", stream)
    }
}

extension TransferLoop {
    /// Opens a stream and returns its number; an option that libcurl rejects is a test failure.
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

/// A writer that sends a resource as fast as the stream accepts it, and then closes the write side.
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
