/// The events that are being handled, by a command or a message for each, and the order in which that is done.
///
/// A value without I/O and clock. The events of one task, or of one batch, form a lane: they are handled one after the
/// other in the order of their numbers. Those of different lanes are handled at once, as far as there are jobs.
public struct EventLanes: Sendable {
    /// The consequence of the end of a job.
    public enum Outcome: Equatable, Sendable {
        case done
        /// The event is handled again after a number of seconds.
        case retry(after: Double)
        /// The event has failed too often.
        case givenUp
    }

    /// An event, and how often it has failed.
    public struct Entry: Equatable, Sendable {
        public var event: TaskEvent
        public var failures = 0

        public init(event: TaskEvent, failures: Int = 0) {
            self.event = event
            self.failures = failures
        }
    }

    private enum Lane: Hashable {
        case task(TaskID)
        case batch(UInt32?, String?)

        init(_ event: TaskEvent) {
            self = event.id.map { .task($0) } ?? .batch(event.owner, event.batch)
        }
    }

    /// The maximum number of events that are held.
    public static let capacity = 4_096

    private let jobs: Int
    private let retries: Int
    private let longestDelay: Double
    /// The waiting events of each lane, the next one first.
    private var lanes: [Lane: [Entry]] = [:]
    /// The events that are being handled.
    private var running: [Int64: Entry] = [:]
    /// The lanes of which an event is being handled, or waits for its next attempt.
    private var busy: Set<Lane> = []
    private var waitingCount = 0
    /// The number of events that are held, and of those that are being handled, by owner.
    private var heldByOwner: [UInt32?: Int] = [:]
    private var runningByOwner: [UInt32?: Int] = [:]
    /// The number of the last event that was added or passed over.
    public private(set) var lastSeen: Int64

    /// - Parameters:
    ///   - jobs: the maximum number of events that are handled at once.
    ///   - retries: the maximum number of further attempts after a failure.
    ///   - longestDelay: the maximum time in seconds between two attempts.
    ///   - position: the event after which the events start.
    public init(jobs: Int, retries: Int, longestDelay: Double = 60, after position: Int64) {
        self.jobs = jobs
        self.retries = retries
        self.longestDelay = longestDelay
        lastSeen = position
    }

    public var hasRoom: Bool { waitingCount + running.count < Self.capacity }
    public var isIdle: Bool { running.isEmpty }
    /// The number of events that are held.
    public var count: Int { waitingCount + running.count }
    /// Returns the number of events of one owner that are held.
    public func count(of owner: UInt32?) -> Int { heldByOwner[owner] ?? 0 }
    public var isEmpty: Bool { waitingCount == 0 && running.isEmpty }

    /// The number of the event up to which every event is done.
    public var position: Int64 { position(without: nil) }

    /// Returns ``position`` as it will be when one more event is done.
    public func position(without sequence: Int64?) -> Int64 {
        let waiting = lanes.values.lazy.compactMap { $0.first?.event.sequence }.min() ?? .max
        let handled = running.keys.lazy.filter { $0 != sequence }.min() ?? .max
        let first = min(waiting, handled)
        return first == .max ? lastSeen : first - 1
    }

    public mutating func add(_ event: TaskEvent) {
        lastSeen = max(lastSeen, event.sequence)
        lanes[Lane(event), default: []].append(Entry(event: event))
        waitingCount += 1
        heldByOwner[event.owner, default: 0] += 1
    }

    /// Records that the events up to a number need not be handled.
    public mutating func skip(_ sequence: Int64) { lastSeen = max(lastSeen, sequence) }

    /// Whether an event may be handled as soon as there is a free job.
    public var hasReady: Bool { lanes.contains { !busy.contains($0.key) && !$0.value.isEmpty } }

    /// Takes the next event that may be handled: of the owner with the fewest events that are being handled, the one with
    /// the lowest number. `nil` if there is none.
    ///
    /// - Parameter fewestFailures: whether an event that has failed less often goes before all others.
    public mutating func next(fewestFailures: Bool = false) -> Entry? {
        guard running.count < jobs else { return nil }
        var chosen: (lane: Lane, entry: Entry, rank: (Int, Int, Int64))?
        for (lane, entries) in lanes where !busy.contains(lane) {
            guard let first = entries.first else { continue }
            let rank = (
                fewestFailures ? first.failures : 0, runningByOwner[first.event.owner] ?? 0, first.event.sequence
            )
            if let chosen, chosen.rank < rank { continue }
            chosen = (lane, first, rank)
        }
        guard let (lane, entry, _) = chosen else { return nil }
        runningByOwner[entry.event.owner, default: 0] += 1
        busy.insert(lane)
        running[entry.event.sequence] = entry
        lanes[lane]?.removeFirst()
        if lanes[lane]?.isEmpty == true { lanes[lane] = nil }
        waitingCount -= 1
        return entry
    }

    /// Whether an event that is being handled is given up if it fails once more.
    public func isLastAttempt(_ sequence: Int64) -> Bool { (running[sequence]?.failures ?? 0) >= retries }

    /// Records the end of a job.
    public mutating func ended(_ sequence: Int64, isSuccess: Bool) -> Outcome {
        guard var entry = running.removeValue(forKey: sequence) else { return .done }
        Self.decrease(&runningByOwner, entry.event.owner)
        let lane = Lane(entry.event)
        if isSuccess || entry.failures >= retries {
            busy.remove(lane)
            Self.decrease(&heldByOwner, entry.event.owner)
            return isSuccess ? .done : .givenUp
        }
        entry.failures += 1
        lanes[lane, default: []].insert(entry, at: 0)
        waitingCount += 1
        return .retry(after: min(longestDelay, Double(1 << min(entry.failures - 1, 16))))
    }

    private static func decrease(_ counts: inout [UInt32?: Int], _ owner: UInt32?) {
        guard let count = counts[owner] else { return }
        counts[owner] = count > 1 ? count - 1 : nil
    }

    /// Lets an event that has failed be handled again.
    public mutating func isDue(_ event: TaskEvent) { busy.remove(Lane(event)) }
}
