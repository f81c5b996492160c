import Logging
import TaskModel
import TaskStore
import Transfer

/// Starting tasks.
extension Scheduler {
    /// Starts a task, or the next request of a running one.
    func start(
        _ work: TaskWork, in place: TaskChooser.Place, _ maker: inout RequestMaker, found: Lookup.Answer? = nil
    ) {
        let record = work.record
        // The closures below keep the identifier for as long as the task runs, not the record.
        let (id, isUpdate) = (record.id, record.specification.update)
        let made: RequestMaker.Made
        do throws(TransferError) {
            made = try maker.make(work, found: found, share: try allowances.open(record))
        } catch {
            insert(work, in: place, nil)
            return post(.finished(RunEnding(work, failedBy: error)))
        }
        switch made {
        case .done(let path, let size, let isVerified):
            insert(work, in: place, nil)
            post(.finished(RunEnding(work, path: path, size: size, isVerified: isVerified)))
        case .lookup(let lookup):
            insert(work, in: place, lookup.request, counts: false)
            lookup.start { [weak self] result in
                switch result {
                case .success(let answer): self?.post(.found(id, answer))
                case .failure(let error): self?.post(.finished(RunEnding(work, failedBy: error)))
                }
            }
        case .download(let request):
            insert(work, in: place, request)
            request.onReceived { [weak self] in self?.post(.received(id)) }
            request.onCheckpointDue { [weak self] in
                Task { await self?.checkpoint(id) }
            }
            request.response(queue: .inline) { [weak self] response in
                var ending = RunEnding(id, of: request, error: nil)
                switch response.result {
                case .success(let file):
                    ending.path = file.path
                    ending.size = file.size
                    ending.report.isVerified = file.isVerified
                    ending.report.isUnchanged = isUpdate && file.wasPresent
                case .failure(let error):
                    ending.report.error = error
                    ending.resumeData = response.resumeData
                }
                self?.post(.finished(ending))
            }
            request.resume()
        case .upload(let upload):
            let request = upload.request
            insert(work, in: place, request)
            self.record(upload.source, of: id)
            request.response(queue: .inline) { [weak self] response in
                var ending = RunEnding(id, of: request, error: response.error)
                if response.error == nil { ending.size = request.mainProgress.totalBytes }
                self?.post(.finished(ending))
            }
            request.resume()
        }
    }

    /// Adds a task to the running ones, or gives a running task its next request.
    ///
    /// - Parameter counts: Whether the request's bytes are those of the file.
    private func insert(_ work: TaskWork, in place: TaskChooser.Place, _ request: Request?, counts: Bool = true) {
        let record = work.record
        let progress = counts ? request?.mainProgress : nil
        if let task = running[record.id] {
            // The task continues with another request.
            task.request = request
            task.manager = manager
            if let progress { task.progress = progress }
            return
        }
        let now = clock.now()
        let number = starts.add(record.id, at: now)
        metrics.started(record, at: now)
        running.insert(
            RunningTask(
                work: work, place: place, request: request, manager: manager,
                progress: progress
                    ?? TransferProgress(completedBytes: record.bytesDone, totalBytes: record.bytesTotal),
                startedAt: now, startNumber: number, monotonic: clock.monotonic()))
    }

    /// Records the starts of runs soon.
    func recordStartsSoon() {
        guard let delay = starts.schedule() else { return }
        Task {
            if delay > 0 { await clock.sleep(delay) }
            // Further starts join while an earlier recording is written.
            await starts.recording?.value
            let changes = starts.drainScheduled()
            if changes.isEmpty { return }
            logStarts(changes)
            let earlier = starts.recording
            let recording = Task {
                await earlier?.value
                await record(changes)
            }
            starts.begin(recording)
            await recording.value
            starts.end(recording)
        }
    }

    private func record(_ starts: [TaskChange]) async {
        do throws(StoreError) {
            // A start need not outlast a power failure: the task then starts again. The identity of a source does.
            let isLasting = starts.contains { if case .checkpoint = $0 { true } else { false } }
            try await store.write(starts, isLasting: isLasting, now: clock.now())
            eventsWritten()
        } catch {
            if error != .closed {
                logger.error(
                    "cannot record the starts of tasks, nor the sources of uploads", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Continues a running task after its lookup with the download of its file.
    func continueAfterLookup(_ id: TaskID, _ found: Lookup.Answer) {
        guard let task = running[id] else { return }
        switch task.lifecycle.afterLookup {
        case .none: break
        case .stop:
            task.foundChecksum = found.checksum
            post(.finished(RunEnding(task.work, failedBy: TransferError(.cancelled, "cancelled"))))
        case .download:
            task.foundChecksum = found.checksum
            var maker = makeRequests()
            start(task.work, in: task.place, &maker, found: found)
        }
    }
}
