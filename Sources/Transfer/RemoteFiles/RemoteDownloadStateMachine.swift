/// The state of a download from a file server, and every decision about it: from which byte the file is requested,
/// whether its version is still the part's, what a failure leads to, and whether the end needs a second look.
///
/// A value without I/O, clock and closures. ``RemoteDownloadRun`` reports each event, and performs the
/// ``RemoteDownloadAction`` that comes back. ``RemoteFacts`` compares the server's statements about the file.
struct RemoteDownloadStateMachine {
    /// The properties of the task that stay the same.
    struct Configuration {
        /// The URL of the file, without what does not identify it.
        var resource: String
        var host: String
        /// The path of the file, for messages.
        var path: String
        var maximumSize: Int64 = .max
        /// Whether mirrors could bring the file.
        var hasMirrors = false
        /// Whether the whole file once failed its digest.
        var hasMismatch = false
        /// Whether this server alone has brought a wrong file.
        var isWrong = false
        /// Whether another source is preferred to waiting for a failing one.
        var leavesFailingSource = false
    }

    enum Phase: Equatable {
        /// The state before the first request.
        case preparing
        /// The state from a request to its first byte.
        case requesting(from: Int64)
        /// The state while the file's bytes are received.
        case receiving(RemoteFacts)
        /// The state in which all bytes are received, and a check whether they belong to one version is under way.
        case confirming(RemoteFacts)
        /// The state in which a check whether the path names a directory is under way, because no byte was received.
        ///
        /// - Parameter failure: the error of the request for the file.
        case checkingDirectory(failure: TransferError)
        /// The state in which the last bytes are written.
        case completing
        case ended
    }

    let configuration: Configuration
    private(set) var phase = Phase.preparing
    /// The number of times that the whole was requested anew.
    private(set) var restarts = 0

    static let restartLimit = 2
    /// The duration in milliseconds up to which a step needs no second check of the file's modification time at its
    /// end. Servers report times in seconds.
    private static let confirmationThreshold: Int64 = 1000

    init(_ configuration: Configuration) { self.configuration = configuration }

    var isEnded: Bool { phase == .ended }

    // MARK: Beginning

    /// Decides how the download begins.
    ///
    /// - Parameter part: the contents of the part file of an earlier attempt.
    mutating func begin(_ part: PartContents) -> RemoteDownloadAction {
        guard phase == .preparing else { return .none }
        if configuration.isWrong {
            let words =
                "the checksum does not belong to the file \(configuration.path) on \(configuration.host)"
            let error = TransferError(.checksumMismatch, words)
            if maySwitchSource(after: error, part) { return .switchToMirrors(error) }
        }
        // With a digest, mirrors and this server may continue each other's bytes.
        let mayHaveOthers =
            configuration.hasMirrors || part.version.isJoined || part.version.origin != configuration.resource
        return part.count > 0 && mayHaveOthers ? .learnDigest : prepared(part)
    }

    /// Whether a digest is known has been learnt, or does not matter.
    mutating func prepared(_ part: PartContents) -> RemoteDownloadAction {
        guard phase == .preparing else { return .none }
        // All bytes were received in an earlier attempt.
        if let total = part.version.total, part.front == total, total > 0 {
            return isOfMirror(part) ? complete() : confirm(known(part))
        }
        return .findOffset(known(part))
    }

    /// - Parameter offset: the byte from which the download resumes; `nil` if nothing shows that it would bring the
    ///   same version.
    mutating func offsetFound(_ offset: Int64?) -> RemoteDownloadAction {
        guard phase == .preparing else { return .none }
        if let offset { return request(from: offset) }
        return request(from: 0, startingOver: "the part already downloaded may be of another version")
    }

    private mutating func request(from offset: Int64, startingOver reason: String? = nil) -> RemoteDownloadAction {
        phase = .requesting(from: offset)
        return .request(from: offset, startingOver: reason)
    }

    /// Whether another server started the present file and a digest of the whole can tell whether it is this server's
    /// file.
    private func isOfMirror(_ part: PartContents) -> Bool {
        part.count > 0 && part.isJoinable && part.version.origin != configuration.resource
    }

    /// Returns the facts about the present bytes. A modification time reported by a mirror is omitted, because it is
    /// not this server's.
    private func known(_ part: PartContents) -> RemoteFacts {
        isOfMirror(part) ? RemoteFacts(size: part.version.total) : RemoteFacts(part.version)
    }

    // MARK: Bytes

    /// Validates the server's facts about the file before the first byte is accepted.
    mutating func fileBegins(_ facts: RemoteFacts, _ part: PartContents) throws(TransferError) -> RemoteBodyPlan {
        guard case .requesting(let offset) = phase else { throw tooLate }
        let isJoining = isOfMirror(part)
        if part.count > 0 {
            let isCompared = isJoining || part.version.isJoined || offset < part.front
            if let reason = known(part).difference(to: facts, isCompared: isCompared) {
                throw TransferError(.remoteChanged, reason)
            }
        }
        if let size = facts.size, size > configuration.maximumSize {
            throw TransferError(
                .tooLarge, "the file has \(size) bytes, more than the \(configuration.maximumSize) allowed")
        }
        return RemoteBodyPlan(offset: offset, facts: facts, isJoining: isJoining)
    }

