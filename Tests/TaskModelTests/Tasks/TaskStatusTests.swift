import FoundationEssentials
import TaskModel
import Testing

@Suite("A task in JSON")
struct TaskStatusTests {
    /// The fields of the contract, whether null or not.
    private static let fields: Set<String> = [
        "id", "kind", "state", "reason", "phase", "url", "path", "name", "owner", "batch", "key", "priority",
        "bytesDone", "bytesTotal", "bytesFetched", "rate", "eta", "connections", "attempts", "notBefore", "createdAt",
        "idleSince", "reconnectsAt",
        "startedAt", "finishedAt", "error", "checksum", "checksumURL", "verified", "afterTask", "fileState",
    ]

    private static func object(_ status: TaskStatus) throws -> [String: Value] {
        try JSONDecoder().decode([String: Value].self, from: JSONEncoder().encode(status))
    }

    /// A JSON value, as detailed as these tests need it.
    private enum Value: Decodable, Equatable {
        case null
        case bool(Bool)
        case number(Int64)
        case text(String)
        case object([String: Value])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .bool(value)
            } else if let value = try? container.decode(Int64.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else {
                self = .object(try container.decode([String: Value].self))
            }
        }
    }

    private static func record(path: String? = nil) -> TaskRecord {
        var record = TaskRecord(
            id: TaskID(7), specification: TaskSpecification(url: "http://h/a"), owner: 1000, lifecycle: TaskLifecycle(),
            createdAt: 5)
        record.path = path
        return record
    }

    @Test("every field is there, and what is not known is null")
    func nulls() throws {
        let object = try Self.object(TaskStatus(Self.record()))
        #expect(Set(object.keys) == Self.fields)
        let known: Set<String> = [
            "id", "kind", "state", "url", "owner", "priority", "bytesDone", "bytesFetched", "connections", "attempts",
            "createdAt", "verified",
        ]
        #expect(Set(object.filter { $0.value != .null }.keys) == known)
        #expect(object["id"] == .number(7) && object["state"] == .text("queued") && object["verified"] == .bool(false))
        #expect(object["kind"] == .text("download") && object["priority"] == .text("normal"))
    }

    @Test("all that is known is told, and read again")
    func known() throws {
        var record = Self.record(path: "/srv/downloads/a.iso")
        record.specification.batch = "b"
        record.specification.key = "k"
        record.specification.checksum = "md5:0"
        record.specification.checksumURL = "http://h/SHA256SUMS"
        record.specification.afterTask = TaskID(3)
        record.lifecycle = TaskLifecycle(startAt: 9, now: 1)
        record.bytesTotal = 10
        record.startedAt = 6
        record.finishedAt = 8
        record.error = TaskFailure(code: .http(503), message: "m", httpStatus: 503)
        var status = TaskStatus(record)
        status.phase = .transferring
        status.rate = 1
        status.eta = 2
        (status.idleSince, status.reconnectsAt) = (11, 12)
        status.fileState = .present
        let object = try Self.object(status)
        #expect(Set(object.keys) == Self.fields)
        #expect(!object.values.contains(.null))
        #expect(object["name"] == .text("a.iso") && object["notBefore"] == .number(9))
        #expect(object["reason"] == .text("scheduled") && object["phase"] == .text("transferring"))
        #expect(
            object["error"] == .object(["code": .text("http-503"), "message": .text("m"), "httpStatus": .number(503)]))
        #expect(try JSONDecoder().decode(TaskStatus.self, from: JSONEncoder().encode(status)) == status)
    }

    @Test("an error without a status says so with null")
    func errorWithoutStatus() throws {
        var record = Self.record()
        record.error = TaskFailure(code: .dns, message: "m")
        #expect(
            try Self.object(TaskStatus(record))["error"]
                == .object(["code": .text("dns"), "message": .text("m"), "httpStatus": .null]))
    }

    @Test(
        "the name is what stands behind the last slash",
        arguments: [("/a/b", "b"), ("/a/\u{301}b", "\u{301}b"), ("b", "b")])
    func name(path: String, expected: String) {
        #expect(TaskStatus(Self.record(path: path)).name.map { Array($0.utf8) } == Array(expected.utf8))
    }

    @Test("settled is what ended, or needs a person who did not pause it")
    func settled() throws {
        var status = TaskStatus(Self.record())
        for state in TaskState.allCases {
            status.state = state
            status.reason = state == .paused ? .user : nil
            #expect(status.isSettled == state.isEnded)
        }
        status.state = .paused
        status.reason = .auth
        #expect(status.isSettled)
    }
}
