import ControlProtocol
import FoundationEssentials
import TaskModel

/// A connection to the daemon: one call at a time, and events between them once they are subscribed to.
///
/// Calls block the calling thread, so that a program which does nothing else needs no event loop; a client
/// belongs to one thread at a time. Closed when the last reference goes.
///
/// ```swift
/// let client = try ControlClient()
/// let ids = try client.add([TaskSpecification(url: "https://example.org/a.iso")])
/// ```
public final class ControlClient {
    /// The socket that answered.
    public var path: String { channel.path }
    /// How long most calls wait for their answer, in seconds. Those that may touch every task of a large queue
    /// (`queue.commit`, and actions) wait as long as it takes.
    public var answerTimeout: Double = 60
    /// No call waits beyond this moment, whatever its own limit.
    public var deadline = Deadline.never

    private let channel: LineChannel
    private var lastID: Int64 = 0
    private var pendingEvents: ArraySlice<TaskEvent> = []
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()

    /// - Throws: ``ClientError/noDaemon(paths:errno:)``, ``ClientError/notPermitted(path:)`` or
    ///   ``ClientError/unusablePath(_:)``; ``ClientError/timedOut`` where the daemon lets connections queue up.
    public init(path: String) throws(ClientError) {
        channel = try LineChannel(connectingTo: path)
        encoder.outputFormatting = .withoutEscapingSlashes
    }

    /// Connects to the first of ``SocketPath/candidates(explicit:environment:)`` that answers.
    ///
    /// - Throws: as ``init(path:)``; `noDaemon` names every place that was tried.
    public convenience init(
        explicit: String? = nil, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(ClientError) {
        let candidates = SocketPath.candidates(explicit: explicit, environment: environment)
        for candidate in candidates.dropLast() where Self.answers(candidate) {
            try self.init(path: candidate)
            return
        }
        do throws(ClientError) {
            try self.init(path: candidates.last ?? SocketPath.system)
        } catch .noDaemon(_, let code) {
            throw .noDaemon(paths: candidates, errno: code)
        }
    }

    private static func answers(_ path: String) -> Bool {
        (try? LineChannel(connectingTo: path)) != nil
    }

    // MARK: - Calls

    /// Sends one call and waits for its answer; events that come before it are kept for ``nextEvent(until:)``.
    ///
    /// - Parameter unlimited: waits for the answer until ``deadline`` alone.
    public func call<Value: Decodable & Sendable>(
        _ method: MethodName, _ parameters: some Encodable & Sendable, returning: Value.Type = Value.self,
        unlimited: Bool = false
    ) throws(ClientError) -> Value {
        try answer(to: begin(method, parameters, unlimited: unlimited))
    }

    /// A call that was sent and whose answer has not been taken.
    struct PendingCall {
        fileprivate let id: Int64
        fileprivate let isUnlimited: Bool
    }

    /// Sends a call without waiting for its answer, so that the daemon has the next one before it is done with this:
    /// it takes the calls of a connection in order. Not for more than a few: what it does not read waits here.
    func begin(
        _ method: MethodName, _ parameters: some Encodable & Sendable, unlimited: Bool = false
    ) throws(ClientError) -> PendingCall {
        lastID += 1
        return try send(OutgoingRequest(id: lastID, method: method, parameters: parameters), unlimited: unlimited)
    }

    /// A call by any name, with parameters and result as they are.
    ///
    /// - Parameter parameters: an object or an array (JSON-RPC 2.0, section 4.2), or `nil` for none.
    public func call(method: String, parameters: JSONValue?) throws(ClientError) -> JSONValue {
        lastID += 1
        return try answer(to: send(RawRequest(id: lastID, method: method, params: parameters), unlimited: true))
    }

    private struct RawRequest: Encodable, Sendable {
        let jsonrpc = "2.0"
        let id: Int64
        let method: String
        let params: JSONValue?
    }

    private func send(_ request: some Encodable, unlimited: Bool) throws(ClientError) -> PendingCall {
        let line: [UInt8]
        do {
            line = Array(try encoder.encode(request))
        } catch {
            throw .malformedAnswer("the call cannot be written as JSON")
        }
        guard line.count <= MessageLimits.lineLength else { throw .callTooLong(bytes: line.count) }
        try channel.send(line, until: limit(isUnlimited: unlimited))
        return PendingCall(id: lastID, isUnlimited: unlimited)
    }

    func send(descriptors: [Int32]) throws(ClientError) {
        try channel.send(descriptors: descriptors, until: limit(isUnlimited: false))
    }

    /// The latest moment to wait for from now.
    private func limit(isUnlimited: Bool) -> Deadline {
        isUnlimited ? deadline : min(deadline, .after(seconds: answerTimeout))
    }

    /// Waits for a call's answer; those of earlier calls that nobody took are passed over.
    func answer<Value: Decodable & Sendable>(
        to call: PendingCall, as type: Value.Type = Value.self
    ) throws(ClientError) -> Value {
        let limit = limit(isUnlimited: call.isUnlimited)
        while true {
            switch try next(Value.self, until: limit) {
            case .event(let event): pendingEvents.append(event)
            case .unknown: continue
            case .answer(.number(call.id), let outcome), .answer(.null, let outcome):
                switch outcome {
                case .success(let value): return value
                case .failure(let error): throw .rpc(error)
                }
            // The late answer to a call that was given up.
            case .answer: continue
            }
        }
    }

    // MARK: - Events

    /// The next event of a subscription, in order.
    ///
    /// - Returns: `nil` where none came until `deadline`.
    public func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent? {
        if let event = pendingEvents.popFirst() { return event }
        do throws(ClientError) {
            while true {
                if case .event(let event) = try next(JSONValue.self, until: deadline) { return event }
            }
        } catch .timedOut {
            return nil
        }
    }

    private func next<Value: Decodable & Sendable>(
        _ type: Value.Type, until deadline: Deadline
    ) throws(ClientError) -> IncomingMessage<Value> {
        let line = try channel.receive(until: deadline)
        do {
            return try decoder.decode(IncomingMessage<Value>.self, from: Data(line))
        } catch {
            throw .malformedAnswer(AnswerFault.text(of: error))
        }
    }
}
