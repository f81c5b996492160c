import ControlClient
import ControlProtocol
import Glibc
import TaskModel

extension Context {
    /// Carries out `action` on a selection. It asks for confirmation before wide changes; with `--dry-run` it only
    /// lists the tasks.
    ///
    /// Prints the number of changed tasks and reports every task that could not be changed.
    ///
    /// - Parameter make: performs one call.
    func carryOut(
        _ action: SelectionAction, _ selection: SelectionOptions, deleteFile: Bool? = nil, now: Bool? = nil,
        _ make: (ControlClient, TaskSelectionParameters) throws -> TaskChangeResult
    ) throws {
        if action != .set { try selection.refuseBatchOfIDs() }
        let calls = try selection.calls(deleteFile: deleteFile, now: now) { () throws(ClientError) in try connect() }
        if selection.dryRun { return try DryRun(action, calls).show(self) }
        if !selection.yes {
            let confirmation = Confirmation(action, deletesFiles: deleteFile == true)
            if let filter = calls.first?.filter {
                try confirmation.obtain(for: filter, isAll: selection.all, try connect())
            } else {
                try confirmation.obtain(for: calls.flatMap { $0.ids ?? [] }, try connect())
            }
        }
        try change(calls, action, make)
    }

    /// Carries out `action` as in ``carryOut(_:_:deleteFile:now:_:)``, by the method of `action`.
    func carryOut(
        _ action: SelectionAction, _ selection: SelectionOptions, deleteFile: Bool? = nil, now: Bool? = nil
    ) throws {
        try carryOut(action, selection, deleteFile: deleteFile, now: now) { client, call in
            try client.change(action.method, call)
        }
    }

    /// Returns the number of the caller's tasks in a state that a filter selects beside its states.
    func ownTasks(in state: TaskState, _ filter: TaskFilter, _ client: ControlClient) throws(ClientError) -> Int {
        var filter = filter
        filter.states = [state]
        return try client.count(filter).owners.first { $0.owner == getuid() }?.tasks ?? 0
    }

    /// Tells of selected tasks that stay paused, because each was paused by its id or needs a person.
    private func remarkPaused(_ filter: TaskFilter, _ client: ControlClient) throws(ClientError) {
        guard filter.states?.contains(.paused) ?? true else { return }
        let count = try ownTasks(in: .paused, filter, client)
        guard count > 0 else { return }
        note(
            (count == 1 ? "1 task stays paused, by a pause of its" : "\(count) tasks stay paused, by a pause of their")
                + " own or a cause that needs you: dlctl list paused"
                + (filter.batch.map { " --batch \(Shell.quoted($0))" } ?? ""))
    }

    private func change(
        _ calls: [TaskSelectionParameters], _ action: SelectionAction,
        _ make: (ControlClient, TaskSelectionParameters) throws -> TaskChangeResult
    ) throws {
        let client = try connect()
        if action == .resume || action == .retry { try passLostSources(calls, action, client: client) }
        let looked = json || isQuiet ? [] : try examined(calls, action, client)
        let before = action == .retry ? try Self.details(looked, client) : []
        var result = TaskChangeResult(changed: 0)
        for call in calls {
            let part = try make(client, call)
            result.changed += part.changed
            result.errors += part.errors
            if let hosts = part.hosts { result.hosts = Set((result.hosts ?? []) + hosts).sorted() }
        }
        if json {
            output.json(result)
        } else {
            var reason: String?
            if result.changed == 0, result.errors.isEmpty {
                reason = try UnchangedTasks(action).reason(calls, client, now: Clock.now())
            }
            let count = Describe.count(result.changed, "task")
            let isChanged = result.changed > 0
            let files = isChanged ? Self.replaced(before) : nil
            remark("\(count) \(action.participle)" + (reason.map { ": \($0)" } ?? files.map { "; \($0)" } ?? ""))
            if isChanged { Self.lostChanges(before).forEach(note) }
            if isChanged, action == .pause {
                Self.lostProgress(try Self.details(looked, client)).map(remark)
            }
            if isChanged, action == .resume, let filter = calls.first?.filter { try remarkPaused(filter, client) }
            for host in result.hosts ?? [] { remark("\(host) is no longer on hold") }
        }
        output.flush()
        guard !result.errors.isEmpty else { return }
        if !json {
            for refusal in result.errors {
                report(Failure(.failed, code: refusal.code, Self.sentence(refusal)))
            }
        }
        throw result.errors.allSatisfy { $0.code == .permissionDenied } ? ExitStatus.notPermitted : .failed
    }

