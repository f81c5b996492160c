import Synchronization
import TaskModel
import Testing

@testable import dld

@Suite("The status text for the service manager")
struct ServiceStatusTests {
    private static let mebibyte: Int64 = 1 << 20

    @Test("it counts open tasks and gives the rates")
    func work() {
        func text(_ work: ServiceStatus.Work) -> String { ServiceStatus.text(work, .good) }
        #expect(text(.init()) == "Ready")
        #expect(text(.init(tasks: [.completed: 9, .failed: 1])) == "Ready")
        #expect(
            text(.init(tasks: [.active: 3, .queued: 120], downloadRate: 41 * Self.mebibyte))
                == "3 active, 120 queued, 41 MiB/s")
        #expect(text(.init(tasks: [.waiting: 2, .paused: 1])) == "2 waiting, 1 paused")
        #expect(text(.init(tasks: [.active: 1], uploadRate: 1_536)) == "1 active, 1.5 KiB/s up")
        #expect(
            text(.init(tasks: [.active: 2], downloadRate: 999, uploadRate: 2 << 30))
                == "2 active, 999 B/s down, 2.0 GiB/s up")
    }

    @Test("it names what needs an administrator, without hidden characters")
    func condition() {
        let work = ServiceStatus.Work(tasks: [.queued: 1])
        #expect(ServiceStatus.text(work, .problems([])) == "1 queued")
        #expect(ServiceStatus.text(.init(), .problems(["a\nb", "c", "d"])) == "Ready, but a\\u{a}b (and 2 more)")
        #expect(
            ServiceStatus.text(work, .refused("x:1:1: no"))
                == "1 queued with the previous configuration; the new one is invalid: x:1:1: no")
    }

    @Test("problems that are solved leave the text, new ones join it, and a refusal stays until the next reload")
    func solved() {
        let sent = Mutex<[String]>([])
        let status = ServiceStatus { text in sent.withLock { $0.append(text) } }
        status.ready(.problems(["a is missing"]))
        status.update(.init(), problems: ["a is missing"])
        status.update(.init(), problems: [])
        status.update(.init())
        status.update(.init(), problems: ["b is full"])
        status.ready(.refused("x:1:1: no"))
        status.update(.init(), problems: ["the new configuration is invalid"])
        #expect(
            sent.withLock { $0 } == [
                "READY=1\nSTATUS=Ready, but a is missing", "STATUS=Ready", "STATUS=Ready, but b is full",
                "READY=1\nSTATUS=Ready with the previous configuration; the new one is invalid: x:1:1: no",
            ])
    }

    @Test("a text is sent only if it differs from the last one; readiness always is")
    func sending() {
        let sent = Mutex<[String]>([])
        let status = ServiceStatus { text in sent.withLock { $0.append(text) } }
        status.ready(.good)
        status.update(.init())
        status.update(.init(tasks: [.active: 1]))
        status.update(.init(tasks: [.active: 1, .completed: 1]))
        status.ready(.good)
        #expect(sent.withLock { $0 } == ["READY=1\nSTATUS=Ready", "STATUS=1 active", "READY=1\nSTATUS=1 active"])
    }
}
