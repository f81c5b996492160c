package import TaskModel
import TaskStore
import Transfer

/// The rate limits in force at the moment, with their sources.
package struct RatesInForce: Sendable, Equatable {
    package enum Source: String, Sendable, Codable {
        /// A command, which stays in force until it is revoked.
        case command
        case schedule, configuration
    }

    /// The limit in bytes per second; `nil` for unlimited.
    package var download: Int64?
    package var upload: Int64?
    package var downloadSource: Source
    package var uploadSource: Source
}

/// An enforcer of the daemon's rate limits. A command takes precedence over the current window of the schedule, and the
/// window over the configuration. It also reports when a window pauses all transfers, and wakes up when the next window
/// begins or ends.
actor BandwidthController {
    private let store: TaskStore
    private let clock: QueueClock
    private let download: RateLimiter
    private let upload: RateLimiter
    /// A callback for the beginning and the end of a window that pauses all transfers.
    private let pauseChanged: @Sendable (SchedulePause?) async -> Void

    private var rates: TransferRates
    private var schedule: Schedule
    private var orders = RateOrders()
    private var pause: SchedulePause?
    /// The last pause reported to `pauseChanged`.
    private var reportedPause: SchedulePause?
    private var isReporting = false
    private var alarm: Task<Void, Never>?
    private var isStopped = false

    /// The maximum interval between checks, in milliseconds. It is limited because the local UTC offset may change.
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

    /// Applies the current rate limits before any task starts.
    func start() async throws(StoreError) {
        orders = try store.rateOrders()
        await update()
    }

    func stop() {
        isStopped = true
        alarm?.cancel()
    }

    /// Applies a changed configuration.
    func apply(_ settings: QueueSettings) async {
        (rates, schedule) = (settings.rates, settings.schedule)
        await update()
    }

    /// Sets or revokes limits by command. They persist across restarts. The change is durable when the function
    /// returns.
    func order(_ change: @Sendable (inout RateOrders) -> Void) async throws(StoreError) {
        var changed = orders
        change(&changed)
        try await store.setRateOrders(changed)
        orders = changed
        await update()
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

    /// The present window of the schedule with the time until which it applies; `nil` if there is none.
    var window: (window: ScheduleWindow, until: Milliseconds?)? {
        let now = clock.now()
        return schedule.window(at: now, utcOffset: clock.utcOffset).map {
            ($0, schedule.nextChange(after: now, utcOffset: clock.utcOffset))
        }
    }

    /// Applies the limits anew after the clock was set or the configuration changed.
    func update() async {
        guard !isStopped else { return }
        let now = clock.now()
        let rates = inForce
        if download.rate != rates.download { download.rate = rates.download }
        if upload.rate != rates.upload { upload.rate = rates.upload }
        let next = schedule.nextChange(after: now, utcOffset: clock.utcOffset)
        let isPaused = schedule.window(at: now, utcOffset: clock.utcOffset)?.pauses ?? false
        pause = isPaused ? SchedulePause(until: next) : nil
        setAlarm(at: next)
        // The callback is called serially, so that the last reported state is the current one.
        guard !isReporting else { return }
        isReporting = true
        while reportedPause != pause {
            reportedPause = pause
            await pauseChanged(pause)
        }
        isReporting = false
    }

    private func setAlarm(at next: Milliseconds?) {
        alarm?.cancel()
        alarm = next.map { next in
            Task { [weak self, clock] in
                await clock.sleep(max(1, min(next - clock.now(), Self.longestSleep)))
                if !Task.isCancelled { await self?.update() }
            }
        }
    }
}

/// A pause of all transfers by a window of the schedule.
package struct SchedulePause: Sendable, Equatable {
    /// The time at which the pause ends; `nil` if it never does.
    package var until: Milliseconds?
}
