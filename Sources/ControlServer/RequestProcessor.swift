import ControlProtocol
import FoundationEssentials
import NIOCore
import TaskModel
import TaskQueue

/// A processor that decodes one line, carries it out and encodes the response.
struct RequestProcessor: Sendable {
    let handler: any ControlHandler
    let peer: Peer
    let searches: SearchRunner

    /// The result of carrying out a line.
    struct Reply: Sendable {
        /// The response as one line with its LF; `nil` if the line held only notifications.
        var answer: ByteBuffer?
        /// The subscription to serve once the response is being sent.
        var subscription: EventSubscription?
        /// The reservation for the open files that the client sends after it has received the response.
        var room: DescriptorQuota.Reservation?
    }

    /// - Parameter permit: decides whether a stream of events may begin.
    func reply(to message: Result<Message, RPCError>, permit: SubscriptionPermit) async -> Reply {
        var reply = Reply()
        switch message {
        case .failure(let error):
            reply.answer = Self.errorLine(error)
        case .success(.single(let request, let prepared)):
            let text = await carryOut(
                request, prepared, isAlone: true, permit: permit, into: &reply)
            reply.answer = text.map { Self.line([$0], isBatch: false) }
        case .success(.batch(let requests)):
            var texts: [Data] = []
            var length = 0
            for request in requests {
                let text: Data?
                if length < MessageLimits.lineLength {
                    text = await carryOut(request, permit: permit, into: &reply)
                } else {
                    // Without this limit, a thousand pages in one response would take a gigabyte of memory for one line
                    // of input.
                    text = Self.failure(
                        request.id, .refused(.tooLarge, "the batch's response is too long; send smaller batches"))
                }
                guard let text else { continue }
                length += text.count
                texts.append(text)
            }
            if !texts.isEmpty { reply.answer = Self.line(texts, isBatch: true) }
        }
        return reply
    }

    /// Returns the response to a message if its result is at hand; `nil` if the message is to be carried out.
    func replyAtHand(to message: Result<Message, RPCError>) -> Reply? {
        guard case .success(.single(let request, _)) = message, let id = request.id,
            case .success(let command) = request.command,
            let result = handler.resultAtHand(of: command, for: peer), let text = try? result.response(to: id)
        else { return nil }
        return Reply(answer: Self.line([text], isBatch: false))
    }

    /// Returns an error that belongs to no request in particular, as a line.
    static func errorLine(_ error: RPCError) -> ByteBuffer {
        line([failure(.null, error)].compactMap { $0 }, isBatch: false)
    }

    // MARK: - Decoding

    /// The decoded content of a line.
    enum Message: Sendable {
        case single(IncomingRequest, PreparedCommand?)
        case batch([IncomingRequest])
    }

