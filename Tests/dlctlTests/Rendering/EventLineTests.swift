import TaskModel
import Testing

@testable import dlctl

@Suite("The line of an event")
struct EventLineTests {
    private func words(_ change: (inout TaskEvent) -> Void) -> String {
        var event = TaskEvent(sequence: 1, at: 0, type: .added, id: TaskID(12), state: .queued)
        (event.kind, event.owner, event.url) = (.download, 1000, "https://example.org/a%20b.iso")
        change(&event)
        return String(EventLine.text(event).drop { $0 == " " })
    }

    @Test("each type says what happened, with the file's name")
    func types() {
        #expect(words { _ in } == "12  added      a b.iso")
        #expect(words { $0.state = .paused } == "12  added      a b.iso, paused")
        #expect(
            words { ($0.type, $0.path, $0.bytesDone) = (.completed, "/d/x.iso", 2_097_152) }
                == "12  completed  x.iso, 2.0 MiB")
        #expect(
            words { ($0.type, $0.path, $0.reason) = (.completed, "/d/x.iso", .unchanged) }
                == "12  completed  x.iso, unchanged")
        #expect(
            words {
                ($0.type, $0.state) = (.failed, .failed)
                $0.error = TaskFailure(code: .http(404), message: "m", httpStatus: 404)
            } == "12  failed     a b.iso: server replied 404")
        #expect(
            words { ($0.type, $0.state, $0.reason) = (.waiting, .waiting, .hostLimit) }
                == "12  waiting    a b.iso: host limit")
        #expect(words { ($0.type, $0.state, $0.reason) = (.paused, .paused, .user) } == "12  paused     a b.iso")
        #expect(
            words { ($0.type, $0.state, $0.reason) = (.paused, .paused, .urlExpired) }
                == "12  paused     a b.iso: the URL has expired")
        #expect(
            words {
                ($0.type, $0.state, $0.reason) = (.paused, .paused, .auth)
                $0.error = TaskFailure(code: .permissionDenied, message: "sftp requires a user name and password")
            } == "12  paused     a b.iso: a login is needed")
        #expect(words { ($0.type, $0.kind) = (.started, .upload) } == "12  started    ↑ a b.iso")
    }

    @Test("progress shows the share, the rate and the time left, as far as they are known")
    func progress() {
        #expect(
            words {
                ($0.type, $0.bytesDone, $0.bytesTotal) = (.progress, 512 << 10, 1 << 20)
                $0.progress = .init(rate: 1 << 20, eta: 65, connections: 2)
            } == "12  progress   a b.iso, 50% of 1.0 MiB, 1.0 MiB/s, 1:05 left")
        #expect(
            words {
                ($0.type, $0.bytesDone) = (.progress, 512 << 10)
                $0.progress = .init(rate: nil, eta: nil, connections: 1)
            } == "12  progress   a b.iso, 512 KiB")
    }

    @Test("a batch shows its numbers, a gap that there is one, and a name no control characters")
    func others() {
        let totals = BatchResult(completed: 2, failed: 1, cancelled: 0, bytesDone: 1 << 20)
        #expect(
            words { ($0.type, $0.id, $0.batch, $0.totals) = (.batchFinished, nil, "b", totals) }
                == "batch-finished  batch b: 2 completed, 1 failed, 1.0 MiB")
        #expect(words { ($0.type, $0.id, $0.sequence) = (.gap, nil, 9) }.contains("goes on after number 9"))
        #expect(!words { $0.path = "/d/\u{1B}[31mred\n" }.contains("\u{1B}"))
    }
}
