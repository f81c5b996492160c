package import TaskModel
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
    private let store: TaskStore
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextNumber = 0
    private var generation = 0

    /// The maximum number of events read from the journal at a time.
    private static let page = 256

    package init(store: TaskStore) {
        self.store = store
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
    ///   - types: the event types to deliver, in addition to gaps; `nil` for all types.
    ///   - owner: the uid whose tasks the subscriber may see; `nil` for the tasks of all users.
    package nonisolated func subscribe(
        after sequence: Int64?, types: Set<TaskEvent.Kind>? = nil, owner: UInt32?
    ) throws(StoreError) -> (last: Int64, pages: @Sendable (EventRoom) -> AsyncStream<[TaskEvent]>) {
        let last = try store.lastEvent()
        return (
            last,
            { [self, store] room in
                let reader = EventReader(
                    hub: self, store: store, after: sequence ?? last, types: types, owner: owner, room: room)
                return AsyncStream { await reader.next() }
            }
        )
    }

    /// Waits until the journal has grown since generation `seen`, or the Swift task is cancelled. Returns the current
    /// generation.
    fileprivate func changed(since seen: Int) async -> Int {
        guard generation == seen else { return generation }
        nextNumber += 1
        let number = nextNumber
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
        return generation
    }

    private func forget(_ number: Int) {
        waiting.removeValue(forKey: number)?.resume()
    }

    fileprivate var currentGeneration: Int { generation }

    /// The journal position of one subscriber.
    private actor EventReader {
        private let hub: EventHub
        private let store: TaskStore
        private let types: Set<TaskEvent.Kind>?
        private let owner: UInt32?
        private let room: EventRoom
        private var sequence: Int64
        private var hasLookedForGap = false

        init(
            hub: EventHub, store: TaskStore, after sequence: Int64, types: Set<TaskEvent.Kind>?, owner: UInt32?,
            room: EventRoom
        ) {
            self.hub = hub
            self.store = store
            self.sequence = sequence
            self.types = types
            self.owner = owner
            self.room = room
        }

        func next() async -> [TaskEvent]? {
            while !Task.isCancelled {
                let generation = await onSharedThreads { await hub.currentGeneration }
                guard let newest = try? store.lastEvent() else { return nil }
                if newest > sequence {
                    guard await room.acquire() else { return nil }
                    guard let page = try? page() else { return nil }
                    if let last = page.last {
                        sequence = last.sequence
                        return page
                    }
                    room.release()
                    // The subscriber may see none of these events. The next read starts after them.
                    sequence = max(sequence, newest)
                }
                _ = await onSharedThreads { await hub.changed(since: generation) }
            }
            return nil
        }

        private func page() throws -> [TaskEvent] {
            var page = try store.events(after: sequence, limit: EventHub.page, types: types, owner: owner)
            if !hasLookedForGap {
                hasLookedForGap = true
                if let gap = gap(before: page.first) { page.insert(gap, at: 0) }
            }
            return page
        }

        /// Returns a gap event where events that the subscriber may see were deleted before they were delivered. Its
        /// sequence number is lower than that of the next delivered event.
        private func gap(before first: TaskEvent?) -> TaskEvent? {
            // `sequence` comes from a client and may be any number, so no arithmetic is done with it.
            guard let trimmed = try? store.lastTrimmedEvent(owner: owner), trimmed > max(0, sequence) else {
                return nil
            }
            let number = first.map { min(trimmed, $0.sequence.subtractingClamped(1)) } ?? trimmed
            return TaskEvent(sequence: max(number, sequence), at: first?.at ?? 0, type: .gap)
        }
    }
}
