/// The invariants of a download over several connections, checked after each event in debug builds.
///
/// 1. *Every connection's end is seen once.* A ``SegmentWorker`` asks again only after the end of what it asked before.
/// 2. *Every pause ends.* Each reason of a paused connection names who ends it: a timer (rate), the caller (suspended), a
///    checkpoint that is due (checkpoint), or blocks on their way to the disk (disk).
/// 3. *Bytes that were written are counted,* each once.
/// 4. *Bytes of two versions never meet.* Several connections ask one source, or a digest shows whether their bytes belong
///    together.
/// 5. *Connections stay within their limit.*
/// 6. *From every state some event leads to an end.* An exchange is under way, a timer or a slow disk will call back, or
///    the run has ended.
/// 7. *Nothing is asked for where nothing is missing.* ``DownloadRun`` sends every request through one place that looks.
/// 8. *Complete bytes are never thrown away.* Only bytes that were seen to be wrong, or an answer that replaces an
///    incomplete part, start the file over.
extension DownloadRun {
    /// Checks the invariants that can be read off the present state; in release builds it does nothing.
    ///
    /// To be called between events, never from within one of libcurl's callbacks.
    func checkInvariants(_ event: StaticString = #function) {
        assert(violation == nil, "\(event): \(violation ?? "")")
    }

    /// The invariant that does not hold; `nil` where all do.
    private var violation: String? {
        if isEnded { return workers.isEmpty ? nil : "connections outlive their run" }
        for worker in workers {
            if let reason = unownedPause(of: worker) { return "connection \(worker.number) is paused: \(reason)" }
        }
        if file.count != file.written.count { return "bytes are written and not counted" }
        if workers.count > task.originalRequest.segments.most { return "more connections than are allowed" }
        let sources = Set(workers.map(\.source.number))
        if sources.count > 1, !file.isJoinable, !file.version.isJoined {
            return "sources meet that nothing ties together"
        }
        let goesOn = workers.contains { $0.isUnderWay } || isWaiting || !file.isAtRest || file.isCompleting
        return goesOn ? nil : "no event will come"
    }

    /// The reason of a pause that nothing will end; `nil` where each has its owner.
    private func unownedPause(of worker: SegmentWorker) -> String? {
        let transaction = worker.transaction
        guard transaction.isUnderWay else { return nil }
        let pauses = transaction.pauses
        if pauses.contains(.rate), !transaction.isResting { return "no timer ends its rest" }
        if pauses.contains(.suspended), !isSuspended { return "the task is not suspended" }
        if pauses.contains(.checkpoint), !file.isAhead { return "no checkpoint is due" }
        if pauses.contains(.disk), !worker.writer.isBlocked { return "no block is on its way to the disk" }
        return nil
    }
}
