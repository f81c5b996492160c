import Curl
import DequeModule

/// The pending calls, the received messages and the frames to send of a WebSocket: a state machine without I/O.
///
/// Calls made before the connection is established wait for the attempt that establishes it. Messages are sent whole
/// and in the order of the calls; control frames go between the frames of a message.
struct WebSocketStateMachine {
    typealias Outcome = Result<WebSocketMessage?, TransferError>

    enum Phase: Equatable {
        /// The state before a connection is established.
        case waiting
        /// The connection is established, and TLS and the opening handshake come next.
        case connected
        case securing
        /// The opening handshake is sent, and its response is awaited.
        case upgrading
        case open
        /// A Close frame is to be sent, or was sent: no more data follow it.
        case closing
        /// Nothing more is sent or received: both sides of the connection are closed.
        case finishing
        case ended(TransferError?)
    }

    /// The bytes that are being sent.
    struct Piece {
        enum Purpose {
            case handshake
            case message(Int, isLast: Bool)
            case control, keepAlive, close
        }

        var bytes: [UInt8]
        var purpose: Purpose
        /// The number of bytes that the connection has accepted, and that it has sent.
        var accepted = 0
        var sent = 0
    }

    /// A message to send.
    struct Sending {
        var id: Int
        var opcode: WebSocketOpcode
        var payload: [UInt8]
        /// The number of bytes in frames that were begun.
        var offset = 0
        var isBegun = false
    }

    /// The received messages, and the calls that wait for some.
    struct Inbox {
        var messages: Deque<WebSocketMessage> = []
        /// The size of the messages.
        var size = 0
        var receivers: Deque<Int> = []
        /// Whether the connection was asked to receive nothing for now.
        var isPaused = false
    }

    /// The frames to be sent, and those being sent.
    struct Outbox {
        var sendings: Deque<Sending> = []
        var piece: Piece?
        /// Whether the connection has no room for more bytes. It notifies when it has: ``hasRoom()``.
        var isBlocked = false
        /// The payload of the pong to send: only the latest ping is answered (RFC 6455, section 5.5.3).
        var pong: [UInt8]?
        /// The pings that were asked for, and those that await a pong, by their numbers, which are their payloads.
        var pings: Deque<Int> = []
        var awaitedPongs: Deque<Int> = []
        /// The Close frame's payload to send, once the messages before it are sent.
        var close: [UInt8]?
        /// Whether a Close frame goes before all other frames.
        var closesAtOnce = false
        var isCloseSent = false
    }

    /// The maximum payload of a data frame in bytes. A larger message is sent in several, so that a pong need not wait
    /// for the whole message.
    static let longestFrame = 256 * 1024
    /// The size that a message in memory counts for, beyond its payload.
    static let overhead = 64

    /// The number of unread bytes of messages at which receiving pauses.
    let heldLimit: Int
    /// The maximum size of a received message in bytes.
    let maximumMessageSize: Int

    var phase = Phase.waiting
    var isSuspended = false
    /// Whether the opening handshake ever succeeded.
    var hasConnected = false
    var head: ResponseHead?
    var subprotocol: String?
    /// The content of the server's Close frame.
    var closure: WebSocketClosure?
    /// The reason why the connection is failed.
    var failure: TransferError?
    var bytesReceived: Int64 = 0
    var bytesSent: Int64 = 0

    var upgrade: WebSocketUpgrade?
    var reader = WebSocketHeadReader()
    var assembler: WebSocketAssembler

    var inbox = Inbox()
    var outbox = Outbox()
    var closers: [Int] = []
    var closedSides = (write: false, read: false)

    var clock = WebSocketClock()
    private var outcomes: [(id: Int, outcome: Outcome)] = []

    init(heldLimit: Int, maximumMessageSize: Int) {
        self.heldLimit = heldLimit
        self.maximumMessageSize = maximumMessageSize
        assembler = WebSocketAssembler(limit: maximumMessageSize)
    }

    /// Returns the outcomes since the last call, and removes them.
    mutating func removeOutcomes() -> [(id: Int, outcome: Outcome)] {
        guard !outcomes.isEmpty else { return [] }
        defer { outcomes = [] }
        return outcomes
    }

    mutating func complete(_ id: Int, _ outcome: Outcome) { outcomes.append((id, outcome)) }

    // MARK: Calls

    mutating func addReceive(_ id: Int) {
        inbox.receivers.append(id)
        serveReceivers()
    }

    mutating func addSend(_ id: Int, _ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        if let refusal { return complete(id, .failure(refusal)) }
        outbox.sendings.append(Sending(id: id, opcode: opcode, payload: payload))
    }

    mutating func addPing(_ id: Int) {
        if let refusal { return complete(id, .failure(refusal)) }
        outbox.pings.append(id)
    }

    /// Closes the connection once the messages before this call are sent. Only the first code and reason count.
    mutating func addClose(_ id: Int, _ payload: [UInt8]) {
        if case .ended(let error) = phase { return complete(id, error.map { .failure($0) } ?? .success(nil)) }
        closers.append(id)
        if outbox.close == nil, phase != .closing, phase != .finishing { outbox.close = payload }
        serveReceivers()
    }

