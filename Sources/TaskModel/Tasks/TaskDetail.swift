/// A task as reported to a client that asks for it alone: its status, the history of its attempts, the state of its
/// transfer, and why it does not run.
///
/// The JSON object has the fields of ``TaskStatus`` and the further ones beside them. Unknown values are `null`.
public struct TaskDetail: Sendable, Equatable {
    public var status: TaskStatus
    /// The last attempts, the oldest first.
    public var history: [TaskAttempt]
    /// The state of the transfer; `nil` where the task does not run.
    public var live: LiveTransfer?
    /// The reason why the task does not run or does not proceed, and what happens next; `nil` where it waits for
    /// nothing.
    public var waitingFor: String?
    /// Whether the certificates of servers are not verified.
    public var insecure = false
    /// Whether the server of a download can continue the file, as far as its responses tell; `nil` where there is
    /// nothing to continue or it is unknown.
    public var resumable: Bool?

    public init(
        _ status: TaskStatus, history: [TaskAttempt] = [], live: LiveTransfer? = nil, waitingFor: String? = nil
    ) {
        self.status = status
        self.history = history
        self.live = live
        self.waitingFor = waitingFor
    }
}

extension TaskDetail: Codable {
    private enum CodingKeys: String, CodingKey {
        case history, live, waitingFor, insecure, resumable
    }

    /// Decodes the answer of a daemon. One that is older than this program sends the status alone.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        status = try TaskStatus(from: decoder)
        history = try container.decodeIfPresent([TaskAttempt].self, forKey: .history) ?? []
        live = try container.decodeIfPresent(LiveTransfer.self, forKey: .live)
        waitingFor = try container.decodeIfPresent(String.self, forKey: .waitingFor)
        insecure = try container.decodeIfPresent(Bool.self, forKey: .insecure) ?? false
        resumable = try container.decodeIfPresent(Bool.self, forKey: .resumable)
    }

    public func encode(to encoder: any Encoder) throws {
        try status.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(history, forKey: .history)
        try container.encode(live, forKey: .live)
        try container.encode(waitingFor, forKey: .waitingFor)
        try container.encode(insecure, forKey: .insecure)
        try container.encode(resumable, forKey: .resumable)
    }
}

/// An attempt of a task: from its start, or from its retry within a run, to its end.
///
/// The steps are milliseconds from the start of the attempt to the end of the step; a step that did not happen is
/// `nil`.
public struct TaskAttempt: Sendable, Equatable {
    /// The maximum number of attempts that are kept of a task.
    public static let limit = 20

    public var startedAt: Milliseconds
    /// The end; `nil` while the attempt is under way.
    public var endedAt: Milliseconds?
    /// The address of the server or of the proxy, as in `192.0.2.1:443` and `[2001:db8::1]:80`.
    public var address: String?
    /// The body bytes that were received or sent.
    public var bytes: Int64
    /// The resolution of the server's name.
    public var name: Int64?
    /// The connection to the server.
    public var connect: Int64?
    /// The TLS handshake.
    public var tls: Int64?
    /// The arrival of the first byte of the response.
    public var firstByte: Int64?
    /// The version of HTTP: `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String?
    /// The status of the HTTP response.
    public var status: Int?
    /// The failure; `nil` where the attempt succeeded, was stopped or is under way.
    public var error: TaskFailure?
    /// A warning about the file, such as of a web page under the name of an archive.
    public var warning: String?
    /// The reason for which it went on over another connection or in another version of HTTP; `nil` if it did not.
    public var note: String?

    public init(
        startedAt: Milliseconds, endedAt: Milliseconds? = nil, address: String? = nil, bytes: Int64 = 0,
        name: Int64? = nil, connect: Int64? = nil, tls: Int64? = nil, firstByte: Int64? = nil,
        httpVersion: String? = nil, status: Int? = nil, error: TaskFailure? = nil, warning: String? = nil,
        note: String? = nil
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
        self.warning = warning
        self.note = note
    }
}

extension TaskAttempt: Codable {
    private enum CodingKeys: String, CodingKey {
        case startedAt, endedAt, address, bytes, name, connect, tls, firstByte, httpVersion, status, error
        case warning, note
    }

    public func encode(to encoder: any Encoder) throws {
        // `encode` instead of `encodeIfPresent`, so that no field is ever missing.
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
        try container.encode(warning, forKey: .warning)
        try container.encode(note, forKey: .note)
    }
}

/// The state of a running task's transfer at one moment.
public struct LiveTransfer: Sendable, Equatable, Codable {
    /// The maximum number of segments that are reported.
    public static let segmentLimit = 512

    public var connections: [LiveConnection]
    /// The parts of the file that are there, in ascending order.
    public var segments: [LiveSegment]
    /// The rate limits that apply to the task.
    public var rateLimits: [LiveRateLimit]

    public init(
        connections: [LiveConnection] = [], segments: [LiveSegment] = [], rateLimits: [LiveRateLimit] = []
    ) {
        self.connections = connections
        self.segments = segments
        self.rateLimits = rateLimits
    }
}

/// A connection of a running task, and the part of the file that it brings.
public struct LiveConnection: Sendable, Equatable {
    /// The address of the server or of the proxy, as in `192.0.2.1:443`; `nil` until it is known.
    public var address: String?
    /// The offset of the first byte of its request.
    public var first: Int64
    /// The offset of the next byte.
    public var next: Int64
    /// The offset behind the last byte that was asked for; `nil` where it is unknown.
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
    private enum CodingKeys: String, CodingKey {
        case address, first, next, end, rate
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(address, forKey: .address)
        try container.encode(first, forKey: .first)
        try container.encode(next, forKey: .next)
        try container.encode(end, forKey: .end)
        try container.encode(rate, forKey: .rate)
    }
}

/// A part of the file that is there.
public struct LiveSegment: Sendable, Equatable, Codable {
    /// The offset of the first byte.
    public var first: Int64
    /// The offset behind the last byte.
    public var end: Int64

    public init(first: Int64, end: Int64) {
        self.first = first
        self.end = end
    }

    /// Returns ascending segments, of which as many are merged across the smallest gaps as exceed the limit.
    public static func merged(_ segments: [LiveSegment], upTo limit: Int = LiveTransfer.segmentLimit) -> [LiveSegment] {
        let excess = segments.count - max(1, limit)
        guard excess > 0 else { return segments }
        let gaps = (1..<segments.count).sorted { one, other in
            (gap(before: one, in: segments), one) < (gap(before: other, in: segments), other)
        }
        let closed = Set(gaps.prefix(excess))
        var merged: [LiveSegment] = []
        for (index, segment) in segments.enumerated() {
            if closed.contains(index), let last = merged.popLast() {
                merged.append(LiveSegment(first: last.first, end: max(last.end, segment.end)))
            } else {
                merged.append(segment)
            }
        }
        return merged
    }

    private static func gap(before index: Int, in segments: [LiveSegment]) -> Int64 {
        segments[index].first.subtractingClamped(segments[index - 1].end)
    }
}

/// A rate limit that applies to a running task.
public struct LiveRateLimit: Sendable, Equatable, Codable {
    /// The origin of a rate limit.
    public enum Scope: String, Sendable, Codable, CaseIterable {
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
