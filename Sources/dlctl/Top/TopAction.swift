import ControlClient
import ControlProtocol
import TaskModel

/// A change that a key or a prompt requests.
enum TopAction: Sendable, Equatable {
    case change(SelectionAction, TaskID)
    case priority(TaskID, TaskPriority)
    /// The rate limit of a task in bytes per second; `nil` removes it.
    case rate(TaskID, Int64?)
    /// The limit of all downloads together.
    case downloadRate(DaemonLimitsParameters.Rate)
    case add([String])

    /// Carries out the change.
    ///
    /// - Returns: the result in words, and whether it was refused.
    func perform(_ client: ControlClient) throws(ClientError) -> TopMessage {
        do throws(ClientError) {
            switch self {
            case .change(let action, let id): return try Self.change(action, id, client)
            case .priority(let id, let priority):
                var changes = TaskChanges()
                changes.priority = .set(priority)
                _ = try client.update(id, changes)
                return TopMessage("task \(id) has the priority \(priority.rawValue)")
            case .rate(let id, let rate):
                var changes = TaskChanges()
                changes.limit = rate.map { .set($0) } ?? .takeBack
                _ = try client.update(id, changes)
                return TopMessage(
                    rate.map { "task \(id) is limited to \(Describe.rate($0))" } ?? "task \(id) has no limit of its own"
                )
            case .downloadRate(let rate):
                let limits = try client.limits(DaemonLimitsParameters(download: rate))
                let words = limits.download.map { "are limited to \(Describe.rate($0))" } ?? "have no limit"
                let origin = limits.downloadSource == "command" ? "" : " (\(limits.downloadSource))"
                return TopMessage("downloads \(words)\(origin)")
            case .add(let urls):
                let ids = try client.add(urls.map { TaskSpecification(url: $0) })
                return TopMessage("added task " + ids.map(\.description).joined(separator: ", "))
            }
        } catch .rpc(let answer) {
            return TopMessage(Failure(.rpc(answer), names: names).message, isRefusal: true)
        } catch .callTooLong(let bytes) {
            return TopMessage(Failure(.callTooLong(bytes: bytes)).message, isRefusal: true)
        }
    }

    private var names: FieldNames {
        if case .add(let urls) = self { FieldNames(urls: urls) } else { FieldNames() }
    }

    private static func change(
        _ action: SelectionAction, _ id: TaskID, _ client: ControlClient
    ) throws(ClientError) -> TopMessage {
        let result = try client.change(action.method, TaskSelectionParameters(ids: [id]))
        if let refusal = result.errors.first { return TopMessage(Context.sentence(refusal), isRefusal: true) }
        guard result.changed == 0 else { return TopMessage("task \(id) \(action.participle)") }
        let task = try client.taskIfKnown(id)
        let words = task.flatMap { UnchangedTasks(action).reason([$0], now: Clock.now()) }
        return TopMessage(words ?? "task \(id) is unchanged", isRefusal: true)
    }
}

/// A line of text for the user.
struct TopMessage: Sendable, Equatable {
    var text: String
    var isRefusal: Bool

    init(_ text: String, isRefusal: Bool = false) {
        self.text = text
        self.isRefusal = isRefusal
    }
}

/// The transfers to which a rate limit applies.
enum TopTarget: Sendable, Equatable {
    case task(TaskID)
    case downloads
}
