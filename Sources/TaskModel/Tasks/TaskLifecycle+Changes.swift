extension TaskLifecycle {
    /// Returns the lifecycle of a task after a user changed its options. A running task is treated as `queued`, its
    /// stored state.
    ///
    /// - A task that failed, or that waits for a retry or the network, continues after a change of its URL, mirrors or
    ///   digest.
    /// - A task that is paused with `url-expired` or `auth` also continues after a change of its headers, user or
    ///   password.
    /// - An upload paused with `source-changed` continues after a change of its URL, and sends the source as it is
    ///   then.
    /// - A start time delays a task that would otherwise start earlier, and so does another task to wait for. Without the
    ///   latter a task that waits for one continues.
    /// - A task that a user paused stays paused.
    ///
    /// - Parameter startAt: the task's start time after the changes.
    /// - Throws: ``IllegalTransition`` where the task is completed or cancelled.
    public func updated(
        by changes: TaskChanges, startAt: Milliseconds? = nil, now: Milliseconds
    ) throws(IllegalTransition) -> TaskLifecycle {
        var lifecycle = self
        try lifecycle.apply(.update)
        switch changes.afterTask {
        case .set? where state == .queued || state == .active || state == .waiting:
            return TaskLifecycle(follows: true)
        case .takeBack? where state == .waiting && reason == .dependency:
            return TaskLifecycle(startAt: startAt, now: now)
        default: break
        }
        let isFreed =
            switch (state, reason) {
            case (.failed, _), (.waiting, .retry), (.waiting, .network): changes.isOfSource
            case (.paused, .urlExpired), (.paused, .auth): changes.isOfSource || changes.isOfAccess
            case (.paused, .sourceChanged): changes.url != nil
            case (.waiting, .scheduled): changes.startAt != nil
            default: false
            }
        let waitsForHour = state == .waiting && (reason == .scheduled || reason == .dependency)
        let mayStart = state == .queued || state == .active || (state == .waiting && !waitsForHour)
        guard isFreed || (mayStart && changes.startAt != nil) else { return lifecycle }
        let later = TaskLifecycle(startAt: changes.startAt?.value, now: now)
        // A task that waits for something other than its start time continues to wait for it, unless a later start time
        // is set.
        return isFreed || later.state == .waiting ? later : lifecycle
    }
}
