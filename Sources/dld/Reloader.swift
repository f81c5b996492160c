import ControlServer
import Logging
import Synchronization
import TaskFiles
import TaskModel
import TaskQueue
import TaskStore
import Transfer

/// Has the daemon go by a changed configuration, and applies the queue files that it names. One at a time.
actor Reloader {
    private let planner: DaemonPlanner
    private let queue: TaskQueue
    private let access: CurrentAccess
    private let logger: Logger
    private var plan: DaemonPlan
    private var underWay: Task<Result<[String], QueueHandler.ReloadRefusal>, Never>?

    init(planner: DaemonPlanner, plan: DaemonPlan, queue: TaskQueue, access: CurrentAccess, logger: Logger) {
        self.planner = planner
        self.plan = plan
        self.queue = queue
        self.access = access
        self.logger = logger
    }

    /// - Returns: what is to be known, or why everything stays as it was.
    func reload() async -> Result<[String], QueueHandler.ReloadRefusal> {
        let before = underWay
        let reloading = Task {
            _ = await before?.value
            return await self.takeUp()
        }
        underWay = reloading
        return await reloading.value
    }

    private func takeUp() async -> Result<[String], QueueHandler.ReloadRefusal> {
        ServiceManager.notifyReloading()
        defer { ServiceManager.notify("READY=1\nSTATUS=Ready") }
        let changed: DaemonPlan
        do {
            changed = try planner.plan()
            try await queue.apply(changed.queueSettings, session: changed.session)
        } catch {
            logger.error("the configuration is refused, and the one before it stays", metadata: ["error": "\(error)"])
            return .failure(.init(message: "\(error)"))
        }
        LogLevelSwitch.level = changed.logLevel
        access.rule = changed.access
        var notes = changed.warnings
        if changed.isServedOtherwise(than: plan) {
            notes.append("control.socket, control.mode and control.group count from the daemon's next start on")
        }
        plan = changed
        for note in notes { logger.warning("\(note)") }
        logger.notice("the configuration was read again")
        return .success(notes + (await applyQueueFiles()))
    }

    /// - Returns: what was wrong with files, each of which is left out as a whole.
    @discardableResult
    func applyQueueFiles() async -> [String] {
        var notes: [String] = []
        for path in QueueFiles.matching(plan.configuration.queues) {
            do {
                let batch = try BatchRun(file: path, uid: plan.uid)
                let changes = try await batch.apply(to: queue)
                logger.info(
                    "queue file applied",
                    metadata: [
                        "file": "\(path)", "batch": "\(batch.batch)", "added": "\(changes.added)",
                        "updated": "\(changes.updated)", "unchanged": "\(changes.unchanged)",
                    ])
            } catch QueueError.store(.closed) {
                return notes
            } catch {
                let text = (error as? QueueError).map { "\(path): \($0.text)" } ?? "\(error)"
                logger.error("a queue file is not applied", metadata: ["error": "\(text)"])
                notes.append(text)
            }
        }
        return notes
    }
}

/// Who may do what on the socket, at this moment.
final class CurrentAccess: Sendable {
    private let state: Mutex<AccessRule>

    init(_ rule: AccessRule) { state = Mutex(rule) }

    var rule: AccessRule {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

extension QueueError {
    /// For a person.
    var text: String {
        if case .field(let error) = self { return "\(error)" }
        return refusal?.message ?? "the queue refused"
    }
}
