/// A task as `task.get` reports it: its status, and what is reported for a single task only.
///
/// In JSON the fields of the status and those of this type are in one object.
public struct TaskDetail: Sendable, Equatable {
    public var status: TaskStatus
    /// The attempts, oldest first, at most ``maximumAttempts``; `nil` from a daemon that does not report them.
    public var history: [TaskAttempt]?
    /// The live values of a running task.
    public var live: LiveTransfer?
    /// One sentence on why a task that is not running does not run, and what happens next.
    public var waitingFor: String?

    /// The maximum number of attempts in ``history``.
    public static let maximumAttempts = 20

    public init(
        status: TaskStatus, history: [TaskAttempt]? = nil, live: LiveTransfer? = nil, waitingFor: String? = nil
    ) {
        self.status = status
        self.history = history
        self.live = live
        self.waitingFor = waitingFor
    }
}

extension TaskDetail: Codable {
    private enum CodingKeys: String, CodingKey { case history, live, waitingFor }

    public init(from decoder: any Decoder) throws {
        status = try TaskStatus(from: decoder)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        history = try container.decodeIfPresent([TaskAttempt].self, forKey: .history)
        live = try container.decodeIfPresent(LiveTransfer.self, forKey: .live)
        waitingFor = try container.decodeIfPresent(String.self, forKey: .waitingFor)
    }

    public func encode(to encoder: any Encoder) throws {
        try status.encode(to: encoder)
        // `encode` instead of `encodeIfPresent`, so that no field is ever missing.
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(history, forKey: .history)
        try container.encode(live, forKey: .live)
        try container.encode(waitingFor, forKey: .waitingFor)
    }
}

/// One attempt of a task.
public struct TaskAttempt: Sendable, Equatable {
    public var startedAt: Milliseconds
    /// The end; `nil` for the attempt that runs.
    public var endedAt: Milliseconds?
    /// The address of the server, such as `192.0.2.1:443` or `[::1]:80`.
    public var address: String?
    /// The body bytes of this attempt.
    public var bytes: Int64
    /// The milliseconds from the start of the attempt to the end of the name lookup; `nil` if there was none.
    public var name: Int64?
    /// The milliseconds from the start of the attempt until the connection was established.
    public var connect: Int64?
    /// The milliseconds from the start of the attempt to the end of the TLS handshake.
    public var tls: Int64?
    /// The milliseconds from the start of the attempt to the first byte of the response.
    public var firstByte: Int64?
    /// The version of HTTP, such as `1.1` or `2`.
    public var httpVersion: String?
    /// The status of the response.
    public var status: Int?
    public var error: TaskFailure?

    public init(
        startedAt: Milliseconds, endedAt: Milliseconds? = nil, address: String? = nil, bytes: Int64 = 0,
        name: Int64? = nil, connect: Int64? = nil, tls: Int64? = nil, firstByte: Int64? = nil,
        httpVersion: String? = nil, status: Int? = nil, error: TaskFailure? = nil
    ) {
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.address = address
        self.bytes = bytes
        self.name = name
        self.connect = connect
        self.tls = tls
        self.firstByte = firstByte
        self.httpVersion = httpVersion
        self.status = status
        self.error = error
    }
}

extension TaskAttempt: Codable {
    private enum CodingKeys: String, CodingKey {
        case startedAt, endedAt, address, bytes, name, connect, tls, firstByte, httpVersion, status, error
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(startedAt, forKey: .startedAt)
        try container.encode(endedAt, forKey: .endedAt)
        try container.encode(address, forKey: .address)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(name, forKey: .name)
        try container.encode(connect, forKey: .connect)
        try container.encode(tls, forKey: .tls)
        try container.encode(firstByte, forKey: .firstByte)
        try container.encode(httpVersion, forKey: .httpVersion)
        try container.encode(status, forKey: .status)
        try container.encode(error, forKey: .error)
    }
}

/// The live values of a running task.
public struct LiveTransfer: Codable, Sendable, Equatable {
    public var connections: [LiveConnection]
    /// The ranges of the file that are there: merged, ascending, at most ``maximumSegments``.
    public var segments: [LiveSegment]
    public var rateLimits: [LiveRateLimit]

    /// The maximum number of ``segments``; beyond it, neighbours across the smallest gaps are merged.
    public static let maximumSegments = 512

    public init(connections: [LiveConnection], segments: [LiveSegment], rateLimits: [LiveRateLimit]) {
        self.connections = connections
        self.segments = segments
        self.rateLimits = rateLimits
    }
}

/// A connection of a running task.
public struct LiveConnection: Sendable, Equatable {
    /// The address of the server, such as `192.0.2.1:443` or `[::1]:80`.
    public var address: String?
    /// The first offset of its request.
    public var first: Int64
    /// The next offset to be received.
    public var next: Int64
    /// The offset after the last requested one; `nil` if the request has no end.
    public var end: Int64?
    /// The throughput in bytes per second.
    public var rate: Int64

    public init(address: String?, first: Int64, next: Int64, end: Int64?, rate: Int64) {
        self.address = address
        self.first = first
        self.next = next
        self.end = end
        self.rate = rate
    }
}

extension LiveConnection: Codable {
    private enum CodingKeys: String, CodingKey { case address, first, next, end, rate }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(address, forKey: .address)
        try container.encode(first, forKey: .first)
        try container.encode(next, forKey: .next)
        try container.encode(end, forKey: .end)
        try container.encode(rate, forKey: .rate)
    }
}

/// A range of a file.
public struct LiveSegment: Codable, Sendable, Equatable {
    public var first: Int64
    /// The offset after the last byte.
    public var end: Int64

    public init(first: Int64, end: Int64) {
        self.first = first
        self.end = end
    }
}

/// A rate limit that applies to a running task.
public struct LiveRateLimit: Codable, Sendable, Equatable {
    public enum Scope: String, Codable, Sendable, CaseIterable {
        case task, host, owner, daemon, schedule
    }

    public var scope: Scope
    /// The limit in bytes per second.
    public var rate: Int64

    public init(scope: Scope, rate: Int64) {
        self.scope = scope
        self.rate = rate
    }
}
