import TaskModel
import Testing

@testable import dlctl

@Suite("The attempts and connections of a task in show")
struct AttemptTableTests {
    private let plain = Terminal.Style(colour: false, unicode: false)

    private func lines(_ detail: TaskDetail, width: Int? = 80) -> [String] {
        Show.lines(detail, now: 100_000, width: width, style: plain)
    }

    private let attempts = [
        TaskAttempt(
            startedAt: 1_000, endedAt: 1_840, address: "192.0.2.1:443", name: 3, connect: 15, tls: 48, firstByte: 95,
            httpVersion: "1.1", status: 503, error: TaskFailure(code: .http(503), message: "the server replied 503")),
        TaskAttempt(
            startedAt: 2_000, endedAt: 16_500, address: "[2001:db8::1234:5678:9abc]:65535", bytes: 57 << 20,
            firstByte: 12_300, status: 200),
    ]

    @Test("no line is wider than the terminal, and the newest attempt comes last")
    func width() throws {
        let detail = TaskDetail(sampleTask(7, .completed), history: attempts)
        let lines = lines(detail)
        #expect(lines.allSatisfy { DisplayWidth.of($0) <= 80 }, "\(lines)")
        let header = try #require(lines.firstIndex { $0.hasPrefix("  attempt ") })
        #expect(lines[header].contains("took") && lines[header].contains("tls"))
        #expect(lines[header + 1].contains("840ms") && lines[header + 1].hasSuffix("http-503   192.0.2.1:443"))
        #expect(lines[header + 2].contains("57.0 MiB") && lines[header + 2].contains("  completed  ["))
        #expect(lines[header + 2].contains("14s") && lines[header + 2].contains("12s"))
        let narrow = Show.lines(detail, now: 100_000, width: 40, style: plain).suffix(2)
        #expect(narrow.allSatisfy { DisplayWidth.of($0) <= 40 }, "\(narrow)")
    }

    @Test("the bytes of all attempts stand beside the progress only if an earlier attempt had some")
    func allAttempts() {
        func progress(_ history: [TaskAttempt]) -> String? {
            var task = sampleTask(7, .active, done: 57 << 20, of: 60 << 20)
            task.bytesFetched = 58 << 20
            return lines(TaskDetail(task, history: history)).first { $0.contains("progress") }
        }
        #expect(progress([attempts[1]])?.hasSuffix("57.0 MiB of 60.0 MiB, 95%") == true)
        #expect(progress(attempts)?.hasSuffix("95%") == true, "the first attempt had no bytes")
        #expect(progress([attempts[1], attempts[1]])?.hasSuffix("95% (58.0 MiB over all attempts)") == true)
    }

    @Test("why an attempt changed its connection stands below the table, within the width of the terminal")
    func note() {
        var history = attempts
        history[1].note = "left the HTTP/2 connection that others use, because of a long pause"
        let detail = TaskDetail(sampleTask(7, .completed), history: history)
        #expect(
            lines(detail).last?.hasSuffix("  left the HTTP/2 connection that others use, because of a long pause")
                == true)
        #expect(lines(detail, width: 40).allSatisfy { DisplayWidth.of($0) <= 40 })
        #expect(lines(detail, width: 40).last?.hasSuffix("…") == true)
    }

    @Test("an attempt that was stopped and one that goes on say so; an earlier one may have completed the task")
    func results() {
        var history = attempts
        history.append(TaskAttempt(startedAt: 20_000))
        let lines = lines(TaskDetail(sampleTask(7, .active), history: history), width: nil)
        #expect(lines.suffix(2).map { $0.split(separator: " ").dropLast().last } == ["ended", "running"])
        let paused = self.lines(TaskDetail(sampleTask(7, .paused, reason: .user), history: attempts), width: nil)
        #expect(paused.last?.contains("  stopped  ") == true)
    }

    @Test("the attempts that count stand beside those in the table if these are more")
    func count() {
        func counted(_ count: Int) -> String? {
            var task = sampleTask(7, .paused, reason: .user)
            task.attempts = count
            return lines(TaskDetail(task, history: attempts)).first { $0.hasPrefix("  attempts ") }
        }
        #expect(counted(0)?.hasSuffix("  0 counted, 2 in all") == true && counted(2)?.hasSuffix("  2") == true)
    }

    @Test("a server that does not offer ranges, and what to do about a failure, stand among the facts")
    func facts() {
        var detail = TaskDetail(sampleTask(7, .paused, reason: .user, done: 50, of: 100))
        detail.resumable = true
        #expect(!lines(detail).contains { $0.contains("begins again") })
        detail.resumable = false
        #expect(lines(detail).contains { $0.hasPrefix("  resume ") && $0.contains("probably begins again from 0") })
        detail.status.state = .failed
        detail.status.error = TaskFailure(code: .checksumMismatch, message: "m")
        #expect(lines(detail).contains { $0.hasPrefix("  retry ") && $0.contains("probably begins again from 0") })
        let why = lines(detail).first { $0.hasPrefix("  why ") }
        #expect(why?.contains("checksum does not match; compare the digest") == true)
        #expect(why?.contains("dlctl set 7 --checksum ") == true && why?.hasSuffix("dlctl retry 7") == true)
    }

    @Test("a download of which nothing was fetched says that its file was there")
    func wasThere() {
        var task = sampleTask(7, .completed, done: 6, of: 6)
        #expect(Describe.state(task, now: 0) == "completed")
        task.bytesFetched = 0
        #expect(Describe.state(task, now: 0) == "completed, was there")
        #expect(lines(TaskDetail(task)).contains { $0.hasPrefix("  why ") && $0.contains("nothing was fetched") })
        task.reason = .unchanged
        #expect(Describe.state(task, now: 0) == "completed, unchanged")
    }

    @Test("the connections, the map and the limits of a running task are shown, and why another one does not run")
    func live() {
        let live = LiveTransfer(
            connections: [
                LiveConnection(address: "192.0.2.1:443", first: 1 << 20, next: 3 << 20, end: 4 << 20, rate: 2_048)
            ],
            segments: [LiveSegment(first: 0, end: 50)],
            rateLimits: [.init(scope: .task, rate: 512_000), .init(scope: .schedule, rate: 1 << 20)])
        let lines = lines(TaskDetail(sampleTask(7, .active, of: 100), live: live))
        #expect(lines.contains { $0.hasPrefix("  map ") && $0.contains("##..") })
        #expect(lines.contains { $0.hasSuffix("500 KiB/s (task), 1.0 MiB/s (schedule)") })
        let connection = lines.first { $0.hasPrefix("  192.0.2.1:443 ") }
        #expect(connection?.contains("2.0 MiB") == true && connection?.hasSuffix("2.0 KiB/s") == true)
        let paused = TaskDetail(sampleTask(7, .paused, reason: .auth), waitingFor: "the server refuses access")
        let words = self.lines(paused)
        #expect(words.contains { $0.hasPrefix("  why ") && $0.hasSuffix("the server refuses access") })
        #expect(!words.contains { $0.hasPrefix("  to do") })
    }

    @Test("what a daemon sends cannot control the terminal")
    func escapes() {
        let attempt = TaskAttempt(
            startedAt: 0, address: "\u{1B}[2J", error: TaskFailure(code: ErrorCode(rawValue: "\u{1B}]0;x"), message: "")
        )
        let detail = TaskDetail(
            sampleTask(), history: [attempt],
            live: LiveTransfer(connections: [.init(address: "\u{1B}c", first: 0, next: 0, end: nil, rate: 0)]),
            waitingFor: "\u{1B}[1m")
        #expect(!lines(detail).joined().contains("\u{1B}"))
    }
}
