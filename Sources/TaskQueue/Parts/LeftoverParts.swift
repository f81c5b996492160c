import Logging
import Synchronization
import TaskModel
import TaskStore
import Transfer

/// A component that removes part files that no task will continue: those of a task that completed because the file
/// already existed, of a task that was removed while its disk was not mounted, or those that reappeared after a power
/// failure.
///
/// At startup it reads each directory once that a task, or a recently removed task, names. Afterwards it reads only
/// directories in which a task ended. A hanging file system blocks only a thread.
actor LeftoverParts {
    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    private var settings: QueueSettings
    private var isStopped = false

    /// The directories in which a task ended since the last round.
    private var pending: Set<PartPlace> = []
    /// The earliest time of the next scan of each directory, on the monotonic clock.
    private var pausedUntil: [PartPlace: Milliseconds] = [:]
    private var round: Task<Void, Never>?

    private var work = BlockingWork(name: "leftover-parts")
    private var hanging = 0

    /// The delay from the end of a task to the scan of its directory, in milliseconds. It collects tasks that end
    /// together.
    private static let delay: Milliseconds = 1_000
    /// The minimum interval between scans of the same directory: this many milliseconds, and at least `restFactor`
    /// times the duration of the scan.
    private static let rest: Milliseconds = 10_000
    private static let restFactor: Milliseconds = 100
    /// The time limit of one scan, in milliseconds, after which other directories are scanned without waiting for it.
    private static let timeout: Milliseconds = 30_000
    /// The maximum number of hanging scans at a time.
    private static let hangingLimit = 4
    /// The maximum number of directories scanned after the start or in one round.
    private static let placesLimit = 16_384
    /// The number of tasks per query when their directories are read from the store.
    private static let tasksInPart = 20_000
    /// The maximum number of part files removed from a directory per scan.
    private static let partsLimit = 10_000

    init(store: TaskStore, settings: QueueSettings, clock: QueueClock, logger: Logger) {
        self.store = store
        self.settings = settings
        self.clock = clock
        self.logger = logger
    }

    /// Scans every known directory in the background while other components start.
    func start() {
        round = Task(priority: .utility) { [weak self] in
            await self?.scanAll()
            await self?.endRound()
        }
    }

    func stop() {
        isStopped = true
        round?.cancel()
    }

    func apply(_ settings: QueueSettings) { self.settings = settings }

    /// Records directories in which tasks ended and schedules their scan.
    func enqueue(_ directories: Set<PartPlace>) {
        guard !isStopped else { return }
        if pending.count + directories.count <= Self.placesLimit { pending.formUnion(directories) }
        beginRound()
    }

    private func beginRound() {
        guard round == nil, !isStopped, let next = pending.map({ pausedUntil[$0] ?? 0 }).min() else { return }
        let pause = max(Self.delay, next - clock.monotonic())
        round = Task(priority: .utility) { [weak self, clock] in
            await clock.sleep(pause)
            if !Task.isCancelled { await self?.lookAtPending() }
            await self?.endRound()
        }
    }

    private func endRound() {
        round = nil
        beginRound()
    }

    private func lookAtPending() async {
        let now = clock.monotonic()
        pausedUntil = pausedUntil.filter { $0.value > now }
        let due = pending.filter { pausedUntil[$0] == nil }
        pending.subtract(due)
        await process(due)
    }

    private func scanAll() async {
        var places: Set = [PartPlace(directory: nil, owner: settings.daemonUser)]
        var last: TaskID? = TaskID(0)
        while let after = last, !isStopped, places.count < Self.placesLimit {
            let store = store
            let found = await perform { try? store.placesOfTasks(after: after, limit: Self.tasksInPart) }
            guard let found = found ?? nil else { break }
            places.formUnion(found.places)
            last = found.last
        }
        places.formUnion((try? store.placesOfRemovedTasks()) ?? [])
        await process(places)
    }

    /// Scans each place once, even where several directories resolve to it.
    private func process(_ directories: Set<PartPlace>) async {
        var seen: Set<DownloadPlace> = []
        for directory in directories where !isStopped {
            let place = try? DownloadPlace(
                directory: directory.directory, owner: directory.owner, settings: settings)
            guard let place, seen.insert(place).inserted else { continue }
            let begun = clock.monotonic()
            let sweep = PartSweep(store: store, place: place, limit: Self.partsLimit)
            if let outcome = await perform({ sweep.run() }) { log(outcome, of: place) }
            let now = clock.monotonic()
            if pausedUntil.count < Self.placesLimit {
                pausedUntil[directory] = now + max(Self.rest, (now - begun) * Self.restFactor)
            }
        }
    }

    private func log(_ outcome: PartSweep.Outcome, of place: DownloadPlace) {
        if outcome.removed > 0 {
            logger.notice(
                "removed part files that no task uses",
                metadata: ["directory": "\(place.path)", "files": "\(outcome.removed)"])
        }
        if let failure = outcome.failure {
            logger.notice(
                "cannot remove part files that no task uses",
                metadata: ["directory": "\(place.path)", "message": "\(failure.message)"])
        }
    }

    /// Runs work that the file system may block for any length of time.
    ///
    /// - Returns: `nil` where the work takes longer than `patience`, or where too many calls hang already. Work that
    ///   has started continues in either case.
    private func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        guard hanging < Self.hangingLimit else { return nil }
        let scan = Scan()
        let value = await work.run(within: Self.timeout, .system) { [weak self] in
            let value = body()
            if scan.end(), let self { Task { await self.returned() } }
            return value
        }
        if value == nil {
            if scan.giveUp() { hanging += 1 }
            // A new thread serves the next directories.
            work = BlockingWork(name: "leftover-parts")
        }
        return value
    }

    private func returned() { hanging -= 1 }

    /// The state of one scan: whether its caller still waits for it.
    private final class Scan: Sendable {
        private enum State { case underWay, givenUp, ended }

        private let state = Mutex(State.underWay)

        /// Records that the caller no longer waits.
        ///
        /// - Returns: Whether the scan is still in progress.
        func giveUp() -> Bool {
            state.withLock { state in
                if state == .underWay { state = .givenUp }
                return state == .givenUp
            }
        }

        /// Records that the scan ended.
        ///
        /// - Returns: Whether the caller had given up before.
        func end() -> Bool {
            state.withLock { state in
                defer { state = .ended }
                return state == .givenUp
            }
        }
    }
}

