import Curl

/// A download task at work with a file server: one step after another until the file is whole or nothing more can be
/// done.
///
/// Lives on its loop's thread. What the server says of the file is judged by ``RemoteFacts``; where bytes go is
/// ``BodyWriter``'s to say.
final class RemoteDownloadRun: RemoteRun, RemoteExchangeClient, ConfirmableRun, FileRun {
    private enum Phase {
        /// Before the first byte.
        case asking
        /// The bytes are the file's.
        case receiving(RemoteFacts)
        /// All bytes are here; whether they are all of one version is asked.
        case confirming(RemoteFacts)
        /// No byte came; whether that is since the path names a directory is asked.
        case suspecting(TransferError)
        case ended
    }

    private(set) lazy var exchange = RemoteExchange(remote, task: task, client: self, core: core)
    private let task: DownloadTask
    private let remote: RemoteFile
    private let session: Session
    private unowned let core: LoopCore
    let file: DownloadFile
    private let writer: BodyWriter

    private var phase = Phase.asking
    private var restarts = 0
    /// Of the step under way.
    private var offset: Int64 = 0
    private var destination: FileDestination?

    private static let restartLimit = 2
    /// Milliseconds that a step may take for which one look at the file's time, at its beginning, is enough: servers
    /// tell times in seconds.
    private static let confirmationThreshold: Int64 = 1000

    init(task: DownloadTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        remote = file
        self.core = core
        session = task.session
        self.file = DownloadFile(task: task, core: core)
        writer = BodyWriter(file: self.file)
    }

    func start() {
        do throws(TransferError) {
            try file.reopen()
        } catch {
            return fail(error)
        }
        // Every byte came in an earlier life.
        if let total = file.version.total, file.front == total, total > 0 {
            return confirm(RemoteFacts(file.version))
        }
        ask()
    }

    private func ask() {
        phase = .asking
        do throws(TransferError) {
            let known = try RemoteFacts(file.version).offset(have: file.front) { (overlap) throws(TransferError) in
                try file.start(of: overlap)
            }
            offset = known ?? 0
            if known == nil {
                tellRestart("what is here of the file cannot be told from another version")
                startOver()
            }
        } catch {
            return fail(error)
        }
        exchange.begin(RemoteStep(work: .fetch(from: offset), path: remote.path))
    }

    func confirm(_ count: Int64) {
        file.confirm(count)
        if !file.isAhead { exchange.resume(.checkpoint) }
    }

    func flushGathered() {
        if case .ended = phase { return }
        do throws(TransferError) {
            try writer.flush()
        } catch {
            diskDidMove(error)
        }
    }

    func diskDidMove(_ error: TransferError?) {
        if case .ended = phase { return }
        // What is under way is broken off first: its end leads on.
        if let error { return exchange.isUnderWay ? exchange.cancel(error) : broke(error) }
        if !writer.isBlocked { exchange.resume(.disk) }
    }

    // MARK: The file

    /// The server has said what it knows of the file, and no byte has been taken.
    private func begin(_ facts: RemoteFacts) throws(TransferError) {
        if file.front > 0 {
            let known = RemoteFacts(file.version)
            if let reason = known.difference(to: facts, isCompared: offset < file.front) {
                throw TransferError(.remoteChanged, reason)
            }
        }
        let maximum = task.originalRequest.maximumBodySize ?? .max
        if let size = facts.size, size > maximum {
            throw TransferError(.tooLarge, "the file has \(size) bytes, more than the \(maximum) allowed")
        }
        let claimed = facts.version(of: task.originalRequest.url)
        destination = try file.place(ResourceMetadata(facts.head, claimed), total: facts.size)
        task.progress.setTotal(claimed.total)
        writer.begin(at: offset, of: claimed)
        if file.front > 0 {
            session.delegate.downloadTask(task, didResumeAtOffset: file.front, expected: facts.size)
        }
        phase = .receiving(facts)
    }

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> BodyVerdict {
        do throws(TransferError) {
            if case .asking = phase { try begin(facts) }
            guard case .receiving(let facts) = phase else { return .refused }
            if file.isAhead {
                exchange.pause(.checkpoint)
                return .paused
            }
            if writer.isBlocked {
                exchange.pause(.disk)
                return .paused
            }
            if let size = facts.size, writer.position + Int64(bytes.count) > size {
                throw TransferError(.remoteChanged, "the server sends more than the \(size) bytes it spoke of")
            }
            task.progress.transferred(bytes.count)
            try writer.append(bytes)
            if let maximum = task.originalRequest.maximumBodySize, writer.position > maximum {
                throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
            }
            return .accepted
        } catch {
            exchange.failure = error
            return .refused
        }
    }

