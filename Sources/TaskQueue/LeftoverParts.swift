import Logging
import Synchronization
import TaskModel
import TaskStore
import Transfer

/// Removes the part files that no task will go on with: one that was completed by a file which was there already, one
/// whose task was removed while its disk was away, one that came back with a power cut.
///
/// At the start it reads each directory once that a task names, or that recently removed tasks named; afterwards only
/// those in which a task ended. What hangs keeps a thread and nothing else.
actor LeftoverParts {
    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    private var settings: QueueSettings
    private var isStopped = false

    /// Directories in which a task ended.
    private var pending: Set<PartPlace> = []
    /// When a directory may be read again, of a clock that no one sets.
    private var rests: [PartPlace: Milliseconds] = [:]
    private var round: Task<Void, Never>?

    private var work = BlockingWork(name: "leftover-parts")
    private var hanging = 0

    /// Milliseconds from an end to the look at its directory: many end together.
    private static let delay: Milliseconds = 1_000
    /// Milliseconds between two looks at a directory, at least; and so many times what the look took.
    private static let rest: Milliseconds = 10_000
    private static let restFactor: Milliseconds = 100
    /// Milliseconds that a directory may take before others no longer wait for it.
    private static let patience: Milliseconds = 30_000
    /// Directories that may hang at a time.
    private static let hangingLimit = 4
    /// Directories that are looked at after the start, or between two rounds.
    private static let placesLimit = 16_384
    /// Tasks whose directories are read from the store at a time.
    private static let tasksInPart = 20_000
    /// Parts that are removed from a directory at a time.
    private static let partsLimit = 10_000

    init(store: TaskStore, settings: QueueSettings, clock: QueueClock, logger: Logger) {
        self.store = store
        self.settings = settings
        self.clock = clock
        self.logger = logger
    }

    /// Looks at every known directory, while others begin their work.
    func start() {
        round = Task(priority: .utility) { [weak self] in
            await self?.lookEverywhere()
            await self?.endRound()
        }
    }

    func stop() {
        isStopped = true
        round?.cancel()
    }

    func apply(_ settings: QueueSettings) { self.settings = settings }

    /// Tasks ended that were to lie in these directories.
    func note(_ directories: Set<PartPlace>) {
        guard !isStopped else { return }
        if pending.count + directories.count <= Self.placesLimit { pending.formUnion(directories) }
        beginRound()
    }

    private func beginRound() {
        guard round == nil, !isStopped, let next = pending.map({ rests[$0] ?? 0 }).min() else { return }
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
        rests = rests.filter { $0.value > now }
        let due = pending.filter { rests[$0] == nil }
        pending.subtract(due)
        await look(at: due)
    }

    private func lookEverywhere() async {
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
        await look(at: places)
    }

    /// Looks at each place once, whatever names lead there.
    private func look(at directories: Set<PartPlace>) async {
        var seen: Set<DownloadPlace> = []
        for directory in directories where !isStopped {
            let place = try? DownloadPlace(
                directory: directory.directory, owner: directory.owner, settings: settings)
            guard let place, seen.insert(place).inserted else { continue }
            let begun = clock.monotonic()
            let sweep = PartSweep(store: store, place: place, limit: Self.partsLimit)
            if let outcome = await perform({ sweep.run() }) { tell(outcome, of: place) }
            let now = clock.monotonic()
            if rests.count < Self.placesLimit {
                rests[directory] = now + max(Self.rest, (now - begun) * Self.restFactor)
            }
        }
    }

    private func tell(_ outcome: PartSweep.Outcome, of place: DownloadPlace) {
        if outcome.removed > 0 {
            logger.notice(
                "removed part files that no task goes on with",
                metadata: ["directory": "\(place.path)", "files": "\(outcome.removed)"])
        }
        if let failure = outcome.failure {
            logger.notice(
                "cannot remove part files that no task goes on with",
                metadata: ["directory": "\(place.path)", "message": "\(failure.message)"])
        }
    }

    /// Runs what a file system may keep waiting for as long as it likes.
    ///
    /// - Returns: `nil` where it takes too long, and where too much hangs already. It goes on all the same.
    private func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        guard hanging < Self.hangingLimit else { return nil }
        let look = Look()
        let value = await work.run(within: Self.patience, .system) { [weak self] in
            let value = body()
            if look.end(), let self { Task { await self.returned() } }
            return value
        }
        if value == nil {
            if look.giveUp() { hanging += 1 }
            // Others are looked at by another thread.
            work = BlockingWork(name: "leftover-parts")
        }
        return value
    }

    private func returned() { hanging -= 1 }

    /// Whether somebody still waits for a look.
    private final class Look: Sendable {
        private enum State { case underWay, givenUp, ended }

        private let state = Mutex(State.underWay)

        /// - Returns: whether it is still under way.
        func giveUp() -> Bool {
            state.withLock { state in
                if state == .underWay { state = .givenUp }
                return state == .givenUp
            }
        }

        /// - Returns: whether it was given up before.
        func end() -> Bool {
            state.withLock { state in
                defer { state = .ended }
                return state == .givenUp
            }
        }
    }
}

/// One look at one directory. Blocks.
struct PartSweep: Sendable {
    let store: TaskStore
    let place: DownloadPlace
    let limit: Int

    struct Outcome: Sendable {
        var removed = 0
        /// Why the first of those that stay could not be removed.
        var failure: TransferError?
    }

    /// Tasks that are looked up at a time.
    private static let tasksInPart = 500

    func run() -> Outcome {
        var outcome = Outcome()
        // One that is not there, or is not to be had, holds nothing that could be removed now.
        guard let directory = try? Directory.open(existing: place.root, subdirectory: place.subdirectory) else {
            return outcome
        }
        let (beginning, ending) = PartJudge.affixes(store.identity)
        do throws(TransferError) {
            let names = try directory.names(beginning: beginning, ending: ending, limit: limit)
            // Their tasks are looked up afterwards: no part is older than its task's record.
            let ids = names.compactMap { PartJudge.id(in: $0, identity: store.identity) }
            for start in stride(from: 0, to: ids.count, by: Self.tasksInPart) {
                remove(Array(ids[start..<min(start + Self.tasksInPart, ids.count)]), from: directory, &outcome)
            }
        } catch {
            outcome.failure = error
        }
        // One that comes back with a power cut is removed again.
        if outcome.removed > 0 { try? directory.synchronize() }
        return outcome
    }

    private func remove(_ ids: [TaskID], from directory: Directory, _ outcome: inout Outcome) {
        guard let (tasks, newest) = try? store.partTasks(ids), let lives = try? store.lives() else { return }
        let judge = PartJudge(identity: store.identity, lives: lives)
        for id in ids {
            let name = RequestMaker.partName(id, identity: store.identity)
            guard let traces = directory.traces(ofPart: name), judge.isLeft(id, tasks[id], newest: newest, traces)
            else { continue }
            do throws(TransferError) {
                if try directory.removePart(name) { outcome.removed += 1 }
            } catch {
                outcome.failure = outcome.failure ?? error
            }
        }
    }
}
