import TaskModel
import TaskStore
import Transfer

/// The rates that count at this moment, and why they do.
package struct RatesInForce: Sendable, Equatable {
    package enum Source: String, Sendable, Codable {
        /// Someone said so, and has not taken it back.
        case command
        case schedule, configuration
    }

    /// Bytes a second; `nil`: any number.
    package var download: Int64?
    package var upload: Int64?
    package var downloadSource: Source
    package var uploadSource: Source
}

/// Keeps the daemon to its rates: those that someone set for the time being, otherwise those of the schedule's window,
/// otherwise the configuration's. Says when a window pauses everything. Wakes up when the next window begins or ends.
actor RateKeeper {
    private let store: TaskStore
    private let clock: QueueClock
    private let download: RateLimiter
    private let upload: RateLimiter
    /// Called when a window begins that lets nothing run, and when it ends.
    private let pauseChanged: @Sendable (SchedulePause?) async -> Void

    private var rates: TransferRates
    private var schedule: Schedule
    private var orders = RateOrders()
    private var pause: SchedulePause?
    /// What was said last.
    private var toldPause: SchedulePause?
    private var isTelling = false
    private var alarm: Task<Void, Never>?
    private var isStopped = false

    /// Milliseconds between looks at the clock at most: the place where the machine stands may change its time.
    private static let longestSleep: Milliseconds = 3_600_000

    init(
        store: TaskStore, settings: QueueSettings, clock: QueueClock,
        limiters: (download: RateLimiter, upload: RateLimiter),
        pauseChanged: @escaping @Sendable (SchedulePause?) async -> Void
    ) {
        self.store = store
        self.clock = clock
        (download, upload) = limiters
        (rates, schedule) = (settings.rates, settings.schedule)
        self.pauseChanged = pauseChanged
    }

    /// Puts the rates in force that count now, before anything runs.
    func start() async throws(StoreError) {
        orders = try store.rateOrders()
        await look()
    }

    func stop() {
        isStopped = true
        alarm?.cancel()
    }

    /// The configuration changed.
    func apply(_ settings: QueueSettings) async {
        (rates, schedule) = (settings.rates, settings.schedule)
        await look()
    }

    /// What someone says counts until they take it back, over restarts too; durable when it returns.
    func order(_ change: @Sendable (inout RateOrders) -> Void) async throws(StoreError) {
        var changed = orders
        change(&changed)
        try await store.setRateOrders(changed)
        orders = changed
        await look()
    }

    var inForce: RatesInForce {
        let window = schedule.window(at: clock.now(), utcOffset: clock.utcOffset)
        let download = Self.rate(orders.download, window?.downloadRate, rates.download)
        let upload = Self.rate(orders.upload, window?.uploadRate, rates.upload)
        return RatesInForce(
            download: download.rate, upload: upload.rate, downloadSource: download.source,
            uploadSource: upload.source)
    }

    private static func rate(
        _ order: RateOrder?, _ window: Int64?, _ configured: Int64?
    ) -> (rate: Int64?, source: RatesInForce.Source) {
        switch order {
        case .unlimited: (nil, .command)
        case .limit(let rate): (rate, .command)
        case nil: window.map { ($0, .schedule) } ?? (configured, .configuration)
        }
    }

    /// The clock was set, or what is configured changed.
    func look() async {
        guard !isStopped else { return }
        let now = clock.now()
        let rates = inForce
        if download.rate != rates.download { download.rate = rates.download }
        if upload.rate != rates.upload { upload.rate = rates.upload }
        let next = schedule.nextChange(after: now, utcOffset: clock.utcOffset)
        let isPaused = schedule.window(at: now, utcOffset: clock.utcOffset)?.pauses ?? false
        pause = isPaused ? SchedulePause(until: next) : nil
        setAlarm(at: next)
        // One word after the other: what is said last is what counts.
        guard !isTelling else { return }
        isTelling = true
        while toldPause != pause {
            toldPause = pause
            await pauseChanged(pause)
        }
        isTelling = false
    }

    private func setAlarm(at next: Milliseconds?) {
        alarm?.cancel()
        alarm = next.map { next in
            Task { [weak self, clock] in
                await clock.sleep(max(1, min(next - clock.now(), Self.longestSleep)))
                if !Task.isCancelled { await self?.look() }
            }
        }
    }
}

/// Nothing runs, since a window of the schedule says so.
package struct SchedulePause: Sendable, Equatable {
    /// When another window or none begins; `nil`: never.
    package var until: Milliseconds?
}
