import Logging
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// A sender of events to one receiver.
///
/// The sender reads the journal from its stored position on, and sends each event that the receiver asks for until the
/// receiver accepts it. An event is sent at least once, in order for each task. Only this receiver waits for its own
/// responses.
actor WebhookSender {
    /// The maximum number of messages at the same time.
    static let jobs = 4
    /// The time after which an event is given up, in milliseconds from the event or the start of the daemon.
    static let patience: Milliseconds = 86_400_000
    /// The maximum time in seconds between two attempts.
    static let longestDelay: Double = 900
    /// The maximum time for a response in milliseconds.
    static let deadline: Milliseconds = 60_000
    /// The number of events of one owner that are held.
    private static let perOwner = 128
    /// The number of events without a message after which the position is stored.
    private static let positionStep: Int64 = 1_000

    private let webhook: Webhook
    /// The name in the store.
    private let name: String
    private let store: TaskStore
    private let manager: SessionManager
    private let clock: QueueClock
    private let logger: Logger
    private let started: Milliseconds
    private var lanes: EventLanes
    /// The events after the stored position that were done before this process.
    private var doneBefore: Set<Int64>
    /// The owners of whom events were left out, with the position from which they are still to be read.
    private var deferred: [UInt32?: Int64] = [:]
    private var storedPosition: Int64
    private var delivered = 0
    private var givenUpCount: Int
    private var lastGivenUp: WebhookRecord.GivenUp?
    private var failure: WebhookStatus.Failure?
    private var jobs: [Int64: Task<Void, Never>] = [:]
    private var isStopped = false
    /// Whether the journal was read since the start.
    private var hasRead = false
    /// The last removed event whose loss is recorded.
    private var knownLoss: Int64 = 0

    init(
        _ webhook: Webhook, name: String, record: WebhookRecord, store: TaskStore, manager: SessionManager,
        clock: QueueClock, logger: Logger
    ) {
        self.webhook = webhook
        self.name = name
        self.store = store
        self.manager = manager
        self.clock = clock
        self.logger = logger
        started = clock.now()
        lanes = EventLanes(
            jobs: Self.jobs, retries: .max, longestDelay: Self.longestDelay, after: record.position)
        doneBefore = record.done
        storedPosition = record.position
        givenUpCount = record.givenUpCount
        lastGivenUp = record.lastGivenUp
    }

    /// The origin of the URL. The rest may be secret.
    private var origin: String { (try? TaskAddress(parsing: webhook.url))?.hostKey ?? "REDACTED" }

    var status: WebhookStatus {
        WebhookStatus(
            origin: origin, types: webhook.types, batch: webhook.batch, waiting: lanes.count, delivered: delivered,
            failure: failure, givenUpCount: givenUpCount,
            lastGivenUp: lastGivenUp.map { .init(sequence: $0.sequence, at: $0.at, message: $0.message) })
    }

    // MARK: Reading

    /// Reads on in the journal after it has grown, as far as there is room.
    func notify() async {
        do throws(StoreError) {
            while !isStopped, lanes.hasRoom {
                let position = lanes.lastSeen
                try readOn()
                try readDeferred()
                startNext()
                if lanes.lastSeen == position { break }
            }
            try readDeferred()
            startNext()
        } catch {
            if error != .closed {
                logger.error("cannot read events for a webhook", metadata: ["to": "\(origin)", "error": "\(error)"])
            }
            return
        }
        let position = position(without: nil)
        if lanes.isEmpty, position.subtractingClamped(storedPosition) >= Self.positionStep {
            await record(nil, position: position, givenUp: nil)
        }
    }

    /// Reads a page of the journal. The events of an owner who has many already are left to ``readDeferred()``, so that
    /// others' events need not wait behind them.
    private func readOn() throws(StoreError) {
        let position = lanes.lastSeen
        let page = try store.events(after: position, limit: pageLimit, filter: webhook.filter)
        for event in page.events where deferred[event.owner] == nil {
            if doneBefore.remove(event.sequence) != nil { continue }
            if lanes.count(of: event.owner) < Self.perOwner {
                lanes.add(event)
            } else {
                deferred[event.owner] = event.sequence - 1
            }
        }
        lanes.skip(page.position)
        if page.trimmed > max(position, knownLoss) { recordLoss(upTo: page.trimmed) }
        hasRead = true
    }

    /// Reads the events that were left out, of owners whose earlier ones are mostly done.
    private func readDeferred() throws(StoreError) {
        for (owner, position) in deferred
        where lanes.hasRoom && lanes.count(of: owner) <= Self.perOwner / 2 {
            var filter = webhook.filter
            filter.owner = owner
            let limit = min(pageLimit, Self.perOwner - lanes.count(of: owner))
            let page = try store.events(after: position, limit: max(1, limit), filter: filter)
            if page.trimmed > max(position, knownLoss) { recordLoss(upTo: page.trimmed) }
            for event in page.events where event.sequence <= lanes.lastSeen {
                if doneBefore.remove(event.sequence) == nil { lanes.add(event) }
            }
            deferred[owner] = page.position < lanes.lastSeen ? page.position : nil
        }
    }

    private var pageLimit: Int { max(1, min(256, EventLanes.capacity - lanes.count)) }

    /// Returns the sequence number up to which every event will be done when one more is.
    private func position(without sequence: Int64?) -> Int64 {
        min(lanes.position(without: sequence), deferred.values.min() ?? .max)
    }

    /// Records that events have left the journal before they were read.
    private func recordLoss(upTo sequence: Int64) {
        knownLoss = sequence
        // The stored position may be behind events that were not for this receiver.
        guard hasRead else { return }
        let message = "events up to number \(sequence) left the journal before they could be sent"
        logger.error("events are lost to a webhook's receiver", metadata: ["to": "\(origin)", "error": "\(message)"])
        let loss = WebhookRecord.GivenUp(sequence: sequence, at: clock.now(), message: message)
        givenUpCount += 1
        lastGivenUp = loss
        let position = position(without: nil)
        Task { await record(nil, position: position, givenUp: loss) }
    }

    /// Ends all requests. What the receivers have not accepted is sent by the next process.
    func stop() async {
        isStopped = true
        let jobs = Array(jobs.values)
        for job in jobs { job.cancel() }
        for job in jobs { await job.value }
        await record(nil, position: position(without: nil), givenUp: nil)
    }

    // MARK: Sending

    private func startNext() {
        while !isStopped, let entry = lanes.next() {
            jobs[entry.event.sequence] = Task { await handle(entry) }
        }
    }

    private func handle(_ entry: EventLanes.Entry) async {
        let sequence = entry.event.sequence
        let fault = await send(entry.event)
        // A success during the end is recorded too. What fails is sent again by the next process.
        if isStopped, fault != nil { return }
        if let fault {
            await handle(fault, of: entry)
        } else {
            if failure != nil {
                logger.notice("a webhook's receiver accepts events again", metadata: ["to": "\(origin)"])
            }
            failure = nil
            delivered += 1
            await finish(entry.event, givenUp: nil)
        }
        jobs[sequence] = nil
        startNext()
        await notify()
    }

    private func handle(_ fault: String, of entry: EventLanes.Entry) async {
        let event = entry.event
        let now = clock.now()
        if failure == nil {
            logger.warning(
                "a webhook's receiver did not accept an event; it is sent again",
                metadata: ["to": "\(origin)", "event": "\(event.sequence)", "error": "\(fault)"])
        }
        if now.subtractingClamped(max(event.at, started)) >= Self.patience {
            logger.error(
                "an event is given up, which a webhook's receiver did not accept for a day",
                metadata: ["to": "\(origin)", "event": "\(event.sequence)", "error": "\(fault)"])
            givenUpCount += 1
            let givenUp = WebhookRecord.GivenUp(sequence: event.sequence, at: now, message: fault)
            lastGivenUp = givenUp
            await finish(event, givenUp: givenUp)
            return
        }
        guard case .retry(let seconds) = lanes.ended(event.sequence, isSuccess: false) else { return }
        let delay = Milliseconds(seconds * 1000)
        failure = .init(since: failure?.since ?? now, message: fault, nextAttempt: now.addingClamped(delay))
        Task {
            await clock.sleep(delay)
            lanes.isDue(event)
            startNext()
        }
    }

    /// Records an event as done before another one of its task may be sent.
    private func finish(_ event: TaskEvent, givenUp: WebhookRecord.GivenUp?) async {
        await record(event.sequence, position: position(without: event.sequence), givenUp: givenUp)
        _ = lanes.ended(event.sequence, isSuccess: true)
    }

    private func record(_ sequence: Int64?, position: Int64, givenUp: WebhookRecord.GivenUp?) async {
        do throws(StoreError) {
            try await store.finish(sequence, ofWebhook: name, position: position, givenUp: givenUp)
            storedPosition = max(storedPosition, position)
        } catch {
            // The event is sent again by the next process.
            if error != .closed {
                logger.error("cannot record a sent event", metadata: ["to": "\(origin)", "error": "\(error)"])
            }
        }
    }

    /// Sends an event once.
    ///
    /// - Returns: why the receiver did not accept it; `nil` if it did.
    private func send(_ event: TaskEvent) async -> String? {
        guard
            let message = try? WebhookMessage(event, to: webhook, journal: store.journal.name, now: clock.now())
        else { return "the event cannot be encoded" }
        let request = manager.upload(.data(message.body), with: message.request)
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
        if let status, (200..<300).contains(status) { return nil }
        if await deadline.value { return "no response within \(Self.deadline / 1000) s" }
        return status.map { "server replied \($0)" } ?? outcome.error.map { $0.message } ?? "no response"
    }
}
