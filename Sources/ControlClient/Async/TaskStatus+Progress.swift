import TaskModel

extension TaskStatus {
    /// Takes over the values of an event of type `progress`.
    ///
    /// A status is often newer than the events that arrive after it, since they were on their way when it was read. An
    /// event that reports fewer bytes is therefore not applied: the task may also have begun anew.
    ///
    /// - Returns: `false` if the event does not follow this status. The status has to be read again then.
    mutating func advance(by event: TaskEvent) -> Bool {
        guard state == event.state, let progress = event.progress, let done = event.bytesDone, done >= bytesDone else {
            return false
        }
        bytesDone = done
        bytesTotal = event.bytesTotal ?? bytesTotal
        rate = progress.rate
        eta = progress.eta
        // The event does not tell these; whoever shows them reads the task.
        idleSince = nil
        reconnectsAt = nil
        connections = progress.connections
        return true
    }
}
