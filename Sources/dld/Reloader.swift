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
    private var watcher: DirectoryWatcher?
    private var hasEnded = false
    /// What was wrong with queue files when they were last applied.
    private var queueFileProblems: [String] = []
    /// Why the file that there is now does not count.
    private var refusal: String?
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
        var status = "Ready"
        defer { ServiceManager.notify("READY=1\nSTATUS=\(status)") }
        let changed: DaemonPlan
        let unusable: [(place: PlannedPlaces.Place, problem: PlaceProblem)]
        do {
            changed = try planner.plan()
            unusable = await PlannedPlaces(changed).problems(on: queue, changed.queueSettings.inspector)
            // A place that was there before and is away now holds up no other change.
            let known = plan.configuration.places
            let new = unusable.compactMap { found in
                found.place.named.flatMap { known.contains($0) ? nil : $0.error(found.problem.description) }
            }
            if let mistake = new.first { throw mistake }
            try await queue.apply(changed.queueSettings, session: changed.session)
        } catch {
            logger.error("the configuration is refused, and the one before it stays", metadata: ["error": "\(error)"])
            status =
                "Ready, with the former configuration; the changed one is refused: \(LogText.printable("\(error)"))"
            refusal = "\(error)"
            return .failure(.init(message: "\(error)"))
        }
        refusal = nil
        let warnings = changed.warnings + (await queue.layoutWarnings(changed.queueSettings))
        status = ServiceManager.status(warnings + unusable.map(\.problem.description))
        LogLevelSwitch.level = changed.logLevel
        access.rule = changed.access
        var notes = warnings + unusable.map { $0.place.text($0.problem.description) }
        if changed.inheritedSockets.isEmpty, changed.isServedOtherwise(than: plan) {
            notes.append("control.socket, control.mode and control.group count from the daemon's next start on")
        }
        let watchesAnew =
            changed.configuration.watch != plan.configuration.watch
            || changed.queueSettings.downloadRoots != plan.queueSettings.downloadRoots
            || changed.queueSettings.downloadDirectory != plan.queueSettings.downloadDirectory
        plan = changed
        if watchesAnew { await startWatching() }
        for note in notes { logger.warning("\(note)") }
        logger.notice("the configuration was read again")
        return .success(notes + (await applyQueueFiles()))
    }

    /// What is wrong around the daemon at this moment, a line for each.
    func problems() async -> [String] {
        let places = await PlannedPlaces(plan).problems(on: queue, plan.queueSettings.inspector)
        return queue.storeProblems
            + (refusal.map { ["the configuration was refused, and the one before it counts: \($0)"] } ?? [])
            + plan.warnings + (await queue.layoutWarnings(plan.queueSettings)) + queueFileProblems
            + places.map { $0.place.text($0.problem.description) }
            + (watcher?.problems ?? [])
    }

    /// Watches the directories that the configuration names, in place of those that were watched.
    func startWatching() async {
        await watcher?.stop()
        guard !hasEnded else { return }
        let watcher = DirectoryWatcher(
            plan.configuration.watch, queue: queue, rules: access.dropRules, logger: logger)
        self.watcher = watcher
        watcher.start()
    }

    /// For good.
    func stopWatching() async {
        hasEnded = true
        await watcher?.stop()
    }

    /// - Returns: what was wrong with files, each of which is left out as a whole.
    @discardableResult
    func applyQueueFiles() async -> [String] {
        var notes: [String] = []
        queueFileProblems = []
        for path in QueueFiles.matching(plan.configuration.queues) {
            do {
                let batch = try BatchRun(file: path, uid: plan.uid)
                for note in batch.notes { logger.warning("\(note)") }
                notes += batch.notes.map { "\($0)" }
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
                queueFileProblems.append("a queue file is not applied: \(text)")
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

    /// For files that are dropped into a watched directory: what holds for a peer of their owner.
    var dropRules: DropRules {
        @Sendable func peer(_ uid: UInt32) -> Peer { Peer(uid: uid, gid: .max, pid: 0) }
        return DropRules(
            mayQueue: { self.rule.mayConnect(peer($0)) }, isAdministrator: { self.rule.isAdministrator(peer($0)) },
            readFile: { (path, limit) throws(UnreadableFile) in try BatchRun.read(path, limit: limit) })
    }
}

extension QueueError {
    /// For a person.
    var text: String {
        if case .field(let error) = self { return "\(error)" }
        return refusal?.message ?? "the queue refused"
    }
}
