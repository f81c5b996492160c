import Logging
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// A sender of events to one receiver.
///
/// The sender reads the journal from its stored position on, and sends each event that the receiver asks for until the
/// receiver accepts it. An event is sent at least once, in order for each task. Only this receiver waits for its own
/// responses. ``ReceiverPace`` decides how many messages are sent at once.
actor WebhookSender {
    /// The maximum number of messages at the same time.
    static let jobs = 4
    /// The time after which an event that is not accepted is given up, in milliseconds from its first failure.
    static let patience: Milliseconds = 86_400_000
    /// The delays between two attempts.
    static let policy = RetryPolicy()
    /// The maximum time for a response in milliseconds.
    static let deadline: Milliseconds = 60_000
    /// The time in milliseconds that messages under way have at the end.
    static let grace: Milliseconds = 2_000
    /// The number of events of one owner that are held.
    static let perOwner = 128
    /// The number of events without a message after which the position is stored.
    private static let positionStep: Int64 = 1_000
    /// The number of events that are read at once of those that an earlier process held.
    private static let keptPage = 16

    /// The receiver's place in the configuration, from 1.
    private let number: Int
    private let webhook: Webhook
    private let address: WebhookAddress
    /// The name in the store.
    private let name: String
    private let store: TaskStore
    private let manager: SessionManager
    private let clock: QueueClock
    private let logger: Logger
    private var lanes: EventLanes
    private var pace = ReceiverPace(policy: policy)
    private var failed = FailedEvents(policy: policy)
    /// The source of the jitter. It is not the concrete type, since ThreadSanitizer crashes at an access to a value without
    /// storage.
    private var generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()

    /// The events that an earlier process held and that are still to be read, the first one last.
    private var kept: [Int64]
    /// The owners of whom events were left out, with the position from which they are still to be read.
    private var deferred: [UInt32: Int64]
    /// The position and the owners as stored.
    private var storedPosition: Int64
    private var storedDeferred: [UInt32: Int64]
    /// The events that are held and not stored as such.
    private var unstored: Set<Int64> = []
    private var isReading = false
    private var mayRead = false
    /// Whether the journal was read since the start.
    private var hasRead = false
    /// The last removed event whose loss is recorded.
    private var knownLoss: Int64 = 0

    private var delivered = 0
    private var givenUpCount: Int
    private var lastGivenUp: WebhookRecord.GivenUp?
    private var jobs: [Int64: Task<Void, Never>] = [:]
    /// The wait for the next attempt that is not permitted yet, and its monotonic end.
    private var alarm: (time: Milliseconds, task: Task<Void, Never>)?
    private var isStopped = false

    /// - Parameter number: the receiver's place in the configuration, from 1.
    init(
        _ webhook: Webhook, number: Int, name: String, record: WebhookRecord, store: TaskStore,
        manager: SessionManager, clock: QueueClock, logger: Logger
    ) {
        self.webhook = webhook
        self.number = number
        address = WebhookAddress(of: webhook.url)
        self.name = name
        self.store = store
        self.manager = manager
        self.clock = clock
        self.logger = logger
        lanes = EventLanes(jobs: Self.jobs, retries: .max, after: record.position)
        kept = record.pending.reversed()
        deferred = record.deferred
        storedPosition = record.position
        storedDeferred = record.deferred
        givenUpCount = record.givenUpCount
        lastGivenUp = record.lastGivenUp
    }

    // MARK: Status

    private var label: Logger.MetadataValue { "\(number) (\(address.origin))" }

    var status: WebhookStatus {
        WebhookStatus(
            number: number, address: address, types: webhook.types, batch: webhook.batch,
            waiting: lanes.count + kept.count + unheldCount(), failed: failed.count, delivered: delivered,
            failure: failure,
            givenUpCount: givenUpCount,
            lastGivenUp: lastGivenUp.map { .init(sequence: $0.sequence, at: $0.at, message: $0.message) })
    }

    /// The largest number of events that are counted in the journal.
    private static let mostCounted = 10_000
    private static let countedTogether = 256

    /// The events after ``EventLanes/lastSeen`` that were counted so far.
    private struct Unread {
        var after: Int64
        var upTo: Int64
        var count = 0
    }

    private var unread: Unread?

    /// Returns the number of events that are in the journal alone, at most ``mostCounted``.
    private func unheldCount() -> Int {
        let end = lanes.lastSeen
        var known = unread.flatMap { $0.after == end ? $0 : nil } ?? Unread(after: end, upTo: end)
        known.count += count(webhook.filter, after: &known.upTo, upTo: .max, limit: Self.mostCounted - known.count)
        unread = known
        var total = known.count
        for (owner, position) in deferred {
            var (filter, after) = (webhook.filter, position)
            filter.owner = owner
            total += count(filter, after: &after, upTo: end, limit: Self.mostCounted - total)
        }
        return total
    }

    /// Counts events.
    ///
    /// - Parameter position: the position in the journal up to which was counted.
    private func count(_ filter: EventFilter, after position: inout Int64, upTo end: Int64, limit: Int) -> Int {
        var total = 0
        while total < limit, position < end,
            let page = try? store.events(after: position, limit: Self.countedTogether, filter: filter),
            page.position > position
        {
            total += page.events.count { $0.sequence <= end }
            position = page.position
        }
        return total
    }

    private var failure: WebhookStatus.Failure? {
        let message = pace.trouble?.message ?? failed.lastMessage
        guard let since = pace.trouble?.since ?? failed.since, let message else { return nil }
        return .init(since: since, message: message, nextAttempt: nextAttempt)
    }

    /// The time of the earliest attempt in milliseconds since 1970; `nil` while one is under way.
    private var nextAttempt: Milliseconds? {
        guard let due = nextDue else { return nil }
        return clock.now().addingClamped(max(0, due.subtractingClamped(clock.monotonic())))
    }

    /// The monotonic time of the earliest attempt; `nil` while one is under way.
    private var nextDue: Milliseconds? {
        let own = failed.nextDue
        guard pace.trouble != nil else { return own }
        guard let end = pace.restsUntil else { return nil }
        guard !lanes.hasReady, let own else { return end }
        return max(end, own)
    }

    // MARK: Reading

    /// Reads on in the journal after it has grown, as far as there is room.
    func notify() async {
        mayRead = true
        guard !isReading else { return }
        isReading = true
        defer { isReading = false }
        while mayRead, !isStopped {
            mayRead = false
            do throws(StoreError) {
                while !isStopped, lanes.hasRoom, try await readMore() { startNext() }
            } catch {
                if error != .closed {
                    logger.error("cannot read events for a webhook", metadata: ["to": label, "error": "\(error)"])
                }
                return
            }
            startNext()
        }
    }

    /// Reads a page.
    ///
    /// - Returns: whether there may be more.
    private func readMore() async throws(StoreError) -> Bool {
        // Earlier events of a task are held before later ones are read.
        guard kept.isEmpty else {
            try await readKept()
            return true
        }
        let position = lanes.lastSeen
        try await readOn()
        try await readDeferred()
        return lanes.lastSeen != position
    }

    /// Reads events that an earlier process held.
    private func readKept() async throws(StoreError) {
        guard let first = kept.last else { return }
        let page = try store.events(after: first - 1, limit: min(pageLimit, Self.keptPage), filter: webhook.filter)
        let events = Dictionary(page.events.map { ($0.sequence, $0) }) { first, _ in first }
        var gone: [Int64] = []
        while let sequence = kept.last, sequence <= max(first, page.position) {
            kept.removeLast()
            if let event = events[sequence] {
                lanes.add(event)
            } else {
                gone.append(sequence)
            }
        }
        guard let last = gone.last else { return }
        // Others are no longer for this receiver.
        let lost = gone.last { $0 <= page.trimmed }
        await record(.init(done: gone, givenUp: lost.map { loss(upTo: $0) }), about: last)
    }

    /// Reads a page of the journal. The events of an owner who has many already are left to ``readDeferred()``, so that
    /// others' events need not wait behind them.
    private func readOn() async throws(StoreError) {
        let position = lanes.lastSeen
        let page = try store.events(after: position, limit: pageLimit, filter: webhook.filter)
        if var known = unread, known.after == position, page.position <= known.upTo {
            known.after = page.position
            known.count -= page.events.count
            unread = known
        }
        var events: [TaskEvent] = []
        var counts: [UInt32: Int] = [:]
        for event in page.events {
            guard let owner = event.owner else {
                events.append(event)
                continue
            }
            guard deferred[owner] == nil else { continue }
            let count = counts[owner] ?? lanes.count(of: owner)
            if count < Self.perOwner {
                events.append(event)
                counts[owner] = count + 1
            } else {
                deferred[owner] = event.sequence - 1
            }
        }
        // The stored position may be behind events that were not for this receiver.
        let isLoss = page.trimmed > max(position, knownLoss) && hasRead
        knownLoss = max(knownLoss, page.trimmed)
        hasRead = true
        await hold(events, position: page.position, givenUp: isLoss ? loss(upTo: page.trimmed) : nil)
    }

    /// Reads the events that were left out, of owners whose earlier ones are mostly done.
    private func readDeferred() async throws(StoreError) {
        for (owner, position) in deferred
        where lanes.hasRoom && lanes.count(of: owner) <= Self.perOwner / 2 {
            var filter = webhook.filter
            filter.owner = owner
            let limit = min(pageLimit, Self.perOwner - lanes.count(of: owner))
            let page = try store.events(after: position, limit: max(1, limit), filter: filter)
            deferred[owner] = page.position < lanes.lastSeen ? page.position : nil
            let isLoss = page.trimmed > max(position, knownLoss)
            knownLoss = max(knownLoss, page.trimmed)
            await hold(
                page.events.filter { $0.sequence <= lanes.lastSeen }, position: lanes.lastSeen,
                givenUp: isLoss ? loss(upTo: page.trimmed) : nil)
        }
    }

    private var pageLimit: Int { max(1, min(256, EventLanes.capacity - lanes.count)) }

    /// Stores that events are held and how far the journal was read, before any of them may be sent.
    private func hold(_ events: [TaskEvent], position: Int64, givenUp: WebhookRecord.GivenUp?) async {
        unstored.formUnion(events.lazy.map(\.sequence))
        let isMuch = position.subtractingClamped(storedPosition) >= Self.positionStep
        if !events.isEmpty || deferred != storedDeferred || isMuch || givenUp != nil {
            await storeReading(upTo: position, givenUp: givenUp)
        }
        for event in events { lanes.add(event) }
        lanes.skip(position)
    }

    private func storeReading(upTo position: Int64, givenUp: WebhookRecord.GivenUp? = nil) async {
        // A page that is being stored meanwhile may have brought later ones.
        let pending = unstored.filter { $0 <= position }
        let owners = deferred.mapValues { min($0, position) }
        let change = WebhookChange(
            position: position, pending: pending, deferred: owners == storedDeferred ? nil : owners, givenUp: givenUp)
        guard await record(change, about: position) else { return }
        unstored.subtract(pending)
        storedPosition = max(storedPosition, position)
        storedDeferred = owners
    }

    /// Reports events that left the journal before they could be sent.
    private func loss(upTo sequence: Int64) -> WebhookRecord.GivenUp {
        let message = "events up to number \(sequence) left the journal before they could be sent"
        logger.error("events are lost to a webhook's receiver", metadata: ["to": label, "error": "\(message)"])
        let loss = WebhookRecord.GivenUp(sequence: sequence, at: clock.now(), message: message)
        givenUpCount += 1
        lastGivenUp = loss
        return loss
    }

    // MARK: Sending

    private func startNext() {
        guard !isStopped else { return }
        let now = clock.monotonic()
        for event in failed.takeDue(now: now) { lanes.isDue(event) }
        while let permit = pace.permit(at: now), let entry = lanes.next(fewestFailures: permit == .probe) {
            pace.begin(entry.event.sequence)
            jobs[entry.event.sequence] = Task { await handle(entry.event) }
        }
        setAlarm(now: now)
    }

    /// Waits until more may be sent. A single wait serves all events.
    private func setAlarm(now: Milliseconds) {
        let time = [pace.restsUntil, failed.nextDue].compactMap { $0 }.filter { $0 > now }.min()
        guard time != alarm?.time else { return }
        alarm?.task.cancel()
        alarm = time.map { time in
            (
                time,
                Task { [clock] in
                    let wait = time.subtractingClamped(clock.monotonic())
                    if wait > 0 { await clock.sleep(wait) }
                    if !Task.isCancelled { alarmEnded(time) }
                }
            )
        }
    }

    private func alarmEnded(_ time: Milliseconds) {
        if alarm?.time == time { alarm = nil }
        startNext()
    }

    private func handle(_ event: TaskEvent) async {
        let outcome = await send(event)
        // A success during the end is recorded too. What fails is sent again by the next process.
        if isStopped, outcome != .accepted { return }
        let isProbe = pace.isProbe(event.sequence)
        let change = pace.ended(
            event.sequence, outcome, now: clock.monotonic(), time: clock.now(), using: &generator)
        switch change {
        case .none: break
        case .stopped:
            logger.warning(
                "a webhook's receiver does not work; one event at a time is sent until it does",
                metadata: ["to": label, "event": "\(event.sequence)", "error": "\(outcome.fault ?? "")"])
        case .restored: logger.notice("a webhook's receiver works again", metadata: ["to": label])
        }
        if let fault = outcome.fault {
            await fail(event, fault, isProbe: isProbe && change != .restored)
        } else {
            await finish(event, givenUp: nil)
            delivered += 1
        }
        jobs[event.sequence] = nil
        startNext()
        await notify()
    }

    private func fail(_ event: TaskEvent, _ fault: String, isProbe: Bool) async {
        let now = clock.monotonic()
        if failed.age(of: event.sequence, now: now) >= Self.patience {
            logger.error(
                "an event is given up, which a webhook's receiver did not accept for a day",
                metadata: ["to": label, "event": "\(event.sequence)", "error": "\(fault)"])
            let givenUp = WebhookRecord.GivenUp(sequence: event.sequence, at: clock.now(), message: fault)
            givenUpCount += 1
            lastGivenUp = givenUp
            return await finish(event, givenUp: givenUp)
        }
        if pace.trouble == nil, failed.count == 0 {
            logger.warning(
                "a webhook's receiver did not accept an event; it is sent again",
                metadata: ["to": label, "event": "\(event.sequence)", "error": "\(fault)"])
        }
        _ = lanes.ended(event.sequence, isSuccess: false)
        failed.add(event, fault, isProbe: isProbe, now: now, time: clock.now(), using: &generator)
    }

    /// Records an event as done before another one of its task may be sent.
    private func finish(_ event: TaskEvent, givenUp: WebhookRecord.GivenUp?) async {
        await record(.init(done: [event.sequence], givenUp: givenUp), about: event.sequence)
        unstored.remove(event.sequence)
        failed.remove(event.sequence)
        _ = lanes.ended(event.sequence, isSuccess: true)
    }

    /// Stores a change.
    ///
    /// - Returns: whether it is stored. If not, the next process may send events again.
    @discardableResult
    private func record(_ change: WebhookChange, about sequence: Int64) async -> Bool {
        do throws(StoreError) {
            try await store.record(change, ofWebhook: name)
            return true
        } catch {
            if error != .closed {
                logger.error(
                    "cannot record what was sent to a webhook",
                    metadata: ["to": label, "event": "\(sequence)", "error": "\(error)"])
            }
            return false
        }
    }

    /// Sends an event once.
    private func send(_ event: TaskEvent) async -> WebhookOutcome {
        let key = store.journal.key(of: event.sequence)
        guard let message = try? WebhookMessage(event, to: webhook, key: key, now: clock.now()) else {
            return .refused("the event cannot be encoded")
        }
        let request = manager.upload(.data(message.body), with: message.request).validate(statusCode: 200..<300)
        let deadline = Task { [clock] in
            await clock.sleep(Self.deadline)
            let isLate = !Task.isCancelled
            if isLate { request.cancel() }
            return isLate
        }
        let outcome = await withTaskCancellationHandler {
            await request.outcome
        } onCancel: {
            request.cancel()
        }
        deadline.cancel()
        let status = outcome.head.map { Int($0.status) }
        if let status, (200..<300).contains(status) { return .accepted }
        if await deadline.value { return .failed("no response within \(Self.deadline / 1000) s") }
        return status.map { .init(status: $0, retryAfter: outcome.error?.retryAfter) }
            ?? .init(outcome.error)
    }

    // MARK: The end

    /// Ends all waits at once, and all requests after a short time. What the receiver has not accepted by then is sent by
    /// the next process.
    func stop() async {
        isStopped = true
        alarm?.task.cancel()
        alarm = nil
        let jobs = Array(jobs.values)
        let end = Task { [clock] in
            await clock.sleep(Self.grace)
            for job in jobs { job.cancel() }
        }
        for job in jobs { await job.value }
        end.cancel()
        guard lanes.lastSeen > storedPosition || deferred != storedDeferred || !unstored.isEmpty else { return }
        await storeReading(upTo: lanes.lastSeen)
    }
}
