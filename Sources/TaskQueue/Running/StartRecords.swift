import TaskModel
import TaskStore

/// The starts of runs that are still to be recorded: their events, and the identities of uploads' sources.
///
/// They are recorded together, shortly after the first of them or with the result of a run. Otherwise each start of a
/// small file would need a commit.
struct StartRecords {
    /// The time in milliseconds for which a start may remain unrecorded.
    static let delay: Milliseconds = 100

    private struct Start {
        var id: TaskID
        var at: Milliseconds
        /// The number of the start, since many tasks start in the same millisecond.
        var number: Int
    }

    private var pending: [TaskID: Start] = [:]
    private var count = 0
    /// The first progress of uploads, with the identities of their sources. The result of a run contains it too.
    private var uploads: [TaskID: TaskProgress] = [:]
    /// Whether the recording of the pending starts is scheduled.
    private var isScheduled = false
    /// Whether a recording without a delay is scheduled.
    private var isUrgent = false
    /// The recording in progress. The results of these runs are recorded after it.
    private(set) var recording: Task<Void, Never>?

    /// Adds a start.
    ///
    /// - Returns: its number, which grows with each start.
    @discardableResult
    mutating func add(_ id: TaskID, at now: Milliseconds) -> Int {
        count += 1
        pending[id] = Start(id: id, at: now, number: count)
        return count
    }

    /// Adds an upload's progress with the identity of its source, which is recorded without a delay.
    mutating func add(_ progress: TaskProgress, of id: TaskID) { uploads[id] = progress }

    /// Records that a recording is scheduled.
    ///
    /// - Returns: the delay after which it begins, in milliseconds; `nil` if none is needed.
    mutating func schedule() -> Milliseconds? {
        if !uploads.isEmpty, !isUrgent {
            isUrgent = true
            return 0
        }
        guard !pending.isEmpty, !isScheduled, !isUrgent else { return nil }
        isScheduled = true
        return Self.delay
    }

    /// Removes the starts of runs whose results are to be recorded, with those before them, and returns them in their
    /// order. The first progress of these runs is dropped.
    mutating func drain(for ids: [TaskID]) -> [TaskChange] {
        if !uploads.isEmpty { for id in ids { uploads[id] = nil } }
        guard let last = ids.compactMap({ pending[$0]?.number }).max() else { return [] }
        let starts = pending.values.filter { $0.number <= last }
        for start in starts { pending[start.id] = nil }
        return changes(starts)
    }

    /// Removes the scheduled starts, and returns them in the order of their times, followed by the progress of uploads.
    mutating func drainScheduled() -> [TaskChange] {
        (isScheduled, isUrgent) = (false, false)
        defer { (pending, uploads) = ([:], [:]) }
        return changes(Array(pending.values))
            + uploads.sorted { $0.key < $1.key }.map { .checkpoint($0.key, $0.value) }
    }

    mutating func begin(_ recording: Task<Void, Never>) { self.recording = recording }

    /// Records the end of a recording. A later one may have begun, which waited for it.
    mutating func end(_ recording: Task<Void, Never>) {
        if self.recording == recording { self.recording = nil }
    }

    private func changes(_ starts: [Start]) -> [TaskChange] {
        starts.sorted { ($0.at, $0.number) < ($1.at, $1.number) }.map { .started($0.id, at: $0.at) }
    }
}
