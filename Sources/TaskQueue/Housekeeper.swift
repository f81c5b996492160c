import Logging
import TaskModel
import TaskStore

/// A component that deletes old history by age and by number: ended tasks with their part files, and journal events.
///
/// The housekeeper runs after a notification that something ended, and when the oldest entry reaches its maximum age.
/// Otherwise it sleeps.
actor Housekeeper {
    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    private var remove: @Sendable ([TaskID]) async throws -> Void = { _ in }
    private var settings: QueueSettings
    private var alarm: Task<Void, Never>?
    private var isLooking = false
    private var isStopped = false
    /// The earliest time of the next attempt to remove erased secrets from the write-ahead log, on the monotonic clock.
    private var mayEraseAt: Milliseconds = 0

    /// The delay from a notification to the check, in milliseconds. It collects tasks that end together.
    private static let delay: Milliseconds = 1_000
    /// The minimum and maximum interval between checks for expired entries, in milliseconds.
    private static let interval: ClosedRange<Milliseconds> = 60_000...86_400_000
    /// The interval between attempts to remove erased secrets from the log, in milliseconds.
    private static let erasureInterval: Milliseconds = 10_000

    init(store: TaskStore, settings: QueueSettings, clock: QueueClock, logger: Logger) {
        self.store = store
        self.settings = settings
        self.clock = clock
        self.logger = logger
    }

    /// Starts the component.
    ///
    /// - Parameter remove: Removes tasks with their part files.
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
        scheduleRound(after: 0)
    }

    /// Schedules a check after a task ended or an event was written to the journal.
    func notify() {
        guard !isLooking else { return }
        isLooking = true
        scheduleRound(after: Self.delay)
    }

    private func scheduleRound(after delay: Milliseconds) {
        guard !isStopped else { return }
        alarm?.cancel()
        alarm = Task { [weak self, clock] in
            if delay > 0 { await clock.sleep(delay) }
            if !Task.isCancelled { await self?.runDeferredWork() }
        }
    }

    private func runDeferredWork() async {
        isLooking = false
        /// The delay of the next check for remaining work, in milliseconds.
        var later: Milliseconds?
        do {
            try await removeTasks()
            let events = KeptHistory(since: clock.now() - settings.eventAge, count: settings.eventCount)
            while try await store.trimEvents(events) {}
            while try await store.trimPastEntries(quota: settings.quota) {}
            later = try await erase()
        } catch {
            if (error as? StoreError) == .closed { return }
            logger.error("cannot remove expired history", metadata: ["error": "\(error)"])
            later = Self.interval.lowerBound
        }
        guard !isLooking else { return }
        let now = clock.now()
        // A retention period of seconds must not be extended to a minute by the minimum interval.
        let least = min(Self.interval.lowerBound, max(1_000, min(settings.historyAge, settings.eventAge)))
        let next = [
            ((try? store.firstEnd()) ?? nil).map { $0.addingClamped(settings.historyAge).subtractingClamped(now) },
            ((try? store.firstEventTime()) ?? nil).map { $0.addingClamped(settings.eventAge).subtractingClamped(now) },
        ].compactMap(\.self).min().map { min(max($0, least), Self.interval.upperBound) }
        let soonest = [next, later].compactMap(\.self).min()
        if let soonest { scheduleRound(after: soonest) }
    }

    /// Removes erased secrets from the write-ahead log too, soon after their deletion.
    ///
    /// - Returns: the delay until the next attempt, in milliseconds; `nil` where nothing is left to remove.
    private func erase() async throws -> Milliseconds? {
        guard try store.holdsErasedSecrets() else { return nil }
        let now = clock.monotonic()
        guard mayEraseAt <= now else { return mayEraseAt - now }
        mayEraseAt = now + Self.erasureInterval
        // The log cannot be truncated while there is a reader.
        return try await store.emptyLog() ? nil : Self.erasureInterval
    }

    private func removeTasks() async throws {
        var before: [TaskID] = []
        while !isStopped {
            let tasks = KeptHistory(since: clock.now() - settings.historyAge, count: settings.historyCount)
            let ids = try store.expired(tasks, limit: TaskQueue.partSize)
            // Tasks that could not be removed are not tried again immediately.
            if ids.isEmpty || ids == before { return }
            before = ids
            try await remove(ids)
        }
    }
}