    /// The reason why nothing more can be sent; `nil` while it can.
    private var refusal: TransferError? {
        switch phase {
        case .ended(let error): error ?? .webSocketClosed
        case .closing, .finishing: failure ?? .webSocketClosed
        case .waiting, .connected, .securing, .upgrading, .open: outbox.close == nil ? nil : .webSocketClosed
        }
    }

    // MARK: Withdrawal

    /// Withdraws a call.
    ///
    /// - Returns: `false` if it cannot be withdrawn, since a part of its message was sent.
    mutating func withdraw(_ id: Int) -> Bool {
        if let index = outbox.sendings.firstIndex(where: { $0.id == id }) {
            guard !outbox.sendings[index].isBegun else { return false }
            outbox.sendings.remove(at: index)
        } else if let index = inbox.receivers.firstIndex(of: id) {
            inbox.receivers.remove(at: index)
        } else if let index = closers.firstIndex(of: id) {
            closers.remove(at: index)
        } else if let index = outbox.pings.firstIndex(of: id) {
            outbox.pings.remove(at: index)
        } else if let index = outbox.awaitedPongs.firstIndex(of: id) {
            outbox.awaitedPongs.remove(at: index)
        } else {
            return true
        }
        complete(id, .failure(.cancelled))
        return true
    }

    // MARK: The life of the connection

    /// Called when a task begins to work for the request: an attempt begins.
    mutating func attach() {
        isSuspended = false
        if case .ended = phase { return }
        phase = .waiting
        (head, failure, outbox.piece, outbox.isBlocked, inbox.isPaused) = (nil, nil, nil, false, false)
        reader = WebSocketHeadReader()
        closedSides = (false, false)
        clock = WebSocketClock(stallTimeout: clock.stallTimeout)
    }

    mutating func connected() {
        if phase == .waiting { phase = .connected }
    }

    mutating func secured() {
        if phase == .securing { beginUpgrade() }
    }

    mutating func beginUpgrade() {
        guard let upgrade else { return }
        phase = .upgrading
        outbox.piece = Piece(bytes: upgrade.request, purpose: .handshake)
    }

    mutating func suspend() {
        isSuspended = true
        clock.stop()
    }

    mutating func resume() {
        isSuspended = false
        serveReceivers()
    }

    /// Ends the WebSocket. Only the first end has an effect.
    mutating func ended(_ error: TransferError?) {
        if case .ended = phase { return }
        phase = .ended(error)
        if error?.code == .cancelled {
            inbox.messages.removeAll()
            inbox.size = 0
        }
        outbox.piece = nil
        serveReceivers()
        failSending(error ?? .webSocketClosed)
        for id in closers { complete(id, error.map { .failure($0) } ?? .success(nil)) }
        closers = []
    }

    /// Returns the error that an attempt ends with.
    ///
    /// - Parameter error: the error of the connection; `nil` if both sides were closed.
    func conclusion(_ error: TransferError?) -> TransferError? {
        if let failure { return failure }
        // Once the server's Close frame has been received, the connection has served its purpose.
        if closure != nil, error?.code != .cancelled { return nil }
        guard var error else { return hasConnected ? nil : Self.closedEarly }
        // Before the opening handshake is complete, nothing was lost.
        if !hasConnected, error.code == .truncated { error.code = .cannotConnect }
        return error
    }

    static let closedEarly = TransferError(
        .cannotConnect, "the server closed the connection before it answered the WebSocket handshake")

    // MARK: Serving

    /// Whether the end of the messages is known.
    private var end: Result<Void, TransferError>? {
        switch phase {
        case .ended(let error): error.map { .failure($0) } ?? .success(())
        case .waiting, .connected, .securing, .upgrading, .open: nil
        case .closing, .finishing:
            // Before the opening handshake is complete, another attempt may follow.
            if let failure, hasConnected { .failure(failure) } else if closure != nil { .success(()) } else { nil }
        }
    }

    mutating func serveReceivers() {
        let end = end
        guard !isSuspended || end != nil else { return }
        while let id = inbox.receivers.first {
            if let message = inbox.messages.popFirst() {
                inbox.receivers.removeFirst()
                inbox.size -= message.size + Self.overhead
                complete(id, .success(message))
            } else if let end {
                inbox.receivers.removeFirst()
                complete(id, end.map { nil })
            } else {
                return
            }
        }
    }

    /// Fails the calls that send.
    mutating func failSending(_ error: TransferError) {
        for sending in outbox.sendings { complete(sending.id, .failure(error)) }
        for id in outbox.pings { complete(id, .failure(error)) }
        for id in outbox.awaitedPongs { complete(id, .failure(error)) }
        outbox.sendings.removeAll()
        outbox.pings.removeAll()
        outbox.awaitedPongs.removeAll()
    }
}

extension TransferError {
    static let webSocketClosed = streamClosed("the WebSocket is closed")
}