    /// The destination is decided, and the file's bytes may come.
    mutating func fileBegan(_ plan: RemoteBodyPlan) {
        guard case .requesting = phase else { return }
        phase = .receiving(plan.facts)
    }

    /// Decides on bytes. Called for every chunk.
    ///
    /// - Parameter position: the position of the first of them in the file.
    func bytesReceived(_ count: Int, at position: Int64) -> RemoteFileBytesAction {
        switch phase {
        case .requesting: return .begin
        case .receiving(let facts):
            guard let size = facts.size, Int64(count) > size - position else { return .append }
            return .refuse(
                TransferError(.remoteChanged, "the server sent more than the \(size) bytes it announced"))
        case .checkingDirectory: return .refuse(isDirectory)
        case .preparing, .confirming, .completing, .ended: return .refuse(tooLate)
        }
    }

    /// Returns the error if the file has become larger than allowed. Called for every chunk.
    func bytesAppended(upTo position: Int64) -> TransferError? {
        guard position > configuration.maximumSize else { return nil }
        return TransferError(.tooLarge, "the file grew past the \(configuration.maximumSize) bytes allowed")
    }

    private var tooLate: TransferError { TransferError(.internal, "bytes come too late") }

    private var isDirectory: TransferError {
        let words = "is a directory, and directories are not listed: name a file in it"
        return TransferError(.permissionDenied, "\(configuration.path) on \(configuration.host) \(words)")
    }

    // MARK: The end of a step

    /// - Parameter position: the position behind the last byte that was received.
    mutating func stepEnded(
        _ ending: RemoteEnding, _ part: PartContents, at position: Int64
    ) -> RemoteDownloadAction {
        switch phase {
        case .preparing: return ending.error.map { failed($0) } ?? .none
        case .completing, .ended: return .none
        case .confirming(let facts): return confirmed(ending, facts)
        case .checkingDirectory(let failure): return directoryChecked(ending, failure, part)
        case .requesting, .receiving: break
        }
        if case .requesting = phase, ending.isOfDirectory, let error = ending.error {
            phase = .checkingDirectory(failure: error)
            return .checkDirectory
        }
        if let error = ending.error, !isWhole(in: error, at: position) {
            // A local failure would also occur with a mirror.
            return !ending.isLocal && maySwitchSource(after: error, part) ? .switchToMirrors(error) : failed(error)
        }
        guard case .requesting = phase else { return .endBytes(ending) }
        // No byte was received: the file may be empty.
        do throws(TransferError) {
            return .beginEmpty(try fileBegins(ending.facts, part), ending)
        } catch {
            return failed(error)
        }
    }

    /// Whether a step that failed after its last byte is complete nevertheless. The byte count decides this, not the
    /// server's last reply.
    private func isWhole(in error: TransferError, at position: Int64) -> Bool {
        guard case .receiving(let facts) = phase, [.truncated, .stalled].contains(error.code) else { return false }
        return facts.size == position
    }

    /// Checks the bytes that libcurl considers complete against the stated size.
    mutating func bytesEnded(_ ending: RemoteEnding, at position: Int64) -> RemoteDownloadAction {
        guard case .receiving(let facts) = phase else { return .none }
        if let size = facts.size, position < size {
            return failed(TransferError(.truncated, "the file ended at \(position) of \(size) bytes"))
        }
        // If the file is modified during the download, only its modification time reveals it.
        let isBrief = !ending.hasPaused && ending.duration < Self.confirmationThreshold
        return facts.time == nil || isBrief ? complete() : confirm(facts)
    }

    private mutating func confirm(_ facts: RemoteFacts) -> RemoteDownloadAction {
        phase = .confirming(facts)
        return .confirm
    }

    private mutating func confirmed(_ ending: RemoteEnding, _ facts: RemoteFacts) -> RemoteDownloadAction {
        switch ending.error {
        case nil:
            var theirs = ending.facts
            // SFTP servers need not report the size of an empty file.
            if facts.size == nil || facts.size == 0 { theirs.size = facts.size }
            if let size = facts.size,
                let reason = RemoteFacts(size: size, time: facts.time).difference(to: theirs, isCompared: true)
            {
                return failed(TransferError(.remoteChanged, reason))
            }
            return complete()
        // The file has been removed since; the received bytes are all that it had.
        case let error? where error.code == .notFound: return complete()
        case let error?: return failed(error)
        }
    }

