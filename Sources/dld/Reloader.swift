import ControlServer
import Logging
import Synchronization
import TaskFiles
import TaskModel
import TaskQueue
import TaskStore
import Transfer

/// An actor that applies a changed configuration to the running daemon, and the queue files that it names. Reloads run
/// one at a time.
actor Reloader {
    private let planner: DaemonPlanner
    private let queue: TaskQueue
    private let access: CurrentAccess
    private let status: ServiceStatus
    private let metricsFile: MetricsFile
    private let logger: Logger
    private var plan: DaemonPlan
    private var watcher: DirectoryWatcher?
    private var hasEnded = false
    /// The errors in queue files when they were last applied.
    private var queueFileProblems: [String] = []
    /// The reason why the current configuration file was refused.
    private var refusal: String?
    /// The time at which there was no problem; `nil` if one was found since, or the configuration was read anew.
    private var flawlessAt: ContinuousClock.Instant?
    /// The time for which that is believed. It saves checks where a client asks for the status again and again.
    private static let memory: Duration = .milliseconds(25)
    private var underWay: Task<Result<[String], CommandHandler.ReloadRefusal>, Never>?

    init(
        planner: DaemonPlanner, plan: DaemonPlan, queue: TaskQueue, access: CurrentAccess, status: ServiceStatus,
        metricsFile: MetricsFile, logger: Logger
    ) {
        self.status = status
        self.metricsFile = metricsFile
        self.planner = planner
        self.plan = plan
        self.queue = queue
        self.access = access
        self.logger = logger
    }

    /// Reloads the configuration after any earlier reload has completed.
    ///
    /// - Returns: notes for the user, or the reason why nothing was changed.
    func reload() async -> Result<[String], CommandHandler.ReloadRefusal> {
        let before = underWay
        let reloading = Task {
            _ = await before?.value
            return await self.apply()
        }
        underWay = reloading
        return await reloading.value
    }

    private func apply() async -> Result<[String], CommandHandler.ReloadRefusal> {
        ServiceManager.notifyReloading()
        var condition = ServiceStatus.Condition.good
        defer { status.ready(condition) }
        let changed: DaemonPlan
        let unusable: [(place: PlannedPlaces.Place, problem: PlaceProblem)]
        let moves: [String]
        do {
            changed = try planner.plan()
            unusable = await PlannedPlaces(changed).problems(on: queue, changed.queueSettings.inspector)
            // A place that was named before and is now unavailable does not block other changes.
            let known = plan.configuration.places
            let new = unusable.compactMap { found in
                found.place.named.flatMap { known.contains($0) ? nil : $0.error(found.problem.description) }
            }
            if let mistake = new.first { throw mistake }
            moves = try await queue.apply(changed.queueSettings, session: changed.session)
        } catch {
            logger.error(
                "the new configuration is invalid; the previous one stays in effect", metadata: ["error": "\(error)"])
            condition = .refused("\(error)")
            refusal = "\(error)"
            flawlessAt = nil
            return .failure(.init(message: "\(error)"))
        }
        refusal = nil
        let warnings = changed.warnings + (await queue.layoutWarnings(changed.queueSettings))
        condition = .problems(warnings + unusable.map(\.problem.description))
        LogLevelSwitch.level = changed.logLevel
        access.rule = changed.access
        metricsFile.path = changed.configuration.metrics.textfile
        var notes = warnings + moves + unusable.map { $0.place.text($0.problem.description) }
        if changed.inheritedSockets.isEmpty, changed.isServedOtherwise(than: plan) {
            notes.append("control.socket, control.mode and control.group take effect when the daemon starts next")
        }
        let watchesAnew =
            changed.configuration.watch != plan.configuration.watch
            || changed.queueSettings.downloadRoots != plan.queueSettings.downloadRoots
            || changed.queueSettings.downloadDirectory != plan.queueSettings.downloadDirectory
        plan = changed
        flawlessAt = nil
        if watchesAnew { await startWatching() }
        for note in notes { logger.warning("\(note)") }
        logger.notice("the configuration was reloaded")
        return .success(notes + (await applyQueueFiles()))
    }

    /// The configuration file in force; `nil` if the defaults apply.
    var configurationFile: String? { plan.readsFile ? plan.configurationFile : nil }

    /// Returns the daemon's current problems, a line for each.
    func problems() async -> [String] {
        let now = ContinuousClock.now
        if let flawlessAt, now - flawlessAt < Self.memory { return [] }
        let found = await findProblems()
        flawlessAt = found.isEmpty ? now : nil
        return found
    }

    private func findProblems() async -> [String] {
        let places = await PlannedPlaces(plan).problems(on: queue, plan.queueSettings.inspector)
        // The problem with the directory says more.
        let metricsProblem = places.contains { $0.place.use == .metrics } ? nil : metricsFile.problem
        return queue.storeProblems
            + (refusal.map { ["the new configuration is invalid; the previous one stays in effect: \($0)"] } ?? [])
            + plan.warnings + (await queue.layoutWarnings(plan.queueSettings)) + queueFileProblems
            + places.map { $0.place.text($0.problem.description) }
            + (metricsProblem.map { [$0] } ?? []) + (watcher?.problems ?? [])
    }

    /// Starts watching the directories that the configuration names, instead of those watched before.
    func startWatching() async {
        await watcher?.stop()
        guard !hasEnded else { return }
        let watcher = DirectoryWatcher(
            plan.configuration.watch, queue: queue, rules: access.dropRules, logger: logger)
        self.watcher = watcher
        watcher.start()
    }

    /// Stops watching permanently.
    func stopWatching() async {
        hasEnded = true
        await watcher?.stop()
    }

    /// Applies the queue files that the configuration names.
    ///
    /// - Returns: the notes on the files, and the errors. A file with an error is not applied at all.
    @discardableResult
    func applyQueueFiles() async -> [String] {
        var notes: [String] = []
        queueFileProblems = []
        for file in QueueFiles.matching(plan.configuration.queues) {
            let path = file.path
            do {
                let batch = try BatchRun(file: path, uid: plan.uid)
                for note in batch.notes { logger.warning("\(note)") }
                notes += batch.notes.map { "\($0)" }
                let changes = try await batch.apply(to: queue, prune: file.prune)
                logger.info(
                    "queue file applied",
                    metadata: [
                        "file": "\(path)", "batch": "\(batch.batch)", "added": "\(changes.added)",
                        "updated": "\(changes.updated)", "unchanged": "\(changes.unchanged)",
                        "checked": "\(changes.checked)", "pruned": "\(changes.pruned)",
                    ])
            } catch QueueError.store(.closed) {
                return notes
            } catch {
                let text = (error as? QueueError).map { "\(path): \($0.text)" } ?? "\(error)"
                logger.error("a queue file was not applied", metadata: ["error": "\(text)"])
                notes.append(text)
                queueFileProblems.append("a queue file was not applied: \(text)")
            }
        }
        return notes
    }
}

/// The current access rule, shared between threads.
final class CurrentAccess: Sendable {
    private let state: Mutex<AccessRule>

    init(_ rule: AccessRule) { state = Mutex(rule) }

    var rule: AccessRule {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }

    /// The rules for files that are dropped into a watched directory: those for a client run by their owner.
    var dropRules: DropRules {
        @Sendable func peer(_ uid: UInt32) -> Peer { Peer(uid: uid, gid: .max, pid: 0) }
        return DropRules(
            mayQueue: { self.rule.mayConnect(peer($0)) }, isAdministrator: { self.rule.isAdministrator(peer($0)) },
            readFile: { (path, limit) throws(UnreadableFile) in try BatchRun.read(path, limit: limit) })
    }
}

extension QueueError {
    /// A description for the user.
    var text: String {
        if case .field(let error) = self { return "\(error)" }
        return refusal?.message ?? "the queue refused the file"
    }
}
