import Curl

/// The execution of an upload task with a file server according to an ``UploadPlan``.
///
/// Used on the loop's thread only.
final class RemoteUploadRun: RemoteRun, RemoteExchangeClient {
    private(set) lazy var exchange = RemoteExchange(file, task: task, client: self, core: core)
    private let task: DataTask
    private let file: RemoteFile
    private let temporary: RemotePath
    private let session: Session
    private unowned let core: LoopCore
    private let sender: BodySender

    private var plan: UploadPlan
    private let remains: UploadRemains
    /// The comparison of the partial upload with the file.
    private var comparison = UploadPlan.Event.Comparison.different
    private var isComplete = false

    init(task: DataTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        self.file = file
        self.core = core
        session = task.session
        remains = task.session.delegate.uploadRemains(of: task) ?? UploadRemains()
        temporary = file.path.temporary(token: remains.token)
        sender = BodySender(task.body)
        plan = UploadPlan(
            length: sender.length, hasRemains: remains.isLeft,
            mayMakeDirectories: task.originalRequest.createsRemoteDirectories && !file.path.directoryCreations.isEmpty)
        let run = RunReference(self, of: task, on: core)
        sender.moreToSend = { run.perform { $0.exchange.resume(after: .source) } }
    }

    func start() { perform(plan.step) }

    func cancel() {
        // The remains of a failed upload are removed nevertheless, but the caller does not wait for that.
        if case .cleanUp = plan.step { complete(.cancelled) } else { exchange.cancel() }
    }

    private func perform(_ step: UploadPlan.Step) {
        switch step {
        case .finish: return end(nil)
        case .fail(let error, let leavesRemains):
            remains.isLeft = leavesRemains
            return end(error)
        // A cancelled task does not wait for the server.
        case .cleanUp(let error): if error.code == .cancelled { complete(error) }
        case .compareRemains(let offset): comparison = .equal(upTo: offset)
        case .measureRest, .storeAside, .makeDirectories, .measureWhole, .rename, .replace, .storeDirectly: break
        }
        let place = UploadPlan.Step.Place(
            path: file.path, temporary: temporary, length: sender.length, mayHaveRemains: remains.mayBeThere)
        guard let remote = step.remoteStep(place) else { return }
        if case .store(_, let offset) = remote.work {
            do throws(TransferError) {
                task.progress.setTotal(sender.length)
                task.progress.setCompleted(offset)
                task.core.bodySent(offset)
                try sender.begin()
            } catch {
                return end(error)
            }
        }
        exchange.begin(remote)
    }

    /// Whether a later attempt can continue the partial upload. Only over SFTP does libcurl append to files without
    /// withholding information that the server needs (`CURLOPT_RESUME_FROM_LARGE`).
    private var mayLeaveRemains: Bool {
        guard file.scheme == .sftp, sender.canBegin(at: 1) else { return false }
        return session.delegate.mayRetry(task) ?? false
    }

    // MARK: The file

    func fill(_ space: UnsafeMutableRawBufferPointer) -> RemoteFillVerdict {
        do throws(TransferError) {
            return try sender.fill(space, of: task, progress: task.progress).map { .filled($0) } ?? .paused(.source)
        } catch {
            return .failed(error)
        }
    }

    func rewind(to offset: Int64) -> Bool {
        task.progress.setCompleted(offset)
        return sender.rewind(to: offset)
    }

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        guard case .equal(let offset) = comparison, sender.holds(bytes, at: offset) else {
            comparison = .different
            return .refused(TransferError(.remoteChanged, "the file's bytes on the server differ"))
        }
        comparison = .equal(upTo: offset + Int64(bytes.count))
        return .accepted
    }

    func evaluate(storedSize: Int64) -> TransferError? {
        guard storedSize != sender.sent else { return nil }
        return TransferError(.truncated, "\(file.host) has \(storedSize) of the \(sender.sent) bytes that were sent")
    }

    // MARK: The end

    func didEnd(_ ending: RemoteEnding) {
        plan.mayLeaveRemains = mayLeaveRemains
        perform(
            plan.next(
                UploadPlan.Event(ending, of: plan.step, isSentWhole: sender.isComplete, comparison: comparison)))
    }

    private func end(_ error: TransferError?) {
        task.endRun(on: core)
        complete(error)
    }

    private func complete(_ error: TransferError?) {
        guard !isComplete else { return }
        isComplete = true
        sender.stop()
        if error == nil { remains.isLeft = false }
        session.resources.networkEnded(task.core)
        session.complete(task, error)
    }
}