    /// Evaluates the check whether the path names a directory.
    ///
    /// - Parameter failure: the error of the preceding request for the file.
    private mutating func directoryChecked(
        _ ending: RemoteEnding, _ failure: TransferError, _ part: PartContents
    ) -> RemoteDownloadAction {
        let isListed = ending.error == nil || ending.error?.message == isDirectory.message
        if !isListed, ending.isLocal, let error = ending.error { return failed(error) }
        let error = isListed ? isDirectory : failure
        return maySwitchSource(after: error, part) ? .switchToMirrors(error) : failed(error)
    }

    /// Whether mirrors go on if the request names some and the file server failed.
    private func maySwitchSource(after error: TransferError, _ part: PartContents) -> Bool {
        error.code != .cancelled && error.code != .remoteChanged && configuration.hasMirrors
            && part.mayLeaveSource(
                after: error, hasMismatch: configuration.hasMismatch,
                leavesFailingSource: configuration.leavesFailingSource)
    }

    // MARK: The end

    /// Bytes could not be written, or a step failed: requests the whole anew if the file changed, and otherwise ends
    /// the download.
    mutating func failed(_ error: TransferError) -> RemoteDownloadAction {
        if isEnded { return .none }
        guard error.code == .remoteChanged, restarts < Self.restartLimit else { return .fail(error) }
        restarts += 1
        return request(from: 0, startingOver: error.message)
    }

    /// Queued blocks could not be written.
    mutating func diskFailed(_ error: TransferError) -> RemoteDownloadAction {
        switch phase {
        case .preparing, .completing: failed(error)
        case .requesting, .receiving, .confirming, .checkingDirectory: .abort(error)
        case .ended: .none
        }
    }

    private mutating func complete() -> RemoteDownloadAction {
        phase = .completing
        return .complete
    }

    /// Records that the download has completed or failed, or that mirrors go on.
    mutating func end() { phase = .ended }
}

/// The invariants of a download from a file server.
///
/// 1. *Bytes of two versions never meet.* A step continues the part only where size and time are those of the part, or
///    where bytes are compared, or where a digest shows whether bytes of several sources belong together.
/// 2. *The file is requested anew a limited number of times.*
/// 3. *A file of known size is completed with that size.*
/// 4. *Every written byte is counted,* once.
/// 5. *No file beyond the limit of its size is received.*
extension RemoteDownloadStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    ///
    /// - Parameters:
    ///   - part: the contents of the part file.
    ///   - position: the position behind the last byte that was received.
    func violation(_ part: PartContents, at position: Int64) -> String? {
        if restarts > Self.restartLimit { return "the file is requested too often" }
        if part.count != part.written.count { return "bytes are written and not counted" }
        switch phase {
        case .preparing, .checkingDirectory, .completing, .ended: return nil
        case .requesting(let offset): return offset > part.front ? "a gap would remain before the bytes" : nil
        case .receiving(let facts), .confirming(let facts):
            guard let size = facts.size else { return nil }
            if size > configuration.maximumSize { return "the file is too large" }
            return position > size ? "more bytes are received than the file has" : nil
        }
    }
}

/// An action that ``RemoteDownloadStateMachine`` wants performed. Its performer, ``RemoteDownloadRun``, does nothing
/// else.
enum RemoteDownloadAction {
    case none
    /// Learns whether a digest of the whole file is known; ``RemoteDownloadStateMachine/prepared(_:)`` or
    /// ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case learnDigest
    /// Determines where a download of the version with these facts resumes;
    /// ``RemoteDownloadStateMachine/offsetFound(_:)`` or ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case findOffset(RemoteFacts)
    /// Requests the file from an offset on. With a reason, the part is dropped first.
    case request(from: Int64, startingOver: String?)
    /// Begins the file although no byte came, and reports the end of its bytes.
    case beginEmpty(RemoteBodyPlan, RemoteEnding)
    /// Checks that the overlap was compared whole; ``RemoteDownloadStateMachine/bytesEnded(_:at:)`` or
    /// ``RemoteDownloadStateMachine/failed(_:)`` follows.
    case endBytes(RemoteEnding)
    /// Writes what is gathered, and requests the file's facts once more.
    case confirm
    /// Requests the path as a directory.
    case checkDirectory
    /// Aborts the exchange with this error; ``RemoteDownloadStateMachine/stepEnded(_:_:at:)`` follows.
    case abort(TransferError)
    /// Writes what is gathered, and has the request's mirrors go on.
    case switchToMirrors(TransferError)
    /// Completes the file.
    case complete
    /// Ends the download.
    case fail(TransferError)
}

/// The place of a file server's bytes in the file.
struct RemoteBodyPlan: Equatable {
    /// The position of the first byte in the file.
    var offset: Int64
    var facts: RemoteFacts
    /// Whether the part is marked to hold bytes of several sources.
    var isJoining: Bool
}

/// The decision on bytes of a file.
enum RemoteFileBytesAction {
    /// The file begins with them.
    case begin
    /// They continue the file.
    case append
    case refuse(TransferError)
}