    // MARK: The end

    func didEnd(_ ending: RemoteEnding) {
        switch phase {
        case .ended: break
        case .confirming(let facts): confirmed(ending, facts)
        case .suspecting(let error): suspected(ending, error)
        case .asking, .receiving:
            if case .asking = phase, ending.isOfDirectory, let error = ending.error {
                phase = .suspecting(error)
                return exchange.begin(RemoteStep(work: .look, path: remote.path.asDirectory))
            }
            do throws(TransferError) {
                if let error = ending.error, !isWhole(in: error) { throw error }
                // No byte came: the file may be empty.
                if case .asking = phase { try begin(ending.facts) }
                guard case .receiving(let facts) = phase else { return }
                try bodyEnded(facts)
            } catch {
                broke(error)
            }
        }
    }

    /// Whether a step that failed after its last byte brought all the same what was to come: our count says so, and not the
    /// server's last words.
    private func isWhole(in error: TransferError) -> Bool {
        guard case .receiving(let facts) = phase, [.truncated, .stalled].contains(error.code) else { return false }
        return facts.size == writer.position
    }

    /// libcurl saw a complete body; whether it is, our own count says.
    private func bodyEnded(_ facts: RemoteFacts) throws(TransferError) {
        try writer.endOfBody()
        if let size = facts.size, writer.position < size {
            throw TransferError(.truncated, "the file ended at \(writer.position) of \(size) bytes")
        }
        // Nothing ties the bytes of a file that someone writes meanwhile to one another but its time.
        guard facts.time != nil, exchange.hasPaused || exchange.duration >= Self.confirmationThreshold else {
            return finish()
        }
        try writer.flush()
        confirm(facts)
    }

    private func confirm(_ facts: RemoteFacts) {
        phase = .confirming(facts)
        exchange.begin(RemoteStep(work: .look, path: remote.path))
    }

    private func confirmed(_ ending: RemoteEnding, _ facts: RemoteFacts) {
        switch ending.error {
        case nil:
            var theirs = ending.facts
            // SFTP servers need not say that a file is empty.
            if facts.size == nil || facts.size == 0 { theirs.size = facts.size }
            if let size = facts.size,
                let reason = RemoteFacts(size: size, time: facts.time).difference(to: theirs, isCompared: true)
            {
                return broke(TransferError(.remoteChanged, reason))
            }
            finish()
        // Gone since: what came is what there was.
        case let error? where error.code == .notFound: finish()
        case let error?: broke(error)
        }
    }

    /// - Parameter error: what asking for the file had ended in.
    private func suspected(_ ending: RemoteEnding, _ error: TransferError) {
        if ending.error?.code == .cancelled { return fail(.cancelled) }
        guard ending.error == nil else { return broke(error) }
        fail(
            TransferError(
                .permissionDenied,
                "\(remote.path.text) on \(remote.host) is a directory, and directories are not listed: name a file in it"
            ))
    }

    private func finish() {
        do throws(TransferError) {
            if destination == nil {
                destination = try file.place(ResourceMetadata(nil, file.version), total: nil)
            }
            let size = max(writer.position, file.front)
            let part = try file.complete(size: size, flushing: writer) { [unowned self] in
                if case .ended = phase {} else { finish() }
            }
            guard let part else { return }
            guard let destination else { throw TransferError(.internal, "a file without a destination") }
            end()
            task.progress.setTotal(size)
            session.publish(task, part, size: size, destination: destination, file.verification())
        } catch {
            broke(error)
        }
    }

    private func startOver() {
        writer.drop()
        file.startOver()
    }

    private func tellRestart(_ reason: String) {
        session.delegate.downloadTask(task, didRestartBecause: reason)
    }

    private func broke(_ error: TransferError) {
        guard error.code == .remoteChanged, restarts < Self.restartLimit else { return fail(error) }
        restarts += 1
        tellRestart(error.message)
        startOver()
        ask()
    }

    private func fail(_ error: TransferError) {
        if case .ended = phase { return }
        // Bytes that are in memory still may spare fetching them again; if the disk does not want them, so be it.
        if error.code != .remoteChanged { try? writer.flush() }
        let part = error.code == .remoteChanged ? nil : file.part
        let (version, isAtRest) = (file.version, file.isAtRest)
        end()
        session.fail(task, error, part: part, version: version, isAtRest: isAtRest)
    }

    private func end() {
        phase = .ended
        writer.release()
        core.release(task.identifier)
    }
}
