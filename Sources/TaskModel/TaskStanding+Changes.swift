extension TaskStanding {
    /// Where a task stands once a person changed what it asks for; one that runs counts as the ready one that it is
    /// stored as.
    ///
    /// A task that failed, that waits for its server or the network, or that needs a person's help with the server goes
    /// on by itself with another URL, other mirrors or another digest. Other header fields, another user or another
    /// password will do for one that needs help. An upload whose source changed goes to another URL as it is then. A time
    /// to start holds what would start before it. What a person paused stays so.
    ///
    /// - Throws: ``IllegalTransition`` where it is completed or cancelled.
    public func updated(by changes: TaskChanges, now: Milliseconds) throws(IllegalTransition) -> TaskStanding {
        var standing = self
        try standing.apply(.update)
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
        guard isFreed || (mayStart && changes.startAt != nil) else { return standing }
        let later = TaskStanding(startAt: changes.startAt?.value, now: now)
        // What waits for something else than an hour goes on waiting for it, where no later hour is named.
        return isFreed || later.state == .waiting ? later : standing
    }
}
