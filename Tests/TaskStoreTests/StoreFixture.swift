import FoundationEssentials
import GRDB
import TaskModel
import TestSupport

@testable import TaskStore

/// A store in its own directory, with shorthands for tests.
///
/// Closures that run on the writer may capture the store, but not the fixture: the writer would release the last
/// reference, and the fixture's end closes the store, which the writer cannot do within its own work.
final class StoreFixture: Sendable {
    let directory: TemporaryDirectory
    let store: TaskStore

    init(in directory: TemporaryDirectory? = nil) throws {
        self.directory = try directory ?? TemporaryDirectory()
        store = try TaskStore(directory: self.directory.path)
    }

    deinit {
        try? store.close()
    }

    var databasePath: String { directory.file("dld.db") }

    /// Adds tasks that are all new.
    func add(_ tasks: NewTask...) async throws -> [TaskID] {
        try await store.add(tasks, now: 1_000).map(\.id)
    }

    func add(_ url: String, lifecycle: TaskLifecycle = TaskLifecycle()) async throws -> TaskID {
        let outcomes = try await store.add([.sample(url, lifecycle: lifecycle)], now: 1_000)
        guard let id = outcomes.first?.id else { throw StoreError.other("nothing was added") }
        return id
    }

    /// Adds a task and moves it to `state` the way that the scheduler does.
    func add(inState state: TaskState, url: String = "https://example.org/a") async throws -> TaskID {
        let id = try await add(url)
        try await conclude(id, .inState(state))
        return id
    }

    @discardableResult
    func conclude(
        _ id: TaskID, _ lifecycle: TaskLifecycle, error: TaskFailure? = nil, resumeData: [UInt8]? = nil
    ) async throws -> [TaskEvent] {
        let last = try store.lastEvent()
        let progress = TaskProgress(bytesDone: 10, bytesTotal: 20, bytesFetched: 30, resumeData: resumeData)
        let conclusion = TaskConclusion(
            lifecycle: lifecycle, attempts: 3, failures: 2, error: error,
            finishedAt: lifecycle.state.isEnded ? 9_000 : nil)
        try await store.write([.concluded(id, progress, conclusion)], now: 9_000)
        return try store.events(after: last, limit: 10).events
    }

    /// Returns the whole number that a query finds.
    func number(_ sql: String) throws -> Int64? {
        try store.read { try $0.firstRow(sql) { try $0.integer(0) } }
    }

    /// Executes SQL directly, bypassing the store.
    func execute(_ sql: String) async throws {
        try await store.writes.perform { try $0.execute(sql: sql) }
    }

    /// Checkpoints the whole log into `dld.db`.
    func checkpoint() async throws {
        _ = try await store.pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
    }

    func states(_ ids: [TaskID]) throws -> [TaskState?] {
        try ids.map { try store.record($0, owner: nil)?.lifecycle.state }
    }

    static func bytes(of path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: path)))
    }
}

extension TaskStore {
    func put(
        _ set: Int64, _ tasks: [NewTask], owner: UInt32? = nil, now: Milliseconds
    ) async throws(StoreError) -> Int {
        try await put(set, try prepare(tasks), owner: owner, now: now)
    }
}

extension NewTask {
    static func sample(
        _ url: String = "https://example.org/a", kind: TaskKind = .download, owner: UInt32 = 1000,
        host: String = "https://example.org:443", key: String? = nil, batch: String? = nil, output: String? = nil,
        priority: TaskPriority = .normal, lifecycle: TaskLifecycle = TaskLifecycle(), path: String? = nil
    ) -> NewTask {
        var specification = TaskSpecification(kind: kind, url: url)
        specification.key = key
        specification.batch = batch
        specification.output = output
        specification.priority = priority
        return NewTask(
            specification: specification, secrets: TaskSecrets(), owner: owner, host: host, lifecycle: lifecycle,
            path: path)
    }

    func with(secretURL: String? = nil, password: String? = nil) -> NewTask {
        var copy = self
        copy.secrets.url = secretURL
        copy.secrets.password = password
        return copy
    }
}

extension TaskLifecycle {
    /// Returns a lifecycle in the given state, reached by transitions of the state machine.
    static func inState(_ state: TaskState, until: Milliseconds? = nil) throws -> TaskLifecycle {
        var lifecycle = TaskLifecycle()
        if state == .queued { return lifecycle }
        try lifecycle.apply(.start)
        switch state {
        case .active, .queued: break
        case .completed: try lifecycle.apply(.succeed)
        case .failed: try lifecycle.apply(.fail)
        case .cancelled: try lifecycle.apply(.cancel)
        case .paused: try lifecycle.apply(.pause)
        case .waiting: try lifecycle.apply(.park(.retry, until: until))
        }
        return lifecycle
    }
}
