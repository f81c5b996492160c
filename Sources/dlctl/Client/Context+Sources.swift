import ControlClient
import ControlProtocol
import Glibc
import TaskModel

extension Context {
    /// Adds uploads. If the daemon may not read a file for this user or cannot reach it, the files are opened here and
    /// passed.
    func addUploads(
        _ tasks: [TaskSpecification], names: FieldNames, client: ControlClient
    ) throws(Failure) -> AddedTasks {
        let refusal: Failure
        do throws(ClientError) {
            return AddedTasks(try client.addOrFind(tasks))
        } catch {
            refusal = Failure(error, names: names)
            guard Self.isAboutSource(error), tasks.count <= SourceReceiveParameters.maximum else { throw refusal }
        }
        guard let sources = OpenSources(tasks.map { $0.file ?? "" }) else { throw refusal }
        return try addUploads(tasks, from: sources, names: names, client: client)
    }

    /// Adds uploads of open files.
    func addUploads(
        _ tasks: [TaskSpecification], from sources: borrowing OpenSources, names: FieldNames, client: ControlClient
    ) throws(Failure) -> AddedTasks {
        do throws(ClientError) {
            try sources.pass(over: client)
            var tasks = tasks
            for index in tasks.indices { tasks[index].descriptor = index }
            return AddedTasks(try client.addOrFind(tasks))
        } catch {
            throw Failure(error, names: names)
        }
    }

    private static func isAboutSource(_ error: ClientError) -> Bool {
        guard case .rpc(let answer) = error, let field = answer.data?.field else { return false }
        return field.hasPrefix("tasks[") && field.hasSuffix("].file")
    }

    /// The maximum number of tasks of one call that are examined: those named by id, each with a request, or those
    /// listed.
    private static let maximumExamined = (ids: 1_000, listed: 10_000)

    /// Passes the sources of uploads in error `source-lost` to the daemon again, if this user owns them and can open
    /// them.
    func passLostSources(
        _ calls: [TaskSelectionParameters], _ action: SelectionAction, client: ControlClient
    ) throws {
        for call in calls {
            var lost: [TaskStatus] = []
            if let ids = call.ids {
                for id in ids.prefix(Self.maximumExamined.ids) {
                    if let task = try client.taskIfKnown(id), Self.hasLostSource(task) { lost.append(task) }
                }
            } else {
                var filter = call.filter ?? TaskFilter()
                let states = action.states.filter { $0 != .waiting && filter.states?.contains($0) ?? true }
                if states.isEmpty { continue }
                filter.states = states
                try client.forEachPage(filter: filter, limit: Self.maximumExamined.listed) { page in
                    lost += page.filter(Self.hasLostSource)
                    return true
                }
            }
            for task in lost where task.owner == getuid() {
                guard let path = task.path else { continue }
                guard let source = OpenSources([path]) else {
                    note(
                        "task \(task.id) cannot go on: its file \(Escape.visible(path)) cannot be opened any more; "
                            + "upload it again, then: dlctl remove \(task.id)")
                    continue
                }
                try source.pass(over: client)
                try client.attach(task.id, descriptor: 0)
            }
        }
    }

    private static func hasLostSource(_ task: TaskStatus) -> Bool { task.error?.code == .sourceLost }
}
