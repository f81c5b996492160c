import ArgumentParser
import ControlClient
import ControlProtocol
import TaskModel

/// Which tasks `pause`, `resume`, `set`, `cancel`, `retry` and `remove` are about: ids, or a filter.
struct SelectionOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("The tasks' ids.", valueName: "id"))
    var arguments: [TaskIDs] = []

    @Flag(help: "Every task that may be changed so.")
    var all = false

    @OptionGroup var filter: FilterOptions

    @Flag(name: .shortAndLong, help: "Do not ask, and act on other users' tasks too.")
    var yes = false

    @Flag(help: "Only list the tasks that would be changed.")
    var dryRun = false

    init() {}

    func validate() throws {
        try arguments.validate()
        let ids = arguments.ids
        let filtered = all || !filter.isEmpty
        if ids.isEmpty && !filtered {
            throw ValidationError(
                "Name the tasks: ID…, --all, --state STATE, --batch NAME, --search TEXT, --since TIME.")
        }
        if !ids.isEmpty && filtered {
            throw ValidationError("Give ids or a filter (--all, --state, --batch, …), not both.")
        }
    }

    private static let idsPerCall = 10_000

    /// The calls to make: an id that stands twice is meant once, and no call outgrows a line.
    func calls(deleteFile: Bool? = nil) throws(Failure) -> [TaskSelectionParameters] {
        let ids = arguments.ids
        guard !ids.isEmpty else {
            return [TaskSelectionParameters(filter: try filter.filter(), deleteFile: deleteFile)]
        }
        var seen: Set<TaskID> = []
        let distinct = ids.filter { seen.insert($0).inserted }
        return stride(from: 0, to: distinct.count, by: Self.idsPerCall).map {
            TaskSelectionParameters(
                ids: Array(distinct[$0..<min($0 + Self.idsPerCall, distinct.count)]), deleteFile: deleteFile)
        }
    }
}

/// What a command does to the tasks of a selection.
enum SelectionDeed {
    case pause, resume, cancel, retry, remove

    var method: MethodName {
        switch self {
        case .pause: .taskPause
        case .resume: .taskResume
        case .cancel: .taskCancel
        case .retry: .taskRetry
        case .remove: .taskRemove
        }
    }

    var verb: String {
        switch self {
        case .pause: "pause"
        case .resume: "resume"
        case .cancel: "cancel"
        case .retry: "retry"
        case .remove: "remove"
        }
    }

    var participle: String {
        switch self {
        case .pause: "paused"
        case .resume: "resumed"
        case .cancel: "cancelled"
        case .retry: "retried"
        case .remove: "removed"
        }
    }

    /// The states of tasks that it changes.
    var states: [TaskState] {
        switch self {
        case .pause: [.queued, .active, .waiting]
        case .resume: [.waiting, .paused]
        case .cancel: [.queued, .active, .waiting, .paused]
        case .retry: [.failed, .cancelled]
        case .remove: TaskState.allCases
        }
    }
}

extension Context {
    /// Carries out `deed` on a selection: asks first where it reaches far, or only tells where nothing is to be changed.
    func carryOut(_ deed: SelectionDeed, _ selection: SelectionOptions, deleteFile: Bool? = nil) throws {
        let calls = try selection.calls(deleteFile: deleteFile)
        if selection.dryRun { return try DryRun(deed, calls).show(self) }
        if let filter = calls.first?.filter, !selection.yes {
            try Confirmation(deed, filter, isAll: selection.all).obtain(try connect())
        }
        try change(deed.method, calls, participle: deed.participle)
    }

    /// Makes the calls, prints how many tasks changed, and complains about every one that could not be.
    ///
    /// - Parameter participle: `paused`.
    func change(_ method: MethodName, _ calls: [TaskSelectionParameters], participle: String) throws {
        try change(calls, participle: participle) { client, call in try client.change(method, call) }
    }

    /// As ``change(_:_:participle:)``, each call being made by `make`.
    func change(
        _ calls: [TaskSelectionParameters], participle: String,
        _ make: (ControlClient, TaskSelectionParameters) throws -> TaskChangeResult
    ) throws {
        let client = try connect()
        var result = TaskChangeResult(changed: 0)
        for call in calls {
            let part = try make(client, call)
            result.changed += part.changed
            result.errors += part.errors
        }
        if json {
            output.json(result)
        } else {
            var reason: String?
            if result.changed == 0, result.errors.isEmpty {
                reason = try UnchangedTasks(method: method).reason(calls, client, now: Clock.now())
            }
            output.line("\(Describe.count(result.changed, "task")) \(participle)" + (reason.map { ": \($0)" } ?? ""))
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

    /// `is completed; …` → `task 7 is completed; …`; what names the task already stays.
    static func sentence(_ refusal: TaskChangeResult.Refusal) -> String {
        if refusal.message.hasPrefix("is ") { return "task \(refusal.id) \(refusal.message)" }
        let words = refusal.message.split { !$0.isNumber }
        return words.contains { $0 == refusal.id.description }
            ? refusal.message : "task \(refusal.id): \(refusal.message)"
    }
}
