import Curl

/// The execution of an upload task with a file server according to an ``UploadPlan``.
///
/// Used on the loop's thread only.
final class RemoteUploadRun: RemoteRun, RemoteExchangeClient {
    private(set) lazy var exchange = RemoteExchange(file, task: task, client: self, core: core)
    private let task: DataTask
    private let file: RemoteFile
    private let temporary: RemotePath
    private let session: any TaskSession
    private unowned let core: LoopCore
    private let sender: BodySender

    private var plan: UploadPlan
    private let rest: UploadRest
    /// The number of bytes of the partial upload found equal to the file; `nil` after a difference.
    private var compared: Int64?
    private var isComplete = false

    init(task: DataTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        self.file = file
        self.core = core
        session = task.session
        rest = task.session.callbacks.uploadRest(of: task) ?? UploadRest()
        temporary = file.path.temporary(token: rest.token)
        let (loop, number) = (task.session.loop(for: task), task.identifier)
        sender = BodySender(task.body) {
            loop.post { core in (core.client(number) as? RemoteUploadRun)?.exchange.resume(after: .source) }
        }
        plan = UploadPlan(length: sender.length, hasRest: rest.isLeft)
    }

    func start() { go(plan.step) }

    func cancel() {
        // The remains of a failed upload are removed nevertheless, but the caller does not wait for that.
        if case .cleanUp = plan.step { complete(.cancelled) } else { exchange.cancel() }
    }

    private func go(_ step: UploadPlan.Step) {
        switch step {
        case .measureRest, .measureWhole: exchange.begin(RemoteStep(work: .look, path: temporary))
        case .compareRest(let offset):
            compared = offset
            exchange.begin(RemoteStep(work: .fetch(from: offset), path: temporary))
        case .storeAside(from: 0):
            // Remove the old file instead of overwriting it: an interrupted earlier attempt may still be writing to it.
            let removal = rest.mayBeThere ? [temporary.removal(mayFail: true)] : []
            store(as: temporary, before: removal, after: temporary.sizeQuestion + temporary.renaming(to: file.path))
        case .storeAside(let offset): store(as: temporary, from: offset, before: [], after: [])
        case .rename:
            exchange.begin(RemoteStep(work: .command, commandsBefore: temporary.renaming(to: file.path)))
        case .replace:
            let commands = [file.path.removal(mayFail: file.scheme.isFTP)] + temporary.renaming(to: file.path)
            exchange.begin(RemoteStep(work: .command, commandsBefore: commands))
        case .storeDirectly:
            store(as: file.path, before: [temporary.removal(mayFail: true)], after: file.path.sizeQuestion)
        case .cleanUp(let error):
            // A cancelled task does not wait for the server.
            if error.code == .cancelled { complete(error) }
            exchange.begin(
                RemoteStep(work: .command, commandsBefore: [temporary.removal(mayFail: true)], isCleanUp: true))
        case .finish: end(nil)
        case .fail(let error, let leavesRest):
            rest.isLeft = leavesRest
            end(error)
        }
    }

    private func store(as path: RemotePath, from offset: Int64 = 0, before: [[UInt8]], after: [[UInt8]]) {
        do throws(TransferError) {
            task.progress.setTotal(sender.length)
            task.progress.setCompleted(offset)
            try sender.begin()
        } catch {
            return end(error)
        }
        exchange.begin(
            RemoteStep(
                work: .store(length: sender.length, from: offset), path: path, commandsBefore: before,
                commandsAfter: after))
    }

    /// Whether a later attempt can continue the partial upload. Only over SFTP does libcurl append to files without
    /// withholding information that the server needs (`CURLOPT_RESUME_FROM_LARGE`).
    private var mayLeaveRest: Bool {
        guard file.scheme == .sftp, sender.canBegin(at: 1) else { return false }
        return session.callbacks.mayRetry(task) ?? false
    }

    // MARK: The file

    func fill(_ space: UnsafeMutableRawBufferPointer) -> RemoteFillVerdict {
        do throws(TransferError) {
            guard let count = try sender.fill(space) else { return .paused(.source) }
            task.progress.transferred(count)
            task.progress.setCompleted(sender.sent)
            session.callbacks.task(task, didSendBodyData: Int64(count), total: sender.sent, expected: sender.length)
            return .filled(count)
        } catch {
            return .failed(error)
        }
    }

    func rewind(to offset: Int64) -> Bool {
        task.progress.setCompleted(offset)
        return sender.rewind(to: offset)
    }

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        guard let offset = compared, sender.holds(bytes, at: offset) else {
            compared = nil
            return .refused(TransferError(.remoteChanged, "the file's bytes on the server differ"))
        }
        compared = offset + Int64(bytes.count)
        return .accepted
    }

    func judge(storedSize: Int64) -> TransferError? {
        guard storedSize != sender.sent else { return nil }
        return TransferError(.truncated, "\(file.host) has \(storedSize) of the \(sender.sent) bytes that were sent")
    }

    // MARK: The end

    func didEnd(_ ending: RemoteEnding) {
        plan.mayLeaveRest = mayLeaveRest
        go(plan.next(event(ending)))
    }

    private func event(_ ending: RemoteEnding) -> UploadPlan.Event {
        let isStoring = plan.step.isStoring
        switch plan.step {
        case .measureRest, .measureWhole:
            if ending.error == nil { return .measured(ending.facts.size) }
            if ending.error?.code == .notFound { return .measured(nil) }
        case .compareRest:
            if ending.error == nil || compared == nil { return .compared(size: compared) }
        default: break
        }
        guard let error = ending.error else {
            guard !isStoring || sender.isComplete else {
                return .failed(TransferError(.truncated, "the server ended before it had the whole file"), begun: true)
            }
            return .done
        }
        if ending.isCommandRefused { return .commandRefused }
        if ending.isNameRefused { return .nameRefused(error) }
        return .failed(error, begun: ending.bodyBegun || !isStoring)
    }

    private func end(_ error: TransferError?) {
        core.release(task.identifier)
        complete(error)
    }

    private func complete(_ error: TransferError?) {
        guard !isComplete else { return }
        isComplete = true
        sender.stop()
        if error == nil { rest.isLeft = false }
        session.resources.networkEnded()
        session.complete(task, error)
    }
}
