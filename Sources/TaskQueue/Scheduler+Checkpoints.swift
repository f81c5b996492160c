import Logging
import TaskModel
import TaskStore
import Transfer

extension Scheduler {
    /// Checkpoints under way at which no more begin for having fallen due by time: each takes some 10 KiB.
    private static let checkpointsAtOnce = 128

    /// Begins checkpoints that are due, as many as may be under way.
    func beginDueCheckpoints() {
        while checkpointsUnderWay < Self.checkpointsAtOnce, let id = dueCheckpoints.popLast() { checkpoint(id) }
    }

    /// Brings a download's bytes to the disk, then says so in the store.
    func checkpoint(_ id: TaskID) {
        guard let task = running[id], !task.isConcluding, task.checkpoint == nil,
            let request = task.request as? DownloadRequest, request.needsCheckpoint || task.owesCheckpoint
        else { return }
        task.lastCheckpoint = clock.monotonic()
        checkpointsUnderWay += 1
        task.checkpoint = Task {
            let isWritten = await writeCheckpoint(id, task, request)
            checkpointsUnderWay -= 1
            task.checkpoint = nil
            task.owesCheckpoint = !isWritten
            // One that fell due meanwhile was passed over.
            if isWritten, request.unsyncedBytes >= Self.checkpointBytes { checkpoint(id) }
            beginDueCheckpoints()
        }
    }

    /// Notes what an upload sends: later attempts send the same, or nothing.
    func keep(_ source: SourceIdentity, of id: TaskID) {
        guard let task = running[id] else { return }
        let isKnown = task.work.resumeData.flatMap { SourceIdentity(bytes: $0, for: task.record.specification) } != nil
        task.source = source
        if isKnown { return }
        let record = task.record
        let progress = TaskProgress(
            bytesDone: record.bytesDone, bytesTotal: record.bytesTotal, bytesFetched: record.bytesFetched,
            startedAt: record.startedAt ?? task.startedAt, resumeData: source.bytes)
        task.checkpoint = Task {
            do throws(StoreError) {
                _ = try await store.write([.checkpoint(id, progress)], now: clock.now())
            } catch {
                // Its end is written down with it.
                logger.error("cannot note the source of an upload", metadata: ["task": "\(id)", "error": "\(error)"])
            }
            task.checkpoint = nil
        }
    }

    /// - Returns: whether the store has it.
    private func writeCheckpoint(_ id: TaskID, _ task: RunningTask, _ request: DownloadRequest) async -> Bool {
        let resumeData: ResumeData?
        do throws(TransferError) {
            resumeData = try await request.checkpoint()
        } catch {
            // What the kernel held may be gone: only what an earlier sync covered counts. Ended here, the task comes
            // back with that.
            logger.error("a checkpoint failed", metadata: ["task": "\(id)", "error": "\(error)"])
            task.order = task.order ?? .release
            request.cancel()
            return true
        }
        guard let resumeData, !resumeData.bytes.isEmpty else { return true }
        let progress = TaskProgress(
            bytesDone: resumeData.ranges.count, bytesTotal: request.progress.totalBytes,
            bytesFetched: task.bytesFetched, startedAt: task.record.startedAt ?? task.startedAt,
            resumeData: resumeData.bytes)
        do throws(StoreError) {
            _ = try await store.write([.checkpoint(id, progress)], now: clock.now())
        } catch {
            logger.error("cannot write a checkpoint", metadata: ["task": "\(id)", "error": "\(error)"])
            return false
        }
        request.confirm(resumeData)
        return true
    }
}
