import TaskModel

/// The events whose command has not yet succeeded, and the order in which the commands run.
///
/// A value without I/O and clock. The events of one task, or of one batch, run one after the other in the order of their
/// numbers; others run at once, as far as there are jobs.
struct HookQueue {
    /// What follows the end of a command.
    enum Outcome: Equatable {
        case done
        /// The command runs again after a number of seconds.
        case retry(after: Double)
        /// The command has failed too often.
        case givenUp
    }

    /// An event, and how often its command has failed.
    struct Entry: Equatable {
        var event: TaskEvent
        var failures = 0
    }

    private enum Lane: Hashable {
        case task(TaskID)
        case batch(UInt32?, String?)

        init(_ event: TaskEvent) {
            self = event.id.map { .task($0) } ?? .batch(event.owner, event.batch)
        }
    }

    /// The maximum number of events that are held.
    static let capacity = 1_000
    /// The maximum time in seconds between two attempts.
    static let longestDelay: Double = 60

    private let jobs: Int
    private let retries: Int
    /// The waiting events of each lane, the next one first.
    private var lanes: [Lane: [Entry]] = [:]
    /// The events whose command runs.
    private var running: [Int64: Entry] = [:]
    /// The lanes of which a command runs, or waits for its next attempt.
    private var busy: Set<Lane> = []
    private var waitingCount = 0
    /// The number of the last event that was added or passed over.
    private(set) var lastSeen: Int64

    /// - Parameters:
    ///   - jobs: the maximum number of commands at once.
    ///   - retries: the maximum number of further attempts after a failure.
    ///   - position: the event after which the events start.
    init(jobs: Int, retries: Int, after position: Int64) {
        self.jobs = jobs
        self.retries = retries
        lastSeen = position
    }

    var hasRoom: Bool { waitingCount + running.count < Self.capacity }
    var isIdle: Bool { running.isEmpty }
    var isEmpty: Bool { waitingCount == 0 && running.isEmpty }

    /// The number of the event up to which every event is done.
    var position: Int64 {
        let pending = lanes.values.lazy.compactMap { $0.first?.event.sequence } + running.keys
        return pending.min().map { $0 - 1 } ?? lastSeen
    }

    mutating func add(_ event: TaskEvent) {
        lastSeen = max(lastSeen, event.sequence)
        lanes[Lane(event), default: []].append(Entry(event: event))
        waitingCount += 1
    }

    /// Records that an event needs no command.
    mutating func skip(_ sequence: Int64) { lastSeen = max(lastSeen, sequence) }

    /// Takes the event with the lowest number whose command may start; `nil` if there is none.
    mutating func next() -> Entry? {
        guard running.count < jobs else { return nil }
        var chosen: (lane: Lane, entry: Entry)?
        for (lane, entries) in lanes where !busy.contains(lane) {
            guard let first = entries.first, first.event.sequence < chosen?.entry.event.sequence ?? .max else {
                continue
            }
            chosen = (lane, first)
        }
        guard let (lane, entry) = chosen else { return nil }
        busy.insert(lane)
        running[entry.event.sequence] = entry
        lanes[lane]?.removeFirst()
        if lanes[lane]?.isEmpty == true { lanes[lane] = nil }
        waitingCount -= 1
        return entry
    }

    /// Records the end of a command.
    mutating func ended(_ sequence: Int64, isSuccess: Bool) -> Outcome {
        guard var entry = running.removeValue(forKey: sequence) else { return .done }
        let lane = Lane(entry.event)
        if isSuccess || entry.failures >= retries {
            busy.remove(lane)
            return isSuccess ? .done : .givenUp
        }
        entry.failures += 1
        lanes[lane, default: []].insert(entry, at: 0)
        waitingCount += 1
        return .retry(after: min(Self.longestDelay, Double(1 << min(entry.failures - 1, 6))))
    }

    /// Lets a command that has failed run again.
    mutating func isDue(_ event: TaskEvent) { busy.remove(Lane(event)) }
}
