import FoundationEssentials
import TaskModel
import Testing

@Suite("A task with its history")
struct TaskDetailTests {
    private static var status: TaskStatus {
        TaskStatus(
            TaskRecord(
                id: TaskID(7), specification: TaskSpecification(url: "https://example.org/a"), owner: 1000,
                lifecycle: TaskLifecycle(), createdAt: 5))
    }

    private func object(_ value: some Encodable) throws -> [String: Any] {
        let json = try JSONEncoder().encode(value)
        return try JSONDecoder().decode([String: Member].self, from: json).mapValues(\.value)
    }

    /// A member of a JSON object, of which the test only looks at whether it is null.
    private struct Member: Decodable {
        let value: Any

        init(from decoder: any Decoder) throws {
            value = try decoder.singleValueContainer().decodeNil() ? "null" : "present"
        }
    }

    @Test("the fields of the status and the further ones stand beside each other, and none is missing")
    func fields() throws {
        let object = try object(TaskDetail(Self.status))
        for name in ["id", "url", "fileState", "history", "live", "waitingFor", "insecure", "resumable"] {
            #expect(object[name] != nil, "\(name)")
        }
        #expect(object["live"] as? String == "null" && object["waitingFor"] as? String == "null")
    }

    @Test("no field of an attempt, a connection or a failure is missing")
    func parts() throws {
        let attempt = try object(TaskAttempt(startedAt: 1))
        #expect(
            Set(attempt.keys) == [
                "startedAt", "endedAt", "address", "bytes", "name", "connect", "tls", "firstByte", "httpVersion",
                "status", "error", "warning", "note",
            ])
        let connection = try object(LiveConnection(address: nil, first: 0, next: 0, end: nil, rate: 0))
        #expect(Set(connection.keys) == ["address", "first", "next", "end", "rate"])
    }

    @Test("what is written is read again, and a daemon that sends the status alone is understood")
    func reading() throws {
        let detail = TaskDetail(
            Self.status,
            history: [
                TaskAttempt(
                    startedAt: 1, endedAt: 2, address: "[::1]:80", bytes: 3, name: 4, connect: 5, tls: 6, firstByte: 7,
                    httpVersion: "1.1", status: 503, error: TaskFailure(code: .http(503), message: "x"))
            ],
            live: LiveTransfer(
                connections: [LiveConnection(address: "192.0.2.1:443", first: 1, next: 2, end: 3, rate: 4)],
                segments: [LiveSegment(first: 0, end: 1)], rateLimits: [LiveRateLimit(scope: .schedule, rate: 9)]),
            waitingFor: "x")
        let decoder = JSONDecoder()
        #expect(try decoder.decode(TaskDetail.self, from: JSONEncoder().encode(detail)) == detail)
        let status = try JSONEncoder().encode(Self.status)
        #expect(try decoder.decode(TaskDetail.self, from: status) == TaskDetail(Self.status))
    }

    @Test("segments beyond the limit are merged across the smallest gaps")
    func merging() {
        let segments = [(0, 10), (11, 20), (25, 30), (100, 110), (112, 120)].map { LiveSegment(first: $0, end: $1) }
        #expect(LiveSegment.merged(segments, upTo: 5) == segments)
        #expect(
            LiveSegment.merged(segments, upTo: 3)
                == [(0, 20), (25, 30), (100, 120)].map { LiveSegment(first: $0, end: $1) })
        #expect(LiveSegment.merged(segments, upTo: 1) == [LiveSegment(first: 0, end: 120)])
        #expect(LiveSegment.merged([], upTo: 1).isEmpty)
        let many = (0..<2_000).map { LiveSegment(first: Int64($0) * 10, end: Int64($0) * 10 + 5) }
        let merged = LiveSegment.merged(many)
        #expect(merged.count == 512 && merged.first?.first == 0 && merged.last?.end == 19_995)
    }
}
