import Curl

/// The end of a download: its bytes are verified and published under the final name, or kept with resume data.
struct DownloadCompletion: Sendable {
    private let task: DownloadTask
    private var session: Session { task.session }
    private var resources: SessionResources { task.session.resources }

    init(_ task: DownloadTask) { self.task = task }

    /// Verifies and publishes a download after its last byte was received.
    ///
    /// - Parameter verification: The verification of the digest; `nil` if no digest is known.
    func publish(_ part: PartFile, size: Int64, destination: FileDestination, _ verification: Verification?) {
        leaveNetwork(isPublished: true)
        part.endUncachedWrites()
        task.progress.setPhase(verification == nil && destination.pieces == nil ? .publishing : .verifying)
        session.delegate.downloadTask(didReceiveAll: task)
        do throws(TransferError) {
            try destination.check(size: size)
        } catch {
            verification?.abandon()
            var destination = destination
            // No piece of it counts.
            destination.pieces = nil
            return resources.digestThreads.perform { [destination] in decode(part, size, destination, orFail: error) }
        }
        if let verification {
            verification.finish(size: size) { error in
                guard let error else { return publish(part, size, destination, isVerified: true) }
                decode(part, size, destination, orFail: error)
            }
        } else if let pieces = destination.pieces {
            resources.digestThreads.perform {
                if (try? pieces.goodRanges(of: part.descriptor, size: size))?.count == size {
                    return publish(part, size, destination, isVerified: true)
                }
                let error = TransferError(.checksumMismatch, "a piece of the received file does not match its digest")
                refuse(part, size, pieces, error)
            }
        } else {
            publish(part, size, destination, isVerified: false)
        }
    }

    /// Lets other tasks use the network in the task's place, while its bytes are verified, published or kept.
    private func leaveNetwork(isPublished: Bool) {
        resources.networkEnded(task.core, isPublished: isPublished)
        session.releaseConnection(of: task)
    }

    private func publish(
        _ part: PartFile, _ size: Int64, _ destination: FileDestination, isVerified: Bool
    ) {
        let item = Publisher.Item(
            part: part, destination: destination, owner: task.target?.owner ?? "", size: size, isVerified: isVerified
        ) { result in
            switch result {
            case .success(let file):
                task.setFile(file)
                session.delegate.downloadTask(task, didFinishDownloading: file)
                session.complete(task, nil)
            case .failure(let error): keep(part, ranges: part.durable, error)
            }
        }
        resources.disk(of: part).publish(item, isUrgent: resources.isIdle)
    }

    /// Publishes the bytes to which those of a wrong part decode, if the server said that they are coded and the decoded
    /// bytes have the required digest. Blocks.
    private func decode(
        _ part: PartFile, _ size: Int64, _ destination: FileDestination, orFail error: TransferError
    ) {
        // The bytes of the part are as they came: under a digest no coding is undone on the way to the file.
        let codings = BodyDecoder.undone(task.response?.contentCodings ?? [], ofFile: [])
        guard error.code == .checksumMismatch, let digest = destination.digest, !codings.isEmpty else {
            return refuse(part, size, destination.pieces, error)
        }
        let limit = min(task.originalRequest.maximumBodySize ?? .max, BodyDecoder.largestSize(of: size))
        for count in 1...codings.count {
            do throws(TransferError) {
                guard let length = try part.lengthOfDecoded(codings.prefix(count), size, digest, limit: limit) else {
                    continue
                }
                try destination.check(size: length)
                if let share = task.target?.share { _ = try share.grow(to: length, ahead: 0) }
                let decoded = try part.decoded(codings.prefix(count), size, owner: task.target?.owner ?? "")
                task.progress.setTotal(length)
                task.progress.setCompleted(length)
                return publish(decoded, length, destination, isVerified: true)
            } catch {
                // Bytes that cannot be decoded are not those of the digest.
                if error.code != .truncated, error.code != .tooLarge { return keep(part, ranges: part.durable, error) }
            }
        }
        refuse(part, size, destination.pieces, error)
    }

    /// Handles a failed verification. Pieces with correct digests are kept. Blocks.
    private func refuse(
        _ part: PartFile, _ size: Int64, _ pieces: PieceDigests?, _ error: TransferError
    ) {
        guard error.code == .checksumMismatch else { return keep(part, ranges: part.durable, error) }
        if let good = try? pieces?.goodRanges(of: part.descriptor, size: size), good.count > 0, good.count < size,
            (try? part.synchronize()) != nil
        {
            return keep(part, ranges: good, error)
        }
        try? part.remove()
        session.complete(task, error)
    }

    /// Handles a taken destination name. The existing file is kept. The task succeeds unless the file's digest is
    /// wrong.
    private func skip(_ part: PartFile?, _ taken: TakenName) {
        task.progress.setPhase(.verifying)
        resources.digestThreads.perform {
            if let part { try? part.remove() } else { task.removePart() }
            do throws(TransferError) {
                let file = try taken.file()
                task.progress.setTotal(file.size)
                task.setFile(file)
                session.delegate.downloadTask(task, didFinishDownloading: file)
                session.complete(task, nil)
            } catch {
                session.complete(task, error)
            }
        }
    }

    /// Completes a task whose file was not renamed to its final name, and keeps its part file where possible.
    private func keep(_ part: PartFile, ranges: ByteRangeSet, _ error: TransferError) {
        if let taken = error.underlying as? TakenName { return skip(part, taken) }
        var error = error
        // A file with the part's name then belongs to another owner.
        if error.code != .remoteChanged {
            if !task.leavesNothing {
                part.recordState()
                error.resumeData = task.resumeData(for: part, task.version, ranges: ranges)
            }
            if error.resumeData == nil, task.removesUnusedPart { task.removePart() }
        }
        session.complete(task, error)
    }

    /// Completes a failed download after a sync (fsync) of its received bytes, so that they need not be fetched again.
    ///
    /// - Parameter writer: the writer that has blocks of the part still to write.
    func fail(_ error: TransferError, part: PartFile?, version: ResourceVersion, after writer: BlockWriter? = nil) {
        leaveNetwork(isPublished: false)
        if let taken = error.underlying as? TakenName { return skip(part, taken) }
        var error = error
        guard let part else {
            // No part was started, so the earlier resume data remain valid unless a response has invalidated them.
            error.resumeData = task.response == nil && !task.leavesNothing ? task.resumeData : nil
            guard error.resumeData == nil, task.removesUnusedPart else { return session.complete(task, error) }
            return resources.disk(of: nil, or: task.target).threads.perform { [error] in
                task.removePart()
                session.complete(task, error)
            }
        }
        let conclude: @Sendable () -> Void = { [error] in
            part.endUncachedWrites()
            var error = error
            if !task.leavesNothing {
                part.recordState()
                let ranges = (try? part.synchronize()) ?? part.durable
                error.resumeData = task.resumeData(for: part, version, ranges: ranges)
            }
            if error.resumeData == nil, task.removesUnusedPart { task.removePart() }
            session.complete(task, error)
        }
        if let writer { writer.perform(conclude) } else { resources.disk(of: part).threads.perform(conclude) }
    }
}
