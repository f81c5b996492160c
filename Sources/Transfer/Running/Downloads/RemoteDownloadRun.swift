import Curl

/// The performer of ``RemoteDownloadStateMachine``: the execution of a download task with a file server.
///
/// Used on the loop's thread only. ``BodyWriter`` determines where bytes are written.
final class RemoteDownloadRun: RemoteRun, RemoteExchangeClient, DownloadTaskRun {
    private(set) lazy var exchange = RemoteExchange(remote, task: task, client: self, core: core)
    private let task: DownloadTask
    private let remote: RemoteFile
    private let session: Session
    private unowned let core: LoopCore
    let file: DownloadFile
    private let writer: BodyWriter
    private var machine: RemoteDownloadStateMachine
    private var destination: FileDestination?
    /// The offset from which the file was last requested.
    private var requestedOffset: Int64 = 0

    init(task: DownloadTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        remote = file
        self.core = core
        session = task.session
        self.file = DownloadFile(task: task, core: core)
        writer = BodyWriter(file: self.file)
        let request = task.originalRequest
        let resource = ResumeData.resource(of: request.url)
        machine = RemoteDownloadStateMachine(
            RemoteDownloadStateMachine.Configuration(
                resource: resource, host: file.host, path: file.path.text,
                maximumSize: request.maximumBodySize ?? .max, hasMirrors: DownloadSources.hasMirrors(request),
                hasMismatch: !task.mismatches.isEmpty, isWrong: task.mismatches.wrong.contains(resource),
                leavesFailingSource: request.leavesFailingSource))
        self.file.run = self
    }

    func start() {
        do throws(TransferError) {
            try file.reopen()
        } catch {
            return perform(.fail(error))
        }
        perform(machine.begin(file.contents))
    }

    func confirm(_ count: Int64, of generation: String) {
        file.confirm(count, of: generation)
        if !file.isAhead { exchange.resume(after: .checkpoint) }
        checkInvariants()
    }

    func snapshot() -> DownloadSnapshot {
        let connection = DownloadSnapshot.Connection(
            address: peerAddress, first: requestedOffset, next: max(requestedOffset, writer.position),
            end: file.version.total, rate: 0)
        return DownloadSnapshot(connections: machine.isEnded ? [] : [connection], ranges: file.written)
    }

    /// Does nothing: the run has one connection.
    func mayBorrow(at origin: String) {}

    func flushGathered() -> BlockWriter? {
        if machine.isEnded { return nil }
        do throws(TransferError) {
            try writer.flush()
        } catch {
            diskDidMove(error)
        }
        return file.busyWriter
    }

    func diskDidMove(_ error: TransferError?) {
        if machine.isEnded { return }
        if let error { return perform(machine.diskFailed(error)) }
        if !writer.isBlocked { exchange.resume(after: .disk) }
        checkInvariants()
    }

    // MARK: Actions

    private func perform(_ action: RemoteDownloadAction) {
        if machine.isEnded { return }
        do throws(TransferError) {
            switch action {
            case .none: break
            case .learnDigest:
                try learnDigest()
                perform(machine.prepared(file.contents))
            case .findOffset(let known):
                let offset = try known.offset(have: file.front) { (overlap) throws(TransferError) in
                    try file.start(of: overlap)
                }
                perform(machine.offsetFound(offset))
            case .request(let offset, let reason):
                if let reason { dropPart(reason) }
                requestedOffset = offset
                exchange.begin(RemoteStep(work: .fetch(from: offset), path: remote.path))
            case .beginEmpty(let plan, let ending):
                try begin(plan)
                perform(.endBytes(ending))
            case .endBytes(let ending):
                try writer.endOfBody()
                perform(machine.bytesEnded(ending, at: writer.position))
            case .confirm:
                try writer.flush()
                exchange.begin(RemoteStep(work: .look, path: remote.path))
            case .checkDirectory:
                // A directory is listed. Its existence would prove nothing, because some servers normalise the path
                // and find a file.
                exchange.begin(RemoteStep(work: .fetch(from: 0), path: remote.path.asDirectory))
            case .abort(let error): exchange.cancel(error)
            case .switchToMirrors(let error):
                try writer.flush()
                switchToMirrors(after: error)
            case .complete: try complete()
            case .fail(let error): fail(error)
            }
        } catch {
            perform(machine.failed(error))
        }
    }

