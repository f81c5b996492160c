public import ControlProtocol
public import FoundationEssentials
public import TaskModel

/// A connection to the daemon for synchronous calls and, after a subscription, for events.
///
/// Calls block the calling thread, so a program that does nothing else needs no event loop. A client may be used by
/// only one thread at a time. The connection is closed when the last reference is released.
///
/// ```swift
/// let client = try ControlClient()
/// let ids = try client.add([TaskSpecification(url: "https://example.org/a.iso")])
/// ```
public final class ControlClient {
    /// The path of the connected socket.
    public var path: String { channel.path }
    /// The time-out of calls in seconds. Calls that may touch every task of a large queue (such as `queue.commit` and task
    /// actions) go on after it if the daemon answers on another connection, since it is only busy then.
    public var answerTimeout: Double = 60
    /// The latest time until which any call waits, in addition to its own time-out.
    public var deadline = Deadline.never
    /// Receives a line about each call when its response arrives: the method, the time, and the error if there is one.
    /// Parameters and results are left out, since they may be secret.
    public var trace: ((String) -> Void)?

    private let channel: LineChannel
    private var lastID: Int64 = 0
    private var pendingEvents: ArraySlice<TaskEvent> = []
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    /// Connects to the socket at `path`.
    ///
    /// - Throws: ``ClientError/noDaemon(paths:errno:)``, ``ClientError/notPermitted(path:)`` or
    ///   ``ClientError/unusablePath(_:)``; ``ClientError/timedOut`` where the daemon's backlog of connections stays
    ///   full.
    public init(path: String) throws(ClientError) {
        channel = try LineChannel(connectingTo: path)
        encoder.outputFormatting = .withoutEscapingSlashes
    }

    /// Connects to the first of ``SocketPath/candidates(explicit:instance:environment:)`` that accepts a connection.
    ///
    /// - Throws: the errors of ``init(path:)``; `noDaemon` names the first and the last path that was tried.
    public convenience init(
        explicit: String? = nil, instance: InstanceName? = nil,
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ClientError) {
        let candidates = SocketPath.candidates(explicit: explicit, instance: instance, environment: environment)
        for candidate in candidates.dropLast() where Self.answers(candidate) {
            try self.init(path: candidate)
            return
        }
        do throws(ClientError) {
            try self.init(path: candidates.last ?? SocketPath.system)
        } catch .noDaemon(_, let code) {
            throw .noDaemon(paths: candidates.filter { $0 == candidates.first || $0 == candidates.last }, errno: code)
        }
    }

    private static func answers(_ path: String) -> Bool {
        (try? LineChannel(connectingTo: path)) != nil
    }

    /// Returns a second descriptor of the socket; `nil` if the process has too many open files.
    func duplicateDescriptor() -> Int32? { channel.duplicate() }

    // MARK: - Calls

    /// Sends one call and waits for its response. Events received meanwhile are kept for ``nextEvent(until:)``.
    ///
    /// - Parameters:
    ///   - method: the method.
    ///   - parameters: its parameters, as docs/protocol.md describes them.
    ///   - returning: the type of the result.
    ///   - unlimited: whether the wait goes on after ``answerTimeout`` for as long as the daemon answers other calls.
    public func call<Value: Decodable & Sendable>(
        _ method: MethodName, _ parameters: some Encodable & Sendable, returning: Value.Type = Value.self,
        unlimited: Bool = false
    ) throws(ClientError) -> Value {
        try answer(to: begin(method, parameters, unlimited: unlimited))
    }

    /// A call that was sent and whose response has not been read yet.
    struct PendingCall {
        fileprivate let id: Int64
        fileprivate let isUnlimited: Bool
        fileprivate let method: String
        fileprivate let began = ContinuousClock.now
    }

    /// Sends a call without waiting for its response, so that the daemon already has the next call when it completes
    /// this one. The daemon handles the calls of a connection in order. Use this for a few calls only: once the socket
    /// buffer is full, sending blocks until the daemon reads.
    func begin(
        _ method: MethodName, _ parameters: some Encodable & Sendable, unlimited: Bool = false
    ) throws(ClientError) -> PendingCall {
        lastID += 1
        return try send(
            OutgoingRequest(id: lastID, method: method, parameters: parameters), method.rawValue, unlimited: unlimited)
    }

