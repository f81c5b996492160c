import ControlProtocol
import ControlServer
import FoundationEssentials
import Glibc
import Logging
import TaskModel

/// A handler with scripted responses.
struct ScriptedHandler: ControlHandler {
    var commands: @Sendable (Command, Peer) async -> Result<any Encodable & Sendable, RPCError> = { _, _ in
        .success(Acknowledgement())
    }
    var subscriptions: @Sendable (Int64?, Peer) async -> Result<EventSubscription, RPCError> = { _, _ in
        .failure(.refused(.invalid, "no events here"))
    }

    var resultsAtHand: @Sendable (Command, Peer) -> EncodedResult? = { _, _ in nil }

    func resultAtHand(of command: Command, for peer: Peer) -> EncodedResult? { resultsAtHand(command, peer) }

    func handle(_ command: Command, from peer: Peer) async -> Result<any Encodable & Sendable, RPCError> {
        await commands(command, peer)
    }

    func events(
        _ parameters: EventsSubscribeParameters, for peer: Peer
    ) async -> Result<EventSubscription, RPCError> {
        await subscriptions(parameters.after, peer)
    }
}

/// A one-time event that tasks can wait for.
actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    func wait() async {
        if isOpen { return }
        await withCheckedContinuation { waiting.append($0) }
    }
}

/// Runs `body` with a directory that is removed afterwards with all its contents.
func withTemporaryDirectory<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    var template = Array("/tmp/dld-control-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestClient.Failure(call: "mkdtemp", errno: errno) }
    let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    return try await body(directory)
}

/// Creates a pipe that no child process inherits.
func makePipe() throws -> (output: Int32, input: Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw TestClient.Failure(call: "pipe", errno: errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
}

/// Runs a server on its own socket for the duration of `body`.
func withServer<Value>(
    _ handler: ScriptedHandler = ScriptedHandler(), mode: UInt32 = 0o600,
    authorize: @escaping @Sendable (Peer) -> Bool = { _ in true },
    limits: (inout ConnectionLimits) -> Void = { _ in },
    _ body: (ControlServer, String) async throws -> Value
) async throws -> Value {
    try await withTemporaryDirectory { directory in
        let path = directory + "/dld.sock"
        var configuration = ControlServer.Configuration(
            sockets: [.path(ListeningSocketPath(path: path, mode: mode, replacesStale: false))], authorize: authorize)
        limits(&configuration.limits)
        let server = ControlServer(configuration: configuration, handler: handler, logger: quietLogger)
        try await server.start()
        do {
            let value = try await body(server, path)
            await server.shutdown()
            return value
        } catch {
            await server.shutdown()
            throw error
        }
    }
}

let quietLogger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// Returns a request for the daemon's status, which every handler above answers.
func request(_ id: Int) -> String { #"{"jsonrpc":"2.0","id":\#(id),"method":"daemon.status"}"# }

/// Returns the default response of ``ScriptedHandler``.
func acknowledgement(_ id: Int) -> String { #"{"id":\#(id),"jsonrpc":"2.0","result":{"ok":true}}"# }

extension EventSubscription {
    /// Creates a subscription that delivers the events one at a time.
    init(last: Int64, events: AsyncStream<TaskEvent>) {
        self.init(last: last, journal: "j") { _ in events.map { [$0] } }
    }
}
