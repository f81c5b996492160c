public import TaskModel

/// A response: either a result or an error, never both.
public struct RPCResponse<Value: Encodable & Sendable>: Encodable, Sendable {
    public let id: RequestID
    public let outcome: Result<Value, RPCError>

    public init(id: RequestID, outcome: Result<Value, RPCError>) {
        self.id = id
        self.outcome = outcome
    }

    private enum CodingKeys: String, CodingKey { case jsonrpc, id, result, error }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("2.0", forKey: .jsonrpc)
        try container.encode(id, forKey: .id)
        switch outcome {
        case .success(let value): try container.encode(value, forKey: .result)
        case .failure(let error): try container.encode(error, forKey: .error)
        }
    }
}

/// A request as a client sends it.
public struct OutgoingRequest<Parameters: Encodable & Sendable>: Encodable, Sendable {
    public let id: Int64
    public let method: MethodName
    public let parameters: Parameters

    public init(id: Int64, method: MethodName, parameters: Parameters) {
        self.id = id
        self.method = method
        self.parameters = parameters
    }

    private enum CodingKeys: String, CodingKey { case jsonrpc, id, method, params }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("2.0", forKey: .jsonrpc)
        try container.encode(id, forKey: .id)
        try container.encode(method.rawValue, forKey: .method)
        try container.encode(parameters, forKey: .params)
    }
}

/// A response as the client that waits for it decodes it.
public struct IncomingResponse<Value: Decodable & Sendable>: Decodable, Sendable {
    public let id: RequestID
    public let outcome: Result<Value, RPCError>

    private enum CodingKeys: String, CodingKey { case id, result, error }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(RequestID.self, forKey: .id)
        if let error = try container.decodeIfPresent(RPCError.self, forKey: .error) {
            outcome = .failure(error)
        } else {
            outcome = .success(try container.decode(Value.self, forKey: .result))
        }
    }
}

/// The notification `event`, which reports an event on a connection that has subscribed.
public struct EventNotification: Codable, Sendable {
    public static let method = "event"
    public let event: TaskEvent

    public init(event: TaskEvent) { self.event = event }

    private enum CodingKeys: String, CodingKey { case jsonrpc, method, params }

    public init(from decoder: any Decoder) throws {
        event = try decoder.container(keyedBy: CodingKeys.self).decode(TaskEvent.self, forKey: .params)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode("2.0", forKey: .jsonrpc)
        try container.encode(Self.method, forKey: .method)
        try container.encode(event, forKey: .params)
    }
}