    private func learnDigest() throws(TransferError) {
        guard file.target != nil else { return }
        if !file.version.isJoined {
            guard try file.isDigestKnown() else { return }
        }
        destination = try file.place(ResourceMetadata(nil, file.version), total: file.version.total)
    }

    private func dropPart(_ reason: String) {
        session.delegate.downloadTask(task, didRestartBecause: reason)
        writer.drop()
        file.startOver()
    }

    /// Decides the destination, before the first byte is accepted.
    private func begin(_ plan: RemoteBodyPlan) throws(TransferError) {
        if plan.isJoining { file.join() }
        let claimed = plan.facts.version(of: task.originalRequest.url)
        destination = try file.place(ResourceMetadata(plan.facts.head, claimed), total: plan.facts.size)
        task.progress.setTotal(claimed.total)
        writer.begin(at: plan.offset, of: claimed)
        if file.front > 0 {
            session.delegate.downloadTask(task, didResumeAtOffset: file.front, expected: plan.facts.size)
        }
        machine.fileBegan(plan)
    }

    // MARK: The exchange

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        do throws(TransferError) {
            var action = machine.bytesReceived(bytes.count, at: writer.position)
            if case .begin = action {
                try begin(try machine.fileBegins(facts, file.contents))
                action = machine.bytesReceived(bytes.count, at: writer.position)
            }
            if let reason = writer.pause { return .paused(reason == .checkpoint ? .checkpoint : .disk) }
            if case .refuse(let error) = action { throw error }
            task.progress.transferred(bytes.count)
            try writer.append(bytes)
            if let error = machine.bytesAppended(upTo: writer.position) { throw error }
            return .accepted
        } catch {
            return .refused(error)
        }
    }

    func didEnd(_ ending: RemoteEnding) {
        perform(machine.stepEnded(ending, file.contents, at: writer.position))
        checkInvariants()
    }

    // MARK: The end

    /// Has the request's mirrors go on in the place of the file server.
    private func switchToMirrors(after error: TransferError) {
        machine.end()
        writer.release()
        let run = DownloadRun(task: task, core: core, file: file)
        let isSuspended = exchange.isPaused(for: .suspended)
        // The loop is about to release this run, and no other reference to it remains.
        withExtendedLifetime(self) {
            task.setRun(run, on: core)
            run.startWithMirrors(after: error, isSuspended: isSuspended)
        }
    }

    private func complete() throws(TransferError) {
        if destination == nil {
            destination = try file.place(ResourceMetadata(nil, file.version), total: nil)
        }
        let size = max(writer.position, file.front)
        let part = try file.complete(size: size, flushing: writer, to: destination) { [unowned self] in
            perform(.complete)
        }
        guard let part else { return }
        guard let destination else { throw TransferError(.internal, "a file without a destination") }
        if !task.mismatches.isEmpty { task.setSoleSource(task.originalRequest.url) }
        end()
        task.progress.setTotal(size)
        DownloadCompletion(task).publish(part, size: size, destination: destination, file.verification())
    }

    private func fail(_ error: TransferError) {
        // Writing buffered bytes may avoid fetching them again; a failure to write is ignored.
        if error.code != .remoteChanged { try? writer.flush() }
        let part = error.code == .remoteChanged ? nil : file.part
        let (version, writer) = (file.version, file.busyWriter)
        end()
        DownloadCompletion(task).fail(error, part: part, version: version, after: writer)
    }

    private func end() {
        machine.end()
        writer.release()
        task.endRun(on: core)
    }

    // MARK: Invariants

    /// Checks the invariants of ``RemoteDownloadStateMachine``, and that every pause has its owner, between two events
    /// and in debug builds. Never called from within libcurl's callbacks.
    private func checkInvariants(_ event: StaticString = #function) {
        assert(violation == nil, "\(event): \(violation ?? "")")
    }

    /// The invariant that does not hold; `nil` where all do.
    private var violation: String? {
        if machine.isEnded { return nil }
        if exchange.isPaused(for: .checkpoint), !file.isAhead { return "no checkpoint is due" }
        if exchange.isPaused(for: .disk), !writer.isBlocked { return "no block is on its way to the disk" }
        return machine.violation(file.contents, at: writer.position)
    }
}