    /// Calls a method by its name, with untyped parameters and an untyped result.
    ///
    /// - Parameters:
    ///   - method: the name of the method.
    ///   - parameters: an object or an array (JSON-RPC 2.0, section 4.2), or `nil` for none.
    public func call(method: String, parameters: RPCValue?) throws(ClientError) -> RPCValue {
        lastID += 1
        return try answer(to: send(RawRequest(id: lastID, method: method, params: parameters), method, unlimited: true))
    }

    private struct RawRequest: Encodable, Sendable {
        let jsonrpc = "2.0"
        let id: Int64
        let method: String
        let params: RPCValue?
    }

    private func send(
        _ request: some Encodable, _ method: String, unlimited: Bool
    ) throws(ClientError) -> PendingCall {
        let line: [UInt8]
        do {
            line = Array(try encoder.encode(request))
        } catch {
            throw .malformedAnswer("the request cannot be encoded as JSON")
        }
        guard line.count <= MessageLimits.lineLength else { throw .callTooLong(bytes: line.count) }
        try channel.send(line, until: limit)
        return PendingCall(id: lastID, isUnlimited: unlimited, method: method)
    }

    func send(descriptors: [Int32]) throws(ClientError) {
        try channel.send(descriptors: descriptors, until: limit)
    }

    /// The deadline for a wait that starts now.
    private var limit: Deadline { min(deadline, .after(seconds: answerTimeout)) }

    /// The share of the time-out after which a call without one of its own looks whether the daemon answers others.
    private static let shareBeforeProbe = 0.75

    /// Whether the daemon answers on a connection of its own, although a call takes long.
    private var isDaemonAlive: Bool {
        guard let other = try? ControlClient(path: path) else { return false }
        other.answerTimeout = answerTimeout * (1 - Self.shareBeforeProbe)
        do throws(ClientError) {
            _ = try other.status()
            return true
        } catch {
            if case .rpc = error { return true }
            return false
        }
    }

    /// Waits for a call's response; responses to earlier calls that were never read are skipped.
    func answer<Value: Decodable & Sendable>(
        to call: PendingCall, as type: Value.Type = Value.self
    ) throws(ClientError) -> Value {
        // With the probe, a daemon that answers nothing is noticed after the time-out.
        var limit = call.isUnlimited ? min(deadline, .after(seconds: answerTimeout * Self.shareBeforeProbe)) : limit
        while true {
            let message: IncomingMessage<Value>
            do throws(ClientError) {
                message = try next(Value.self, until: limit)
            } catch .timedOut where call.isUnlimited && !deadline.isOver && isDaemonAlive {
                limit = self.limit
                continue
            }
            switch message {
            case .event(let event): pendingEvents.append(event)
            case .unknown: continue
            case .answer(.number(call.id), let outcome), .answer(.null, let outcome):
                let time = Int(call.began.duration(to: .now) / .milliseconds(1))
                switch outcome {
                case .success(let value):
                    trace?("\(call.method): answered in \(time) ms")
                    return value
                case .failure(let error):
                    trace?("\(call.method): refused in \(time) ms: \(error.message)")
                    throw .rpc(error)
                }
            // A late response to an earlier call that was abandoned.
            case .answer: continue
            }
        }
    }

    // MARK: - Events

    /// Returns the next event of a subscription, in order.
    ///
    /// - Returns: `nil` if no event was received until `deadline`.
    public func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent? {
        if let event = pendingEvents.popFirst() { return event }
        do throws(ClientError) {
            while true {
                if case .event(let event) = try next(RPCValue.self, until: deadline) { return event }
            }
        } catch .timedOut {
            return nil
        }
    }

    private func next<Value: Decodable & Sendable>(
        _ type: Value.Type, until deadline: Deadline
    ) throws(ClientError) -> IncomingMessage<Value> {
        let line = try channel.receive(until: deadline)
        if let event = line.withUnsafeBytes(EventText.event) { return .event(event) }
        do {
            return try decoder.decode(IncomingMessage<Value>.self, from: Data(line))
        } catch {
            throw .malformedAnswer(AnswerFault.text(of: error))
        }
    }
}
