/// A queue of timers, the earliest first: a binary heap in which a cancelled entry stays until it reaches the top.
struct TimerQueue {
    private struct Entry {
        var deadline: MonotonicTime
        var id: Int
    }

    private var heap: [Entry] = []
    private var actions: [Int: () -> Void] = [:]

    mutating func add(_ id: Int, at deadline: MonotonicTime, _ action: @escaping () -> Void) {
        actions[id] = action
        heap.append(Entry(deadline: deadline, id: id))
        var child = heap.count - 1
        while child > 0, heap[child].deadline < heap[(child - 1) / 2].deadline {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func cancel(_ id: Int) {
        guard actions.removeValue(forKey: id) != nil else { return }
        // Cancelled entries must not outnumber the remaining ones by far.
        if heap.count > 64, heap.count > actions.count * 4 { rebuild() }
    }

    /// The number of entries, including cancelled ones.
    var count: Int { heap.count }

    /// Returns the earliest deadline.
    mutating func next() -> MonotonicTime? {
        while let top = heap.first, actions[top.id] == nil { removeTop() }
        return heap.first?.deadline
    }

    /// - Returns: an action that is due at `now`.
    mutating func take(dueAt now: MonotonicTime) -> (() -> Void)? {
        guard let due = next(), due <= now, let id = heap.first?.id else { return nil }
        removeTop()
        return actions.removeValue(forKey: id)
    }

    private mutating func removeTop() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].deadline < heap[least].deadline {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private mutating func rebuild() {
        heap = heap.filter { actions[$0.id] != nil }.sorted { $0.deadline < $1.deadline }
    }
}
