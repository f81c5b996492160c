import TaskModel
import TaskStore

/// Memory for one page of events, which a subscriber asks for before it reads one: thousands may read at once.
package struct EventRoom: Sendable {
    /// Returns when there is room; `false`: nobody reads any more.
    let take: @Sendable () async -> Bool
    /// The page was empty.
    let giveBack: @Sendable () -> Void

    package init(take: @escaping @Sendable () async -> Bool, giveBack: @escaping @Sendable () -> Void) {
        self.take = take
        self.giveBack = giveBack
    }

    package static let unlimited = EventRoom(take: { true }, giveBack: {})
}

/// Tells subscribers what the journal says: each has a place in it and reads on from there, so that replay and live
/// events are one thing, in order, with nothing lost or doubled, however slow the subscriber.
package actor EventHub {
    private let store: TaskStore
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextNumber = 0
    private var generation = 0

    /// Events read from the journal at a time.
    private static let page = 256

    package init(store: TaskStore) {
        self.store = store
    }

    /// The journal has grown.
    package func notify() {
        generation += 1
        let woken = waiting
        waiting = [:]
        for continuation in woken.values { continuation.resume() }
    }

    /// - Parameters:
    ///   - sequence: what the subscriber has seen; `nil`: only what comes from now on.
    ///   - types: only these, and gaps; `nil`: all.
    ///   - owner: whose tasks it may see; `nil`: everyone's.
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

    /// Returns when the journal has grown since `seen`, or the Swift task is cancelled.
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

    /// One subscriber's place in the journal.
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
                    guard await room.take() else { return nil }
                    guard let page = try? page() else { return nil }
                    if let last = page.last {
                        sequence = last.sequence
                        return page
                    }
                    room.giveBack()
                    // None of these is this one's to hear; the next reading begins behind them.
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

        /// - Returns: what says that some of what this one may see was let go of before it could be told; its number is
        ///   before the next one that is told.
        private func gap(before first: TaskEvent?) -> TaskEvent? {
            // `sequence` is a client's and may be any number: nothing is reckoned with it.
            guard let trimmed = try? store.lastTrimmedEvent(owner: owner), trimmed > max(0, sequence) else {
                return nil
            }
            let number = first.map { min(trimmed, $0.sequence.subtractingClamped(1)) } ?? trimmed
            return TaskEvent(sequence: max(number, sequence), at: first?.at ?? 0, type: .gap)
        }
    }
}
