import HeapModule

/// A queue of timers, the earliest first: a heap in which a cancelled entry stays until it reaches the top, since a
/// heap cannot find the entry of a timer.
struct TimerQueue {
    private struct Entry: Comparable {
        var deadline: MonotonicTime
        var id: Int

        static func < (one: Entry, other: Entry) -> Bool {
            (one.deadline, one.id) < (other.deadline, other.id)
        }
    }

    private var heap = Heap<Entry>()
    private var actions: [Int: () -> Void] = [:]

    mutating func add(_ id: Int, at deadline: MonotonicTime, _ action: @escaping () -> Void) {
        actions[id] = action
        heap.insert(Entry(deadline: deadline, id: id))
    }

    mutating func cancel(_ id: Int) {
        guard actions.removeValue(forKey: id) != nil else { return }
        // Cancelled entries must not outnumber the remaining ones by far.
        if heap.count > 64, heap.count > actions.count * 4 {
            heap = Heap(heap.unordered.lazy.filter { [actions] in actions[$0.id] != nil })
        }
    }

    /// The number of entries, including cancelled ones.
    var count: Int { heap.count }

    /// Returns the earliest deadline.
    mutating func next() -> MonotonicTime? {
        while let top = heap.min, actions[top.id] == nil { heap.removeMin() }
        return heap.min?.deadline
    }

    /// - Returns: an action that is due at `now`.
    mutating func popDue(at now: MonotonicTime) -> (() -> Void)? {
        guard let due = next(), due <= now else { return nil }
        return actions.removeValue(forKey: heap.removeMin().id)
    }
}
