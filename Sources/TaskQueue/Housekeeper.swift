import Logging
import TaskModel
import TaskStore

/// Lets go of what is kept of the past for too long or too much of: tasks that ended, with their parts, and events.
///
/// It looks when it is told that something ended, and when the oldest comes of age; otherwise it sleeps.
actor Housekeeper {
    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    private var remove: @Sendable ([TaskID]) async throws -> Void = { _ in }
    private var settings: QueueSettings
    private var alarm: Task<Void, Never>?
    private var isLooking = false
    private var isStopped = false
    /// When the next attempt to be rid of erased secrets may be, by the clock that no one sets.
    private var mayEraseAt: Milliseconds = 0

    /// Milliseconds from a sign that something ended to the look at it: many end together.
    private static let delay: Milliseconds = 1_000
    /// Milliseconds between looks at what comes of age: at least, and at most.
    private static let interval: ClosedRange<Milliseconds> = 60_000...86_400_000
    /// Milliseconds between attempts to be rid of erased secrets.
    private static let erasureInterval: Milliseconds = 10_000

    init(store: TaskStore, settings: QueueSettings, clock: QueueClock, logger: Logger) {
        self.store = store
        self.settings = settings
        self.clock = clock
        self.logger = logger
    }

    /// - Parameter remove: deletes tasks with their parts.
    func start(remove: @escaping @Sendable ([TaskID]) async throws -> Void) {
        self.remove = remove
        notify()
    }

    func stop() {
        isStopped = true
        alarm?.cancel()
    }

    func apply(_ settings: QueueSettings) {
        self.settings = settings
        look(after: 0)
    }

    /// Something ended, or was written into the journal.
    func notify() {
        guard !isLooking else { return }
        isLooking = true
        look(after: Self.delay)
    }

    private func look(after delay: Milliseconds) {
        guard !isStopped else { return }
        alarm?.cancel()
        alarm = Task { [weak self, clock] in
            if delay > 0 { await clock.sleep(delay) }
            if !Task.isCancelled { await self?.tidyUp() }
        }
    }

    private func tidyUp() async {
        isLooking = false
        /// When there is something left to do.
        var later: Milliseconds?
        do {
            try await removeTasks()
            let events = KeptHistory(since: clock.now() - settings.eventAge, count: settings.eventCount)
            while try await store.trimEvents(events) {}
            while try await store.trimPastEntries(quota: settings.quota) {}
            later = try await erase()
        } catch {
            if (error as? StoreError) == .closed { return }
            logger.error("cannot let go of the past", metadata: ["error": "\(error)"])
            later = Self.interval.lowerBound
        }
        guard !isLooking else { return }
        let now = clock.now()
        // What is kept for seconds is not kept for a minute.
        let least = min(Self.interval.lowerBound, max(1_000, min(settings.historyAge, settings.eventAge)))
        let next = [
            ((try? store.firstEnd()) ?? nil).map { $0.addingClamped(settings.historyAge).subtractingClamped(now) },
            ((try? store.firstEventTime()) ?? nil).map { $0.addingClamped(settings.eventAge).subtractingClamped(now) },
        ].compactMap(\.self).min().map { min(max($0, least), Self.interval.upperBound) }
        let soonest = [next, later].compactMap(\.self).min()
        if let soonest { look(after: soonest) }
    }

    /// Secrets that were erased leave the write-ahead log too, soon after.
    ///
    /// - Returns: milliseconds after which to look again; `nil`: there is nothing to erase.
    private func erase() async throws -> Milliseconds? {
        guard try store.holdsErasedSecrets() else { return nil }
        let now = clock.monotonic()
        guard mayEraseAt <= now else { return mayEraseAt - now }
        mayEraseAt = now + Self.erasureInterval
        // For as long as somebody reads, the log stays.
        return try await store.emptyLog() ? nil : Self.erasureInterval
    }

    private func removeTasks() async throws {
        var before: [TaskID] = []
        while !isStopped {
            let tasks = KeptHistory(since: clock.now() - settings.historyAge, count: settings.historyCount)
            let ids = try store.expired(tasks, limit: TaskQueue.partSize)
            // Those that stay for all that are not asked to go again at once.
            if ids.isEmpty || ids == before { return }
            before = ids
            try await remove(ids)
        }
    }
}
