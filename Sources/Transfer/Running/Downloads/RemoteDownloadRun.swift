import Curl

/// The execution of a download task with a file server: a sequence of steps until the file is complete or the download
/// fails.
///
/// Used on the loop's thread only. ``RemoteFacts`` validates the server's statements about the file. ``BodyWriter``
/// determines where bytes are written.
final class RemoteDownloadRun: RemoteRun, RemoteExchangeClient, ConfirmableRun, FileRun {
    private enum Phase {
        /// The state before the first byte.
        case asking
        /// The state while the file's bytes are received.
        case receiving(RemoteFacts)
        /// The state in which all bytes are received and a check whether they belong to one version is under way.
        case confirming(RemoteFacts)
        /// The state in which a check whether the path names a directory is under way, because no byte was received.
        case suspecting(TransferError)
        case ended
    }

    private(set) lazy var exchange = RemoteExchange(remote, task: task, client: self, core: core)
    private let task: DownloadTask
    private let remote: RemoteFile
    private let session: any TaskSession
    private unowned let core: LoopCore
    let file: DownloadFile
    private let writer: BodyWriter

    private var phase = Phase.asking
    private var restarts = 0
    /// The start offset of the current step.
    private var offset: Int64 = 0
    private var destination: FileDestination?

    private static let restartLimit = 2
    /// The duration in milliseconds up to which a step needs no second check of the file's modification time at its
    /// end. Servers report times in seconds.
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
        do throws(TransferError) {
            if try passesWrongServer() { return }
            try prepareJoining()
        } catch {
            return broke(error)
        }
        // All bytes were received in an earlier attempt.
        if let total = file.version.total, file.front == total, total > 0 {
            return isOfMirror ? finish() : confirm(known)
        }
        ask()
    }

    private var resource: String { ResumeData.resource(of: task.originalRequest.url) }

    /// Continues with mirrors if this server alone has delivered a wrong file.
    ///
    /// - Returns: whether mirrors take over.
    private func passesWrongServer() throws(TransferError) -> Bool {
        guard task.mismatches.wrong.contains(resource) else { return false }
        let words = "what \(remote.host) has at \(remote.path.text) is another file than the checksum is of"
        return try standIn(after: TransferError(.checksumMismatch, words))
    }

    /// Determines whether a digest of the whole file is known. With it, mirrors and this server may continue each
    /// other's bytes.
    private func prepareJoining() throws(TransferError) {
        let mayHaveOthers =
            DownloadSources.hasMirrors(task.originalRequest) || file.version.isJoined || file.version.origin != resource
        guard file.count > 0, file.target != nil, mayHaveOthers else { return }
        if !file.version.isJoined {
            guard try file.isDigestKnown() else { return }
        }
        destination = try file.place(ResourceMetadata(nil, file.version), total: file.version.total)
    }

    /// Whether another server started the present file and a digest of the whole can tell whether it is this server's
    /// file.
    private var isOfMirror: Bool { file.count > 0 && file.isJoinable && file.version.origin != resource }

    /// The facts about the present bytes. A modification time reported by a mirror is omitted, because it is not this
    /// server's.
    private var known: RemoteFacts {
        isOfMirror ? RemoteFacts(size: file.version.total) : RemoteFacts(file.version)
    }

    private func ask() {
        phase = .asking
        do throws(TransferError) {
            let known = try known.offset(have: file.front) { (overlap) throws(TransferError) in
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

    func confirm(_ count: Int64, of generation: String) {
        file.confirm(count, of: generation)
        if !file.isAhead { exchange.resume(after: .checkpoint) }
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
        // Abort the current step first; its end calls `broke(_:)`.
        if let error { return exchange.isUnderWay ? exchange.cancel(error) : broke(error) }
        if !writer.isBlocked { exchange.resume(after: .disk) }
    }

    // MARK: The file

    /// Validates the server's facts about the file before the first byte is accepted.
    private func begin(_ facts: RemoteFacts) throws(TransferError) {
        if file.count > 0 {
            if isOfMirror { file.join() }
            let isCompared = file.version.isJoined || offset < file.front
            if let reason = known.difference(to: facts, isCompared: isCompared) {
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
            session.callbacks.downloadTask(task, didResumeAtOffset: file.front, expected: facts.size)
        }
        phase = .receiving(facts)
    }

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        do throws(TransferError) {
            if case .suspecting = phase { throw isDirectory }
            if case .asking = phase { try begin(facts) }
            guard case .receiving(let facts) = phase else { throw TransferError(.internal, "bytes come too late") }
            if let reason = writer.pause { return .paused(reason == .checkpoint ? .checkpoint : .disk) }
            if let size = facts.size, writer.position + Int64(bytes.count) > size {
                throw TransferError(.remoteChanged, "the server sends more than the \(size) bytes it announced")
            }
            task.progress.transferred(bytes.count)
            try writer.append(bytes)
            if let maximum = task.originalRequest.maximumBodySize, writer.position > maximum {
                throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
            }
            return .accepted
        } catch {
            return .refused(error)
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
                // Fetch the path as a directory, which lists it. Its existence would prove nothing, because some
                // servers normalise the path and find a file.
                return exchange.begin(RemoteStep(work: .fetch(from: 0), path: remote.path.asDirectory))
            }
            do throws(TransferError) {
                if let error = ending.error, !isWhole(in: error) {
                    // A local failure would also occur with a mirror.
                    if !ending.isLocal, try standIn(after: error) { return }
                    throw error
                }
                // No byte was received: the file may be empty.
                if case .asking = phase { try begin(ending.facts) }
                guard case .receiving(let facts) = phase else { return }
                try bodyEnded(facts, ending)
            } catch {
                broke(error)
            }
        }
    }

    /// Whether a step that failed after its last byte is complete nevertheless. The byte count decides this, not the
    /// server's last reply.
    private func isWhole(in error: TransferError) -> Bool {
        guard case .receiving(let facts) = phase, [.truncated, .stalled].contains(error.code) else { return false }
        return facts.size == writer.position
    }

    /// Continues with mirrors if the request names some and the file server failed.
    ///
    /// - Returns: whether mirrors take over.
    private func standIn(after error: TransferError) throws(TransferError) -> Bool {
        guard error.code != .cancelled, error.code != .remoteChanged,
            DownloadSources.hasMirrors(task.originalRequest), file.isLeft(after: error)
        else { return false }
        try writer.flush()
        phase = .ended
        writer.release()
        let run = DownloadRun(task: task, core: core, file: file)
        let isSuspended = exchange.isSuspended
        // The loop is about to release this run, and no other reference to it remains.
        withExtendedLifetime(self) {
            core.adopt(run, as: task.identifier)
            run.standIn(after: error, isSuspended: isSuspended)
        }
        return true
    }

    /// Checks a body that libcurl considers complete against the stated size.
    private func bodyEnded(_ facts: RemoteFacts, _ ending: RemoteEnding) throws(TransferError) {
        try writer.endOfBody()
        if let size = facts.size, writer.position < size {
            throw TransferError(.truncated, "the file ended at \(writer.position) of \(size) bytes")
        }
        // If the file is modified during the download, only its modification time reveals it.
        guard facts.time != nil, ending.hasPaused || ending.duration >= Self.confirmationThreshold else {
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
            // SFTP servers need not report the size of an empty file.
            if facts.size == nil || facts.size == 0 { theirs.size = facts.size }
            if let size = facts.size,
                let reason = RemoteFacts(size: size, time: facts.time).difference(to: theirs, isCompared: true)
            {
                return broke(TransferError(.remoteChanged, reason))
            }
            finish()
        // The file has been removed since; the received bytes are all that it had.
        case let error? where error.code == .notFound: finish()
        case let error?: broke(error)
        }
    }

    private var isDirectory: TransferError {
        let words = "is a directory, and directories are not listed: name a file in it"
        return TransferError(.permissionDenied, "\(remote.path.text) on \(remote.host) \(words)")
    }

    /// Evaluates the check whether the path names a directory.
    ///
    /// - Parameter error: the error of the preceding request for the file.
    private func suspected(_ ending: RemoteEnding, _ error: TransferError) {
        let isListed = ending.error == nil || ending.error?.message == isDirectory.message
        if !isListed, ending.isLocal, let error = ending.error { return broke(error) }
        let error = isListed ? isDirectory : error
        do throws(TransferError) {
            if try standIn(after: error) { return }
            throw error
        } catch {
            broke(error)
        }
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
            if !task.mismatches.isEmpty { task.setSoleSource(task.originalRequest.url) }
            end()
            task.progress.setTotal(size)
            DownloadCompletion(task).publish(part, size: size, destination: destination, file.verification())
        } catch {
            broke(error)
        }
    }

    private func startOver() {
        writer.drop()
        file.startOver()
    }

    private func tellRestart(_ reason: String) {
        session.callbacks.downloadTask(task, didRestartBecause: reason)
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
        // Writing buffered bytes may avoid fetching them again; a failure to write is ignored.
        if error.code != .remoteChanged { try? writer.flush() }
        let part = error.code == .remoteChanged ? nil : file.part
        let (version, isAtRest) = (file.version, file.isAtRest)
        end()
        DownloadCompletion(task).fail(error, part: part, version: version, isAtRest: isAtRest)
    }

    private func end() {
        phase = .ended
        writer.release()
        core.release(task.identifier)
    }
}
