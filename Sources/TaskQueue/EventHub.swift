import TaskModel
package import TaskStore

/// A limit on the memory of event pages. A subscriber acquires room for a page before it reads one, since thousands of
/// subscribers may read at once.
package struct EventRoom: Sendable {
    /// Waits for room. Returns `false` once the reader is gone.
    let acquire: @Sendable () async -> Bool
    /// Releases the room of a page that turned out to be empty.
    let release: @Sendable () -> Void

    package init(acquire: @escaping @Sendable () async -> Bool, release: @escaping @Sendable () -> Void) {
        self.acquire = acquire
        self.release = release
    }

    package static let unlimited = EventRoom(acquire: { true }, release: {})
}

/// A publisher of the event journal. Each subscriber has a position in the journal and reads on from there. Replayed
/// and live events are therefore one ordered sequence, without loss or duplicates, at any speed of the subscriber.
package actor EventHub {
    /// Returns the status of each running task that the subscriber may see.
    typealias ProgressSource = @Sendable (_ generation: Int) async -> [TaskStatus]

    private let store: TaskStore
    private let clock: QueueClock
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextNumber = 0
    private var generation = 0

    /// The maximum number of events in a page.
    static let page = 256

    package init(store: TaskStore, clock: QueueClock = .system) {
        self.store = store
        self.clock = clock
    }

    /// Wakes all waiting subscribers after the journal has grown.
    package func notify() {
        generation += 1
        let woken = waiting
        waiting = [:]
        for continuation in woken.values { continuation.resume() }
    }

    /// Creates a subscription.
    ///
    /// - Parameters:
    ///   - sequence: the last event that the subscriber has seen; `nil` for new events only.
    ///   - journal: the name of the journal in which it was, if the subscriber tells.
    ///   - scope: the uid whose tasks the subscriber may see; `nil` for the tasks of all users.
    ///   - progress: asked for the progress of running tasks if the filter wants it.
    nonisolated func subscribe(
        after sequence: Int64?, in journal: String? = nil, filter: EventFilter = EventFilter(), scope: UInt32?,
        progress: ProgressSource? = nil
    ) throws(StoreError) -> (last: Int64, pages: @Sendable (EventRoom) -> AsyncStream<[TaskEvent]>) {
        let last = try store.lastEvent()
        let start = store.journal.start(after: sequence ?? last, in: sequence.flatMap { _ in journal }, last: last)
        return (
            last,
            { [self, store, clock] room in
                let reader = EventReader(
                    hub: self, store: store, clock: clock, after: start, filter: filter, scope: scope,
                    progress: filter.wantsProgress ? progress : nil, room: room)
                return AsyncStream { await reader.next() }
            }
        )
    }

    /// Waits until the journal has grown since generation `seen`, the time is over, or the Swift task is cancelled.
    ///
    /// - Parameter milliseconds: the maximum time to wait; `nil` for no limit.
    fileprivate func waitForChange(since seen: Int, atMost milliseconds: Milliseconds?) async {
        guard generation == seen else { return }
        nextNumber += 1
        let number = nextNumber
        let alarm = milliseconds.map { milliseconds in
            Task { [clock] in
                await clock.sleep(milliseconds)
                if !Task.isCancelled { self.forget(number) }
            }
        }
        defer { alarm?.cancel() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled {
                    continuation.resume()
                } else {
                    waiting[number] = continuation
                }
            }
        } onCancel: {
            Task { await self.forget(number) }
        }
    }

    private func forget(_ number: Int) {
        waiting.removeValue(forKey: number)?.resume()
    }

    fileprivate var currentGeneration: Int { generation }
}

/// The journal position of one subscriber.
private actor EventReader {
    private let hub: EventHub
    private let store: TaskStore
    private let clock: QueueClock
    private let filter: EventFilter
    private let scope: UInt32?
    private let progress: EventHub.ProgressSource?
    private let room: EventRoom
    private var sequence: Int64
    private var isLost: Bool
    /// The last removed event of which the subscriber was told.
    private var knownGap: Int64 = 0
    private var reports: ProgressReports

    init(
        hub: EventHub, store: TaskStore, clock: QueueClock, after start: JournalIdentity.Start, filter: EventFilter,
        scope: UInt32?, progress: EventHub.ProgressSource?, room: EventRoom
    ) {
        self.hub = hub
        self.store = store
        self.clock = clock
        sequence = start.sequence
        isLost = start.isLost
        self.filter = filter
        self.scope = scope
        self.progress = progress
        self.room = room
        reports = ProgressReports()
    }

    func next() async -> [TaskEvent]? {
        while !Task.isCancelled {
            if isLost {
                guard await room.acquire() else { return nil }
                isLost = false
                return [.gap(upTo: sequence, before: nil, after: sequence)]
            }
            let generation = await onSharedThreads { await hub.currentGeneration }
            guard let newest = try? store.lastEvent() else { return nil }
            if newest > sequence {
                guard await room.acquire() else { return nil }
                guard let page = try? page() else { return nil }
                if !page.isEmpty { return page }
                // The subscriber may see none of these events.
                room.release()
                continue
            }
            var pause: Milliseconds?
            if let progress {
                let isDue = reports.isDue(clock.monotonic())
                if isDue {
                    let running = await onSharedThreads { await progress(generation) }
                    reports.set(running, now: clock.monotonic())
                }
                let events = reports.take(EventHub.page, after: sequence, at: clock.now()).filter(filter.selects)
                if !events.isEmpty {
                    guard await room.acquire() else { return nil }
                    return events
                }
                pause = reports.pause(clock.monotonic(), hasInquired: isDue)
            }
            _ = await onSharedThreads { await hub.waitForChange(since: generation, atMost: pause) }
        }
        return nil
    }

    private func page() throws -> [TaskEvent] {
        let page = try store.events(after: sequence, limit: EventHub.page, filter: filter, scope: scope)
        var events = page.events
        // A subscriber that reads slowly may be overtaken by the removal of events at any time.
        // `sequence` comes from a client and may be any number, so no arithmetic is done with it.
        if page.trimmed > max(knownGap, sequence) {
            knownGap = page.trimmed
            events.insert(.gap(upTo: page.trimmed, before: events.first, after: sequence), at: 0)
        }
        sequence = page.position
        return events
    }
}

extension TaskEvent {
    /// Creates a marker that events up to `trimmed` are no longer in the journal.
    ///
    /// - Parameters:
    ///   - first: the next event that is still there.
    ///   - sequence: the last event that the reader has seen; any number, since it comes from a client.
    static func gap(upTo trimmed: Int64, before first: TaskEvent?, after sequence: Int64) -> TaskEvent {
        let number = first.map { min(trimmed, $0.sequence.subtractingClamped(1)) } ?? trimmed
        return TaskEvent(sequence: max(number, sequence), at: first?.at ?? 0, type: .gap)
    }
}