    /// A batch, of which at most one request more than allowed is decoded.
    private struct Batch: Decodable {
        var requests: [IncomingRequest] = []

        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            while !list.isAtEnd, requests.count <= MessageLimits.batch {
                requests.append(try list.decode(IncomingRequest.self))
            }
        }
    }

    /// Decodes a line and prepares its command.
    ///
    /// - Parameter line: a non-empty line without its LF.
    func read(_ line: ByteBuffer) -> Result<Message, RPCError> {
        decode(line).map { message in
            guard case .single(let request, _) = message else { return message }
            return .single(request, prepare(request))
        }
    }

    /// Decodes a line. Its command is prepared when it is carried out.
    ///
    /// - Parameter line: a non-empty line without its LF.
    func decode(_ line: ByteBuffer) -> Result<Message, RPCError> {
        let bytes = line.readableBytesView
        if let fault = JSONScan.fault(in: bytes) { return .failure(RPCError(fault)) }
        do {
            let data = Data(bytes)
            guard Self.isBatch(line) else {
                return .success(.single(try JSONDecoder().decode(IncomingRequest.self, from: data), nil))
            }
            let requests = try JSONDecoder().decode(Batch.self, from: data).requests
            guard !requests.isEmpty else { return .failure(.invalidRequest("the batch is empty")) }
            guard requests.count <= MessageLimits.batch else {
                return .failure(.invalidRequest("a batch contains at most \(MessageLimits.batch) requests"))
            }
            return .success(.batch(requests))
        } catch {
            return .failure(.parse("the line is not JSON"))
        }
    }

    static func isBlank(_ line: ByteBuffer) -> Bool { firstByte(line) == nil }

    static func isBatch(_ line: ByteBuffer) -> Bool { firstByte(line) == UInt8(ascii: "[") }

    /// Whether a line is the first one of an HTTP request (RFC 9112, section 3, and RFC 9113, section 3.4).
    ///
    /// A browser or a server may be made to send requests of someone else's choice to this socket. The lines of their
    /// bodies must not be carried out.
    static func isHTTP(_ line: ByteBuffer) -> Bool {
        line.withUnsafeReadableBytes { bytes in
            // A JSON text does not begin with a capital letter.
            guard let first = bytes.first, first >= UInt8(ascii: "A"), first <= UInt8(ascii: "Z") else { return false }
            let version = bytes.suffix(8)
            return version.starts(with: "HTTP/".utf8)
        }
    }

    private static func firstByte(_ line: ByteBuffer) -> UInt8? {
        line.withUnsafeReadableBytes { bytes in
            bytes.first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") && $0 != UInt8(ascii: "\r") }
        }
    }

    private func prepare(_ request: IncomingRequest) -> PreparedCommand? {
        switch request.command {
        case .success(.eventsSubscribe), .success(.sourceReceive), .failure: nil
        case .success(let command): handler.prepare(command, from: peer)
        }
    }

    // MARK: - Execution

    /// - Returns: the response, or `nil` for a notification.
    private func carryOut(
        _ request: IncomingRequest, _ prepared: PreparedCommand? = nil, isAlone: Bool = false,
        permit: SubscriptionPermit, into reply: inout Reply
    ) async -> Data? {
        switch request.command {
        case .failure(let error):
            return Self.failure(request.id, error)
        case .success(.eventsSubscribe(let parameters)):
            if case .refused(let error) = await permit.acquire() { return Self.failure(request.id, error) }
            switch await handler.events(parameters, for: peer) {
            case .success(let subscription):
                reply.subscription = subscription
                return Self.success(
                    request.id, EventsSubscribeResult(last: subscription.last, journal: subscription.journal))
            case .failure(let error):
                permit.release()
                return Self.failure(request.id, error)
            }
        case .success(.sourceReceive(let parameters)):
            guard isAlone, request.id != nil else {
                return Self.failure(
                    request.id, .invalidRequest("source.receive must be the only request in its line and have an id"))
            }
            switch handler.receive(parameters, from: peer) {
            case .success(let room):
                reply.room = room
                return Self.success(request.id, Acknowledgement())
            case .failure(let error):
                return Self.failure(request.id, error)
            }
        case .success(let command):
            let run = prepared ?? handler.prepare(command, from: peer)
            switch await searches.run(run, command.search) {
            case .success(let value): return Self.success(request.id, value)
            case .failure(let error): return Self.failure(request.id, error)
            }
        }
    }

    // MARK: - Encoding

    /// Returns the events as notifications, one per line.
    static func lines(_ events: [TaskEvent]) -> ByteBuffer {
        let encoder = EncodedResult.encoder
        var bytes: [UInt8] = []
        bytes.reserveCapacity(events.count * eventLength)
        for event in events {
            if !EventText.append(event, to: &bytes) {
                guard let text = try? encoder.encode(EventNotification(event: event)) else { continue }
                bytes += text
            }
            bytes.append(UInt8(ascii: "\n"))
        }
        return ByteBuffer(bytes: bytes)
    }

    /// The usual length in bytes of an event's line.
    private static let eventLength = 512

    private static func success(_ id: RequestID?, _ value: some Encodable & Sendable) -> Data? {
        guard let id else { return nil }
        if let result = value as? EncodedResult, let data = try? result.response(to: id) { return data }
        if let data = try? EncodedResult.encoder.encode(RPCResponse(id: id, outcome: .success(value))) { return data }
        return failure(
            id,
            RPCError(
                code: RPCError.Number.internal, message: "the daemon could not encode the result as JSON",
                data: .init(code: .internal)))
    }

    private static func failure(_ id: RequestID?, _ error: RPCError) -> Data? {
        guard let id else { return nil }
        return try? EncodedResult.encoder.encode(RPCResponse<Acknowledgement>(id: id, outcome: .failure(error)))
    }

    private static func line(_ texts: [Data], isBatch: Bool) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.reserveCapacity(texts.reduce(3) { $0 + $1.count + 1 })
        if isBatch { buffer.writeInteger(UInt8(ascii: "[")) }
        for (index, text) in texts.enumerated() {
            if index > 0 { buffer.writeInteger(UInt8(ascii: ",")) }
            buffer.writeBytes(text)
        }
        if isBatch { buffer.writeInteger(UInt8(ascii: "]")) }
        buffer.writeInteger(UInt8(ascii: "\n"))
        return buffer
    }
}
