import Curl

/// An upload task at work with a file server: carries out an ``UploadPlan``.
///
/// Lives on its loop's thread.
final class RemoteUploadRun: RemoteRun, RemoteExchangeClient {
    private(set) lazy var exchange = RemoteExchange(file, task: task, client: self, core: core)
    private let task: DataTask
    private let file: RemoteFile
    private let temporary: RemotePath
    private let session: Session
    private unowned let core: LoopCore
    private let sender: BodySender

    private var plan = UploadPlan()
    private var isComplete = false

    init(task: DataTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        self.file = file
        self.core = core
        session = task.session
        temporary = file.path.temporary(token: String(UInt64.random(in: 0...UInt64.max), radix: 16))
        let (loop, number) = (task.session.loop(for: task), task.identifier)
        sender = BodySender(task.body) {
            loop.post { core in (core.client(number) as? RemoteUploadRun)?.exchange.resume(.source) }
        }
    }

    func start() { go(plan.step) }

    func cancel() {
        // What is left of a failed upload is removed all the same; nobody has to wait for that.
        if case .cleanUp = plan.step { complete(.cancelled) } else { exchange.cancel() }
    }

    private func go(_ step: UploadPlan.Step) {
        switch step {
        case .storeAside:
            store(as: temporary, before: [], after: temporary.sizeQuestion + temporary.renaming(to: file.path))
        case .replace:
            let commands = [file.path.removal(mayFail: file.scheme.isFTP)] + temporary.renaming(to: file.path)
            exchange.begin(RemoteStep(work: .command, commandsBefore: commands))
        case .storeDirectly:
            store(as: file.path, before: [temporary.removal(mayFail: true)], after: file.path.sizeQuestion)
        case .cleanUp(let error):
            // Whoever cancelled is not to wait for the server.
            if error.code == .cancelled { complete(error) }
            exchange.isTidyingUp = true
            exchange.begin(
                RemoteStep(work: .command, commandsBefore: [temporary.removal(mayFail: true)]))
        case .finish: end(nil)
        case .fail(let error): end(error)
        }
    }

    private func store(as path: RemotePath, before: [[UInt8]], after: [[UInt8]]) {
        do throws(TransferError) {
            task.progress.setTotal(sender.length)
            task.progress.setCompleted(0)
            try sender.begin()
        } catch {
            return end(error)
        }
        exchange.begin(
            RemoteStep(
                work: .store(length: sender.length), path: path, commandsBefore: before, commandsAfter: after))
    }

    // MARK: The file

    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict {
        do throws(TransferError) {
            guard let count = try sender.fill(space) else {
                exchange.pause(.source)
                return .paused
            }
            task.progress.transferred(count)
            task.progress.setCompleted(sender.sent)
            session.delegate.task(task, didSendBodyData: Int64(count), total: sender.sent, expected: sender.length)
            return .filled(count)
        } catch {
            exchange.failure = error
            return .failed
        }
    }

    func rewind(to offset: Int64) -> Bool {
        task.progress.setCompleted(offset)
        return sender.rewind(to: offset)
    }

    func judge(storedSize: Int64) -> Bool {
        guard storedSize != sender.sent else { return true }
        exchange.failure = TransferError(
            .truncated, "\(file.host) has \(storedSize) of the \(sender.sent) bytes that were sent")
        return false
    }

    // MARK: The end

    func didEnd(_ ending: RemoteEnding) { go(plan.next(event(ending))) }

    private func event(_ ending: RemoteEnding) -> UploadPlan.Event {
        let isStoring = plan.step == .storeAside || plan.step == .storeDirectly
        guard let error = ending.error else {
            guard !isStoring || sender.isComplete else {
                return .failed(TransferError(.truncated, "the server ended before it had the whole file"), begun: true)
            }
            return .done
        }
        if ending.isCommandRefused { return .commandRefused }
        if ending.isNameRefused { return .nameRefused(error) }
        return .failed(error, begun: exchange.bodyBegun || !isStoring)
    }

    private func end(_ error: TransferError?) {
        core.release(task.identifier)
        complete(error)
    }

    private func complete(_ error: TransferError?) {
        guard !isComplete else { return }
        isComplete = true
        sender.stop()
        session.networkEnded()
        session.complete(task, error)
    }
}
