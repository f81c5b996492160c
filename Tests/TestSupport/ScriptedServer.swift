import Glibc
import Synchronization

/// An HTTP/1.1 server on loopback with scripted responses for each path, which records its requests.
package final class ScriptedServer: Sendable {
    /// A request as received.
    package struct Request: Sendable {
        package let method: String
        package let path: String
        /// The header fields in the order of arrival, with names in lower case.
        package let headers: [(name: String, value: String)]
        package let body: [UInt8]
        /// The time at which the request had arrived.
        package let at = ContinuousClock.now
        /// The number of the connection that carried the request, from 1.
        package fileprivate(set) var connection = 0

        package init(
            method: String = "GET", path: String, headers: [(name: String, value: String)], body: [UInt8] = []
        ) {
            self.method = method
            self.path = path
            self.headers = headers
            self.body = body
        }

        package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
    }

    /// How many connections are served at a time.
    package enum Service: Sendable {
        case all
        /// One. The responses to requests over others begin, in any order, once it has ended.
        case oneByOne
        /// One. Requests over connections that come meanwhile are never answered.
        case onlyOne
    }

    package let port: Int
    private let host: UInt8
    private let listener: Int32
    private let script: [String: [ScriptedAnswer]]
    private let line: NetworkLine?
    private let continuesRequests: Bool
    private let service: Service
    private let state = Mutex(State())

    private struct State {
        var requests: [Request] = []
        var bodyBytesSent: [String: Int64] = [:]
        var connections: Set<Int32> = []
        var accepted = 0
        var conversations = 0
        var stopped = false
        /// The number of the connection that is served where others are not.
        var served: Int?
    }

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - script: by path, the responses to the first, second, … request; the last one is repeated. Other paths
    ///     receive 404.
    ///   - host: the last number of its address 127.0.0.x.
    ///   - port: the port; with 0 the kernel chooses one.
    ///   - line: the simulated line between server and clients; `nil` for none.
    ///   - continuesRequests: whether a request with `Expect: 100-continue` is told to continue. Otherwise its response
    ///     is sent at once, and its body is not read.
    ///   - service: how many connections are served at a time.
    package init(
        host: UInt8 = 1, port: Int = 0, line: NetworkLine? = nil, continuesRequests: Bool = true,
        service: Service = .all, _ script: [String: [ScriptedAnswer]]
    ) throws {
        self.script = script
        self.continuesRequests = continuesRequests
        self.service = service
        self.line = line
        self.host = host
        (listener, self.port) = try listenOnLoopback(host: host, port: port, backlog: 1024)
        try startThread { [weak self, listener] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    if errno == EINTR || errno == ECONNABORTED { continue }
                    close(listener)
                    return
                }
                guard let self, self.enter(connection) else {
                    close(connection)
                    close(listener)
                    return
                }
                do {
                    try startThread {
                        self.converse(on: connection)
                        self.leave(connection)
                    }
                } catch {
                    self.leave(connection)
                }
            }
        }
    }

    deinit { stop() }

    package func url(_ path: String) -> String { "http://127.0.0.\(host):\(port)\(path)" }

    /// Returns the requests for `path` so far, or all requests.
    package func requests(for path: String? = nil) -> [Request] {
        state.withLock { state in state.requests.filter { path == nil || $0.path == path } }
    }

    /// Returns the number of body bytes passed to the kernel in responses to requests for `path`.
    package func bodyBytesSent(for path: String) -> Int64 {
        state.withLock { $0.bodyBytesSent[path, default: 0] }
    }

    /// The number of connections accepted so far.
    package var connectionsAccepted: Int { state.withLock { $0.accepted } }

    /// The number of connections that are still open.
    package var connectionsOpen: Int { state.withLock { $0.connections.count } }

    /// Closes all open connections and refuses new ones.
    package func stop() {
        let wasRunning = state.withLock { state in
            defer { state.stopped = true }
            // The descriptors are closed by the threads that own them; under the lock none of them is stale.
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
            return !state.stopped
        }
        guard wasRunning else { return }
        // This refuses connections at once; the accepting thread wakes up and closes the listener.
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private func enter(_ connection: Int32) -> Bool {
        var on: Int32 = 1
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return state.withLock { state in
            guard !state.stopped else { return false }
            state.accepted += 1
            state.connections.insert(connection)
            return true
        }
    }

    private func leave(_ connection: Int32) {
        state.withLock { state in
            state.connections.remove(connection)
            close(connection)
        }
    }

    /// Waits until a connection is served.
    ///
    /// - Returns: `false` if it never is.
    private func isServed(_ number: Int, on connection: Int32) -> Bool {
        if case .all = service { return true }
        while true {
            let (isServed, isStopped) = state.withLock { state in
                if state.served == nil { state.served = number }
                return (state.served == number, state.stopped)
            }
            if isServed || isStopped { return isServed }
            var byte: UInt8 = 0
            if case .onlyOne = service {
                while recv(connection, &byte, 1, 0) > 0 {}
                return false
            }
            // A client that has left is not served.
            if recv(connection, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0 { return false }
            usleep(1_000)
        }
    }

    private func converse(on connection: Int32) {
        var reader = RequestReader(descriptor: connection, continuesRequests: continuesRequests)
        let connected = line.map { NetworkLine.Connection($0) }
        let number = state.withLock { state in
            state.conversations += 1
            return state.conversations
        }
        defer { state.withLock { if $0.served == number { $0.served = nil } } }
        while var request = reader.next() {
            request.connection = number
            guard isServed(number, on: connection) else { return }
            connected?.begin()
            let answer = state.withLock { [request] state in
                let earlier = state.requests.count { $0.path == request.path }
                state.requests.append(request)
                let answers = script[request.path] ?? [.status(404)]
                return earlier < answers.count ? answers[earlier] : (answers.last ?? .status(404))
            }
            let writer = AnswerWriter(descriptor: connection, request: request, line: connected) {
                [self, request] count in
                state.withLock { $0.bodyBytesSent[request.path, default: 0] += count }
            }
            guard writer.write(answer) else { return }
        }
    }
}

/// A reader of the requests on a connection, including their bodies.
struct RequestReader {
    let descriptor: Int32
    let continuesRequests: Bool
    private var pending: [UInt8] = []

    init(descriptor: Int32, continuesRequests: Bool = true) {
        self.descriptor = descriptor
        self.continuesRequests = continuesRequests
    }

    private mutating func fill() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let got = recv(descriptor, &buffer, buffer.count, 0)
            if got > 0 {
                pending += buffer[..<got]
                return true
            }
            if got == 0 || errno != EINTR { return false }
        }
    }

    private mutating func line() -> String? {
        while true {
            if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                var text = pending[..<end]
                if text.last == UInt8(ascii: "\r") { text.removeLast() }
                let line = String(decoding: text, as: UTF8.self)
                pending.removeSubrange(...end)
                return line
            }
            guard pending.count < 1 << 20, fill() else { return nil }
        }
    }

    private mutating func take(_ count: Int) -> [UInt8]? {
        while pending.count < count { guard fill() else { return nil } }
        let bytes = Array(pending[..<count])
        pending.removeSubrange(..<count)
        return bytes
    }

    /// Reads the next request.
    ///
    /// - Returns: `nil` if the connection ends or the data is not a valid request.
    mutating func next() -> ScriptedServer.Request? {
        guard let first = line() else { return nil }
        let words = first.split(separator: " ")
        guard words.count == 3 else { return nil }
        var headers: [(name: String, value: String)] = []
        while let line = line() {
            if line.isEmpty {
                guard let body = body(headers) else { return nil }
                return ScriptedServer.Request(
                    method: String(words[0]), path: String(words[1]), headers: headers, body: body)
            }
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            headers.append((line[..<colon].lowercased(), String(value)))
        }
        return nil
    }

    private mutating func body(_ headers: [(name: String, value: String)]) -> [UInt8]? {
        func header(_ name: String) -> String? { headers.first { $0.name == name }?.value.lowercased() }
        let chunked = header("transfer-encoding") == "chunked"
        let length = header("content-length").flatMap { Int($0) } ?? 0
        if header("expect") == "100-continue", chunked || length > 0 {
            if !continuesRequests { return [] }
            _ = sendAll(descriptor, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        guard chunked else { return take(length) }
        var body: [UInt8] = []
        while let size = line().flatMap({ Int($0.prefix { $0 != ";" }, radix: 16) }) {
            if size == 0 {
                while let trailer = line() { if trailer.isEmpty { return body } }
                return nil
            }
            guard let piece = take(size), line() != nil else { return nil }
            body += piece
        }
        return nil
    }
}
