import Glibc
import Logging
import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Transfer

@testable import TaskQueue

/// A queue with its own store, session and download directory for one test.
final class QueueFixture: Sendable {
    let directory: TemporaryDirectory
    let store: TaskStore
    let settings: QueueSettings
    let queue: TaskQueue
    let downloads: String

    static let me = Caller(uid: 1000, isAdministrator: false)
    static let administrator = Caller(uid: 0, isAdministrator: true)

    init(
        clock: QueueClock = .system, session: SessionConfiguration = .init(),
        _ change: (inout QueueSettings) -> Void = { _ in }
    ) async throws {
        directory = try TemporaryDirectory()
        downloads = try directory.makeDirectory("downloads")
        store = try TaskStore(directory: directory.makeDirectory("state"))
        settings = Self.settings(downloads: downloads, change)
        queue = try Self.queue(store, settings, clock, session)
        await queue.start()
    }

    static func settings(downloads: String, _ change: (inout QueueSettings) -> Void = { _ in }) -> QueueSettings {
        var settings = QueueSettings(Configuration(), downloadDirectory: downloads, daemonUser: getuid())
        settings.retry = RetryPolicy(attempts: 3, baseDelay: 1, maximumDelay: 5)
        settings.minimumFree = 0
        // Tests count requests; transfers over several connections are tested with the engine.
        settings.segments = .fixed(1)
        change(&settings)
        return settings
    }

    static func queue(
        _ store: TaskStore, _ settings: QueueSettings, _ clock: QueueClock = .system,
        _ session: SessionConfiguration = .init()
    ) throws -> TaskQueue {
        try TaskQueue(
            store: store, settings: settings, session: session, agent: "dld-test", clock: clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    // MARK: Restarts

    /// Restarts the queue after a simulated death between the publication of a file and its record: its server sent
    /// some bytes, the task waits, and a file with all of `body` has the `name`.
    func nextLife(of id: TaskID, whichFinished body: Resource, as name: String) async throws -> TaskQueue {
        _ = try await status(id, once: [.waiting, .failed])
        _ = try await queue.apply(.pause, to: [id], by: Self.me)
        await queue.stop()
        // The part file carries the task's mark.
        let part = downloads + "/" + (parts.first ?? "no part")
        try body.write(to: part)
        guard rename(part, downloads + "/" + name) == 0 else { throw SystemError("giving the part its name") }
        let next = try Self.queue(store, settings)
        await next.start()
        return next
    }

    /// Resumes a paused task, or retries a failed one.
    static func takeUp(_ id: TaskID, in queue: TaskQueue) async throws {
        let resumed = try await queue.apply(.resume, to: [id], by: me)
        // The resumed task may have completed already, and a retry would fetch it again.
        if resumed.changed == 0 { _ = try await queue.apply(.retry, to: [id], by: me) }
    }

    // MARK: Adding tasks and queries

    func add(
        _ url: String, by caller: Caller = me, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskID {
        var specification = TaskSpecification(url: url)
        change(&specification)
        let ids = try await queue.add([specification], by: caller)
        guard let id = ids.first else { throw TimedOut(what: "an id", limit: .zero) }
        return id
    }

    func status(_ id: TaskID) async throws -> TaskStatus {
        guard let status = try await queue.status(of: id, for: Self.administrator) else {
            throw TimedOut(what: "task \(id)", limit: .zero)
        }
        return status
    }

    /// Returns the task's status after its first event of one of `kinds`; events up to `sequence` do not count.
    func status(
        _ id: TaskID, once kinds: Set<TaskEvent.Kind>, after sequence: Int64 = 0, in queue: TaskQueue? = nil
    ) async throws -> TaskStatus {
        let queue = queue ?? self.queue
        let (_, pages) = try queue.events(after: sequence, for: Self.administrator)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await page in pages where page.contains(where: { $0.id == id && kinds.contains($0.type) }) {
                    return true
                }
                return false
            }
            group.addTask {
                try await Task.sleep(for: .seconds(120))
                return false
            }
            let came = try await group.next() ?? false
            group.cancelAll()
            guard came else { throw TimedOut(what: "\(kinds) of task \(id)", limit: .seconds(120)) }
        }
        guard let status = try await queue.status(of: id, for: Self.administrator) else {
            throw TimedOut(what: "task \(id)", limit: .zero)
        }
        return status
    }

    func completed(_ id: TaskID) async throws -> TaskStatus { try await status(id, once: [.completed]) }

    /// Waits until the task is active and `bytes` bytes have been received.
    func running(_ id: TaskID, bytes: Int64) async throws {
        try await eventually(that: "task \(id) gets \(bytes) bytes", every: .milliseconds(2)) {
            let status = try await self.status(id)
            return status.state == .active && status.bytesDone >= bytes
        }
    }

    /// The sorted names in the download directory.
    var files: [String] { TemporaryDirectory.names(beneath: downloads).sorted() }

    /// Returns the name of a task's part file.
    func partName(of id: TaskID) -> String { RequestMaker.partName(id, identity: store.identity) }

    var parts: [String] { files.filter { $0.hasSuffix(".part") } }
}

/// Returns the invalid field for which the queue refuses `body`; `nil` if it succeeds.
func fault<Value>(_ body: () async throws -> Value) async throws -> FieldError? {
    do {
        _ = try await body()
        return nil
    } catch let error as QueueError {
        guard case .field(let fault) = error else { throw error }
        return fault
    }
}

extension ChangeOutcome.Refusal {
    var transition: IllegalTransition? {
        guard case .transition(let transition) = reason else { return nil }
        return transition
    }
}
