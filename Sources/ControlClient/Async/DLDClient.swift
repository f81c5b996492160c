import ControlProtocol
import FoundationEssentials
import Glibc
public import TaskModel

/// A client of the daemon `dld` for apps: it queues downloads and uploads that outlive the app.
///
/// ```swift
/// let client = try await DLDClient.connect(identifier: "org.example.player")
/// let task = try await client.download("https://example.org/a.iso", to: "/home/u/Downloads/a.iso", key: "a")
/// for await progress in task.progress { print(progress.fraction ?? 0) }
/// let file = try await task.value
/// ```
///
/// A restart of the daemon is waited for. Calls throw ``ClientError``.
public final class DLDClient: Sendable {
    /// The name of the app. It is the batch of its tasks, and the name under which its place in the journal is kept.
    public let identifier: String?
    let calls: CallQueue
    /// The watch for those who wait for an end.
    let ends = TaskWatch(withProgress: false)
    /// The watch for those who follow the progress.
    let progress = TaskWatch(withProgress: true)
    private let connect: @Sendable () throws(ClientError) -> ControlClient

    private init(identifier: String?, connect: @escaping @Sendable () throws(ClientError) -> ControlClient) {
        self.identifier = identifier
        self.connect = connect
        calls = CallQueue(connect: connect)
    }

    /// Connects to the daemon.
    ///
    /// - Parameters:
    ///   - identifier: the name of the app, of letters, digits, `-`, `_` and `.`, such as `org.example.player`. The events
    ///     of its tasks are kept for
    ///     ``handleEventsForBackgroundSession(identifier:types:deliver:completionHandler:)`` from now on.
    ///   - socket: the path of the daemon's socket; `nil` for the user's daemon, or else the system's.
    /// - Throws: ``ClientError`` where no daemon answers.
    public static func connect(
        identifier: String? = nil, socket: String? = nil
    ) async throws(ClientError) -> DLDClient {
        let connector = DaemonConnector(socket: socket)
        let client = DLDClient(identifier: identifier) { () throws(ClientError) in try connector.connect() }
        let last = try await client.calls.run(isRepeatable: false) { connection throws(ClientError) in
            try connection.lastEvent(before: nil)
        }
        if let identifier, let journal = last.journal {
            try BackgroundPlace(identifier: identifier)
                .begin(at: EventCursor(journal: journal, sequence: last.sequence))
        }
        return client
    }

    // MARK: Adding tasks

    /// Queues a download.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - path: the absolute path of the file; `nil` for the server's name in the daemon's directory.
    ///   - key: a name of the task that is unique among the user's tasks. A second download with the same key is the
    ///     first one. Without a key each call queues another one, once, even if the connection is lost meanwhile.
    ///   - change: changes the task's specification before it is sent.
    /// - Returns: the task, which is durable.
    public func download(
        _ url: String, to path: String? = nil, key: String? = nil,
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws(ClientError) -> DLDTask {
        var specification = TaskSpecification(url: url)
        if let path {
            specification.directory = FileName.directory(of: path)
            specification.output = FileName.last(of: path)
        }
        specification.key = key
        change(&specification)
        return try await add(specification)
    }

    /// Queues an upload of a file.
    ///
    /// - Parameters:
    ///   - file: the absolute path of the file. The daemon must be able to read it.
    ///   - url: where to send it, by `PUT` unless `change` sets another method.
    ///   - key: as for ``download(_:to:key:_:)``.
    ///   - change: changes the task's specification before it is sent.
    public func upload(
        _ file: String, to url: String, key: String? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws(ClientError) -> DLDTask {
        var specification = TaskSpecification(kind: .upload, url: url)
        specification.file = file
        specification.key = key
        change(&specification)
        return try await add(specification)
    }

    private func add(_ asked: TaskSpecification) async throws(ClientError) -> DLDTask {
        var specification = asked
        if specification.batch == nil { specification.batch = identifier }
        // With a key the call can be repeated after a loss of the connection.
        if specification.key == nil { specification.key = "app-" + UUID().uuidString.lowercased() }
        let ids = try await calls.run { [specification] client throws(ClientError) in try client.add([specification]) }
        guard let id = ids.first else { throw .malformedAnswer("task.add returned no id") }
        return DLDTask(id: id, client: self)
    }

    // MARK: Tasks and events

    /// Returns a task by its id; `nil` where the user has none.
    public func task(_ id: TaskID) async throws(ClientError) -> DLDTask? {
        try await status(of: id).map { DLDTask(id: $0.id, client: self) }
    }

    /// Returns the statuses of tasks, oldest first.
    ///
    /// - Parameters:
    ///   - filter: selects tasks; `nil` for those of the app, or without an ``identifier`` for all of the user's.
    ///   - limit: the maximum number of tasks.
    public func tasks(_ filter: TaskFilter? = nil, limit: Int = 1_000) async throws(ClientError) -> [TaskStatus] {
        var selected = filter
        if selected == nil, let identifier { selected = TaskFilter(batch: identifier) }
        return try await calls.run { [selected] client throws(ClientError) in
            var tasks: [TaskStatus] = []
            do {
                try client.forEachPage(filter: selected, limit: limit) { page in
                    tasks += page
                    return true
                }
            } catch let error as ClientError {
                throw error
            } catch {
                throw ClientError.malformedAnswer("\(error)")
            }
            return tasks
        }
    }

    /// Returns the events after a place in the journal, and new ones as they happen.
    ///
    /// - Parameters:
    ///   - cursor: the place; `nil` for new events only.
    ///   - filter: selects events.
    public func events(after cursor: EventCursor? = nil, filter: EventFilter = EventFilter()) -> EventSequence {
        EventSequence(connect: connect, cursor: cursor, filter: filter)
    }

    /// Returns the events from now on: those that happen after this call are among them, whenever the reading begins.
    public func eventsFromNow(filter: EventFilter = EventFilter()) async throws(ClientError) -> EventSequence {
        let last = try await calls.run { client throws(ClientError) in try client.lastEvent(before: nil) }
        return events(after: EventCursor(journal: last.journal ?? "", sequence: last.sequence), filter: filter)
    }

    func status(of id: TaskID) async throws(ClientError) -> TaskStatus? {
        try await calls.run { client throws(ClientError) in try client.taskIfKnown(id) }
    }
}
