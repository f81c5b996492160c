import MetricsTestKit
import TaskModel
import Testing

@testable import TaskQueue

@Suite("The metrics of the queue")
struct QueueMetricsTests {
    private let factory = TestMetrics()

    private func record(_ change: (inout TaskRecord) -> Void = { _ in }) -> TaskRecord {
        var record = TaskRecord(
            id: TaskID(1), specification: TaskSpecification(kind: .download, url: "https://example.org/a"), owner: 1000,
            lifecycle: TaskLifecycle(), createdAt: 1_000)
        change(&record)
        return record
    }

    @Test("the wait of a task begins when it was added or was to start, and is recorded at its first start alone")
    func queueWait() throws {
        let metrics = QueueMetrics(factory: factory)
        metrics.started(record(), at: 1_250)
        metrics.started(record { $0.specification.startAt = 5_000 }, at: 5_002)
        // The clock was set back.
        metrics.started(record(), at: 500)
        metrics.started(record { $0.attempts = 1 }, at: 9_000)
        metrics.started(record { $0.startedAt = 2_000 }, at: 9_000)
        metrics.started(record { $0.specification.afterTask = TaskID(7) }, at: 9_000)
        #expect(try factory.expectTimer("dld_queue_wait_seconds").values == [250_000_000, 2_000_000, 0])
    }

    @Test("attempts count by kind, failures by class, and the first byte where there was one")
    func attempts() throws {
        let metrics = QueueMetrics(factory: factory)
        func attempt(_ code: ErrorCode?, firstByte: Int64? = nil) -> TaskAttempt {
            TaskAttempt(startedAt: 0, firstByte: firstByte, error: code.map { TaskFailure(code: $0, message: "") })
        }
        metrics.ended(3, [attempt(.http(503), firstByte: 20), attempt(.dns), attempt(nil, firstByte: 5)], of: .upload)
        metrics.ended(1, [attempt(nil)], of: .download)
        func total(_ name: String, _ label: (String, String)) -> Int64 {
            factory.counterTotal(label: name, dimensions: [label])
        }
        #expect(total("dld_attempts_total", ("kind", "upload")) == 3)
        #expect(total("dld_attempts_total", ("kind", "download")) == 1)
        #expect(total("dld_failures_total", ("class", "http_5xx")) == 1)
        #expect(total("dld_failures_total", ("class", "dns")) == 1)
        #expect(factory.counterTotal(label: "dld_failures_total") == 2)
        #expect(try factory.expectTimer("dld_time_to_first_byte_seconds").values == [20_000_000, 5_000_000])
    }

    @Test("every state of both kinds has a value")
    func tasks() throws {
        let metrics = QueueMetrics(factory: factory)
        metrics.record(tasks: [.upload: [.active: 2]], downloadRate: 5, uploadRate: 6)
        metrics.record(hostsOnHold: 3, logSize: 4_096)
        #expect(factory.meters(label: "dld_tasks").count == TaskState.allCases.count * 2)
        #expect(
            try factory.expectMeter("dld_tasks", [("kind", "upload"), ("state", "active")]).lastValue == 2)
        #expect(
            try factory.expectMeter("dld_tasks", [("kind", "download"), ("state", "active")]).lastValue == 0)
        #expect(try factory.expectMeter("dld_download_rate_bytes_per_second").lastValue == 5)
        #expect(try factory.expectMeter("dld_upload_rate_bytes_per_second").lastValue == 6)
        #expect(try factory.expectMeter("dld_hosts_on_hold").lastValue == 3)
        #expect(try factory.expectMeter("dld_wal_bytes").lastValue == 4_096)
    }
}

@Suite("Classes of failures")
struct FailureClassTests {
    @Test("each error code has a class, and a status that of its hundred")
    func classes() {
        let cases: [(ErrorCode, FailureClass)] = [
            (.dns, .dns), (.connect, .connect), (.tls, .tls), (.timeout, .timeout), (.stalled, .timeout),
            (.truncated, .truncated), (.http(404), .clientError), (.http(499), .clientError),
            (.http(500), .serverError), (.http(599), .serverError), (.http(304), .otherStatus),
            (.tooManyRedirects, .redirect), (.checksumMismatch, .checksum), (.remoteChanged, .changed),
            (.addressNotAllowed, .policy), (.diskFull, .diskFull), (.io, .file), (.nameConflict, .file),
            (.quota, .limit), (.internal, .other), (ErrorCode(rawValue: "http-x"), .other),
            (ErrorCode(rawValue: "https://example.org/"), .other),
        ]
        for (code, expected) in cases { #expect(FailureClass(code) == expected, "\(code)") }
    }
}