/// A single scan of a directory. Blocks.
struct PartSweep: Sendable {
    let store: TaskStore
    let place: DownloadPlace
    let limit: Int

    struct Outcome: Sendable {
        var removed = 0
        /// The reason why the first of the remaining part files could not be removed.
        var failure: TransferError?
    }

    /// The number of tasks looked up per query.
    private static let tasksInPart = 500

    func run() -> Outcome {
        var outcome = Outcome()
        // A directory that is missing or inaccessible contains nothing that can be removed now.
        guard let directory = try? Directory.open(existing: place.root, subdirectory: place.subdirectory) else {
            return outcome
        }
        let (beginning, ending) = PartEvaluator.affixes(store.identity)
        do throws(TransferError) {
            let names = try directory.names(beginning: beginning, ending: ending, limit: limit)
            // The tasks are looked up after the files are listed: a task's record always exists before its part file.
            let ids = names.compactMap { PartEvaluator.id(in: $0, identity: store.identity) }
            for start in stride(from: 0, to: ids.count, by: Self.tasksInPart) {
                remove(Array(ids[start..<min(start + Self.tasksInPart, ids.count)]), from: directory, &outcome)
            }
        } catch {
            outcome.failure = error
        }
        // A removed part file that reappears after a power failure is removed by a later scan, so a failed fsync is
        // harmless.
        if outcome.removed > 0 { try? directory.synchronize() }
        return outcome
    }

    private func remove(_ ids: [TaskID], from directory: Directory, _ outcome: inout Outcome) {
        guard let (tasks, newest) = try? store.partTasks(ids), let lifetimes = try? store.lifetimes() else { return }
        let evaluator = PartEvaluator(identity: store.identity, lifetimes: lifetimes)
        for id in ids {
            let name = RequestMaker.partName(id, identity: store.identity)
            guard let traces = directory.traces(ofPart: name), evaluator.isLeft(id, tasks[id], newest: newest, traces)
            else { continue }
            do throws(TransferError) {
                if try directory.removePart(name) { outcome.removed += 1 }
            } catch {
                outcome.failure = outcome.failure ?? error
            }
        }
    }
}
