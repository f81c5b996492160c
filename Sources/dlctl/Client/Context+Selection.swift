import ControlClient
import ControlProtocol
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

    private func change(
        _ calls: [TaskSelectionParameters], _ action: SelectionAction,
        _ make: (ControlClient, TaskSelectionParameters) throws -> TaskChangeResult
    ) throws {
        let client = try connect()
        if action == .resume || action == .retry { try passLostSources(calls, action, client: client) }
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
            remark("\(count) \(action.participle)" + (reason.map { ": \($0)" } ?? ""))
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

    /// Returns `is completed; …` as `task 7 is completed; …`. A message that already names the task is unchanged.
    static func sentence(_ refusal: TaskChangeResult.Refusal) -> String {
        if refusal.message.hasPrefix("is ") { return "task \(refusal.id) \(refusal.message)" }
        let words = refusal.message.split { !$0.isNumber }
        return words.contains { $0 == refusal.id.description }
            ? refusal.message : "task \(refusal.id): \(refusal.message)"
    }
}