    // MARK: - What is lost

    /// The maximum number of tasks that are examined for a remark.
    private static let mostExamined = 50

    /// Returns the tasks for which `action` may have a consequence to tell of: running ones that are paused, and
    /// completed ones that are retried.
    private func examined(
        _ calls: [TaskSelectionParameters], _ action: SelectionAction, _ client: ControlClient
    ) throws(ClientError) -> [TaskID] {
        guard action == .pause || action == .retry else { return [] }
        guard var filter = calls.first?.filter else {
            return Array(calls.flatMap { $0.ids ?? [] }.prefix(Self.mostExamined))
        }
        let state: TaskState = action == .pause ? .active : .completed
        // A retry leaves completed tasks alone unless their state is named.
        guard filter.states?.contains(state) ?? (action == .pause) else { return [] }
        filter.states = [state]
        return try client.page(TaskListParameters(filter: filter, limit: Self.mostExamined)).tasks.map(\.id)
    }

    private static func details(_ ids: [TaskID], _ client: ControlClient) throws(ClientError) -> [TaskDetail] {
        var details: [TaskDetail] = []
        for id in ids { if let detail = try client.detailIfKnown(id) { details.append(detail) } }
        return details
    }

    /// Returns the words on the files that a retry of completed downloads replaces; `nil` if there are none.
    static func replaced(_ tasks: [TaskDetail]) -> String? {
        let states: [FileState?] = [.present, .replaced]
        let files = tasks.map(\.status).filter { states.contains($0.fileState) && !Describe.wasThere($0) }
        let count = Set(files.map(\.path)).count
        guard count > 0 else { return nil }
        let least = tasks.count < mostExamined ? "" : "at least "
        return count == 1 && least.isEmpty
            ? "1 file stays until the new one is complete, and is then replaced"
            : "\(least)\(Describe.count(count, "file")) stay until the new ones are complete, and are then replaced"
    }

    /// Returns the warnings about files that were changed since they were downloaded.
    static func lostChanges(_ tasks: [TaskDetail]) -> [String] {
        tasks.filter { $0.status.fileState == .replaced && !Describe.wasThere($0.status) }.map { task in
            "warning: \(Escape.visible(task.status.path ?? "")) was changed or replaced since task \(task.status.id) "
                + "downloaded it; changes in the file itself are lost"
        }
    }

    /// Returns the words on paused tasks that begin again; `nil` if there are none.
    static func lostProgress(_ tasks: [TaskDetail]) -> String? {
        let ids = tasks.filter { $0.status.state == .paused && $0.status.bytesDone > 0 && $0.resumable == false }
            .map(\.status.id.description)
        if ids.isEmpty { return nil }
        return "\(ids.count == 1 ? "task" : "tasks") \(ids.joined(separator: " ")): resume \(Describe.beginsAgain)"
    }

    /// Returns `is completed; …` as `task 7 is completed; …`. A message that already names the task is unchanged.
    static func sentence(_ refusal: TaskChangeResult.Refusal) -> String {
        if refusal.message.hasPrefix("is ") { return "task \(refusal.id) \(refusal.message)" }
        let words = refusal.message.split { !$0.isNumber }
        return words.contains { $0 == refusal.id.description }
            ? refusal.message : "task \(refusal.id): \(refusal.message)"
    }
}
