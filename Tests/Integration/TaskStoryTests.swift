import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue
@testable import dld

/// What the journal tells of tasks.
@Suite(
    "The story of a task in the journal", .enabled(if: geteuid() == 0, "only root can stand in for the journal"),
    .timeLimit(.minutes(2)))
struct TaskStoryTests {
    private let journal: JournalSubstitute
    private let daemon: DaemonProcess

    init() throws {
        journal = try JournalSubstitute()
        daemon = try DaemonProcess(
            configuration: "retry: {attempts: 3, base-delay: 100ms}\nlog: {level: info}\n", prefix: journal.prefix,
            environment: journal.environment)
    }

    /// Returns the kinds of the entries about a task, without its starts: short runs have none at the usual level.
    private func kinds(of id: TaskID) throws -> [TaskLogKind] {
        try journal.story(of: id.rawValue).compactMap { entry in
            let id = entry["MESSAGE_ID"]?.first
            return TaskLogKind.allCases.first { $0.messageID == id && $0 != .started }
        }
    }

    private func entry(_ kind: TaskLogKind, of id: TaskID) throws -> JournalSubstitute.Entry {
        try #require(try journal.story(of: id.rawValue).last { $0["MESSAGE_ID"] == [kind.messageID] })
    }

    @Test("each event of a task is told once, over failures, a retry and a restart")
    func once() async throws {
        let server = try ScriptedServer([
            "/a?sig=s3cret": [.status(503), .serve(Resource(size: 1_000))], "/missing": [.status(404)],
        ])
        try await daemon.start()
        let good = try await daemon.add("--batch", "nightly", server.url("/a?sig=s3cret"))
        let bad = try await daemon.add(server.url("/missing"))
        #expect(try await daemon.settled(good).state == .completed)
        #expect(try await daemon.settled(bad).state == .failed)
        #expect(try await daemon.terminate() == .exited(0))
        try await daemon.start()
        #expect(try await daemon.dlctl("retry", "\(bad)").succeeded)
        #expect(try await daemon.settled(bad).state == .failed)
        let paused = try await daemon.add("--paused", server.url("/a?sig=s3cret"))
        #expect(try await daemon.dlctl("cancel", "\(paused)").succeeded)
        #expect(try await daemon.dlctl("remove", "\(paused)").succeeded)
        #expect(try await daemon.terminate() == .exited(0))

        #expect(try kinds(of: good) == [.added, .attemptFailed, .completed])
        #expect(try kinds(of: bad) == [.added, .failed, .retried, .failed])
        #expect(try kinds(of: paused) == [.added, .cancelled, .removed])
        let batch = try journal.entries().filter { $0["MESSAGE_ID"] == [TaskLogKind.batchFinished.messageID] }
        #expect(batch.count == 1 && batch.first?["BATCH"] == ["nightly"], "\(batch)")

        let origin = "http://127.0.0.1:\(server.port)"
        let completed = try entry(.completed, of: good)
        #expect(completed["PRIORITY"] == ["6"] && completed["BYTES"] == ["1000"] && completed["ATTEMPT"] == ["2"])
        #expect(completed["HOST"] == [origin] && completed["OWNER_UID"] == ["\(geteuid())"])
        #expect(completed["BATCH"] == ["nightly"] && completed["URL"]?.first?.hasPrefix("\(origin)/a") == true)
        #expect(completed["SECONDS"]?.first.flatMap(Double.init) != nil, "\(completed)")
        #expect(try entry(.attemptFailed, of: good)["HTTP_STATUS"] == ["503"])
        let failed = try entry(.failed, of: bad)
        #expect(failed["PRIORITY"] == ["4"] && failed["HTTP_STATUS"] == ["404"])
        let message = try #require(failed["MESSAGE"]?.first)
        #expect(message.hasPrefix("task \(bad) failed: ") && message.contains("dlctl retry \(bad)"), "\(message)")
        #expect(!"\(try journal.entries())".contains("s3cret"))
    }

    @Test("a refused connection is told with the numbers of libcurl and the system")
    func numbers() async throws {
        try await daemon.start()
        let id = try await daemon.add("http://127.0.0.1:1/a")
        #expect(try await daemon.settled(id).state == .failed)
        #expect(try await daemon.terminate() == .exited(0))
        let failed = try entry(.failed, of: id)
        // CURLE_COULDNT_CONNECT
        #expect(failed["CURL_CODE"] == ["7"] && failed["ERRNO"] == ["\(ECONNREFUSED)"], "\(failed)")
        #expect(try kinds(of: id) == [.added, .attemptFailed, .attemptFailed, .failed])
    }

    @Test("a task whose predecessor fails is told as failed, once")
    func dependents() async throws {
        let server = try ScriptedServer(["/missing": [.status(404)]])
        try await daemon.start()
        let first = try await daemon.add("--paused", server.url("/missing"))
        let second = try await daemon.add("--after-task", "\(first)", server.url("/b"))
        #expect(try await daemon.dlctl("resume", "\(first)").succeeded)
        #expect(try await daemon.settled(second).state == .failed)
        #expect(try await daemon.terminate() == .exited(0))
        #expect(try kinds(of: first) == [.added, .resumed, .failed])
        #expect(try kinds(of: second) == [.added, .failed])
        #expect(
            try entry(.failed, of: second)["MESSAGE"]?.first?.contains("task \(first), which it depends on") == true)
    }
}
