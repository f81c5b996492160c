import Logging
import TaskModel
import TaskStore
import Transfer

extension Scheduler {
    /// Starts due checkpoints, up to the limit of concurrent ones.
    func beginDueCheckpoints() {
        while let id = checkpoints.next() { checkpoint(id) }
    }

    /// Syncs a download's bytes to disk (fsync), then records them in the store.
    func checkpoint(_ id: TaskID) {
        guard let task = running[id], !task.lifecycle.hasEnded, let request = task.request as? DownloadRequest,
            task.checkpoints.mayBegin(hasNews: request.needsCheckpoint)
        else { return }
        checkpoints.began()
        let checkpoint = Task {
            let isWritten = await writeCheckpoint(id, task, request)
            checkpoints.ended()
            task.checkpoints.end(isWritten: isWritten)
            // A checkpoint that became due meanwhile was skipped.
            if isWritten, request.unsyncedBytes >= CheckpointQueue.bytes { self.checkpoint(id) }
            beginDueCheckpoints()
        }
        task.checkpoints.begin(checkpoint, now: clock.monotonic())
    }

    /// Records the identity of an upload's source, together with the start of its run. Later attempts send the same
    /// source or nothing.
    func record(_ source: SourceIdentity, of id: TaskID) {
        guard let task = running[id] else { return }
        let isKnown = task.work.resumeData.flatMap { SourceIdentity(bytes: $0, for: task.record.specification) } != nil
        task.source = source
        if isKnown { return }
        let record = task.record
        starts.add(
            TaskProgress(
                bytesDone: record.bytesDone, bytesTotal: record.bytesTotal, bytesFetched: record.bytesFetched,
                startedAt: record.startedAt ?? task.startedAt, resumeData: source.bytes),
            of: id)
    }

    /// Writes a checkpoint.
    ///
    /// - Returns: Whether the store has accepted it.
    private func writeCheckpoint(_ id: TaskID, _ task: RunningTask, _ request: DownloadRequest) async -> Bool {
        let resumeData: ResumeData?
        do throws(TransferError) {
            let began = ContinuousClock.now
            resumeData = try await request.checkpoint()
            if resumeData != nil { metrics.sync.record(since: began) }
        } catch {
            // After a failed fsync, cached data may be lost, so only bytes covered by an earlier fsync count. The run
            // is ended here, and the task restarts from those bytes.
            logger.error("a checkpoint failed", metadata: ["task": "\(id)", "error": "\(error)"])
            task.lifecycle.checkpointFailed()
            request.cancel()
            return true
        }
        guard let resumeData else { return true }
        let bytes = task.checkpoints.encoder.bytes(of: resumeData)
        guard !bytes.isEmpty else { return true }
        let progress = TaskProgress(
            bytesDone: resumeData.ranges.count, bytesTotal: request.progress.totalBytes,
            bytesFetched: task.bytesFetched, startedAt: task.record.startedAt ?? task.startedAt,
            resumeData: bytes)
        do throws(StoreError) {
            try await store.write([.checkpoint(id, progress)], now: clock.now())
        } catch {
            logger.error("cannot write a checkpoint", metadata: ["task": "\(id)", "error": "\(error)"])
            return false
        }
        request.confirm(resumeData)
        return true
    }
}
