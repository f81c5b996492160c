import TaskModel

/// The statuses of all running tasks. Subscribers that ask at about the same time share one inquiry, so that many of
/// them cost the scheduler no more than one.
actor SharedProgress {
    /// The time in milliseconds for which an answer is used again.
    static let age: Milliseconds = 100

    private let clock: QueueClock
    private let inquire: @Sendable () async -> [TaskStatus]
    private var last: (at: Milliseconds, generation: Int, statuses: [TaskStatus])?
    private var inquiry: (generation: Int, task: Task<[TaskStatus], Never>)?

    /// - Parameter inquire: returns the status of each running task.
    init(clock: QueueClock, inquire: @escaping @Sendable () async -> [TaskStatus]) {
        self.clock = clock
        self.inquire = inquire
    }

    /// Returns the statuses of a user's running tasks, or those of all users.
    ///
    /// - Parameter generation: the generation of the journal that the subscriber has read.
    func statuses(owner: UInt32?, generation: Int) async -> [TaskStatus] {
        func own(_ statuses: [TaskStatus]) -> [TaskStatus] {
            owner.map { owner in statuses.filter { $0.owner == owner } } ?? statuses
        }
        // A subscriber that hears that nothing of its own runs does not ask again before the next event. So that answer
        // must not be older than the last event.
        if let last, clock.monotonic() - last.at < Self.age {
            let found = own(last.statuses)
            if !found.isEmpty || last.generation == generation { return found }
        }
        if let inquiry {
            let found = own(await inquiry.task.value)
            if !found.isEmpty || inquiry.generation == generation { return found }
        }
        return own(await inquireAnew(generation))
    }

    private func inquireAnew(_ generation: Int) async -> [TaskStatus] {
        let now = clock.monotonic()
        let task = Task { await inquire() }
        inquiry = (generation, task)
        let statuses = await task.value
        if inquiry?.task == task { inquiry = nil }
        last = (now, generation, statuses)
        return statuses
    }
}
