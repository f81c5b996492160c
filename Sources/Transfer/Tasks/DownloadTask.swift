import Curl
import Glibc
import HTTPTypes
import Synchronization

/// Where a download's bytes lie until they are whole, and how their final place is found.
public struct DownloadTarget: Sendable {
    /// Holds the part file and the finished file.
    public var directory: Directory
    /// The part file's name in the directory; a name alone, without a slash, and no other download's.
    public var partName: String
    /// Names the download on its part file; the same over all attempts and lives, and no other's.
    public var owner: String
    /// Final name and conditions, asked for once the head of the answer is judged; without a head where every
    /// byte is there already. An error refuses the download before a byte is taken.
    public var destination: @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination

    /// Bytes to leave free on the file system.
    public var reservedSpace: Int64
    /// What the file takes up of what it and others may together; `nil`: nobody counts that. It outlives the task, and
    /// ends by ``StorageShare/end(keeping:)``, which is the caller's to call.
    public var share: StorageShare?
    /// What it follows from, where a destination was decided.
    var decision: DownloadDecision?

    /// A place in `directory`; see the properties.
    public init(
        directory: Directory, partName: String, owner: String, reservedSpace: Int64 = 0,
        destination: @escaping @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination
    ) {
        self.directory = directory
        self.partName = partName
        self.owner = owner
        self.reservedSpace = reservedSpace
        self.destination = destination
    }
}

/// Fetches a file: into a part beside its destination, and under its final name only when whole.
public final class DownloadTask: LoopTask {
    let core: TaskCore
    let session: Session
    let placement: DownloadPlacement
    /// What was asked for, before adapters: for resume data. `nil` where asking again would not be the same.
    private let wish: TransferRequest?
    /// What an earlier attempt left.
    public let resumeData: ResumeData?
    /// Attempts of the request whose bytes were wrong as a whole: the sources are tried one by one then.
    let mismatches: Mismatches

    private struct State {
        /// That a destination came to.
        var target: DownloadTarget?
        var part: PartFile?
        var version = ResourceVersion()
        var file: PublishedFile?
        var leavesNothing = false
        var stated: StatedDigest?
        var soleSource: String?
        /// Bytes that had been received when the gathered ones were last handed to the disk.
        var handedOver: Int64 = 0
    }

    private let mutable: Mutex<State>

    /// - Parameter wish: the request before adapters; absent: as it is.
    init(
        _ request: TransferRequest, placement: DownloadPlacement, resumeData: ResumeData?, progress: TransferProgress,
        session: Session, wish: TransferRequest? = nil, mismatches: Mismatches = Mismatches()
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.placement = placement
        self.resumeData = resumeData
        self.wish = wish ?? request
        self.mismatches = mismatches
        mutable = Mutex(State(stated: mismatches.stated))
    }

    /// Goes on with the answer that a data task began to take.
    init(succeeding task: DataTask, placement: DownloadPlacement) {
        core = TaskCore(task.originalRequest, progress: task.progress, succeeding: task.core)
        session = task.session
        self.placement = placement
        resumeData = nil
        mismatches = Mismatches()
        mutable = Mutex(State())
        if case .none = task.body, task.originalRequest.method == .get {
            wish = task.session.delegate[task]?.original ?? task.originalRequest
        } else {
            wish = nil
        }
    }

    /// Where its bytes lie until they are whole; `nil` while a ``DownloadDestination`` is yet to be decided.
    public var target: DownloadTarget? {
        switch placement {
        case .fixed(let target): target
        case .decided: mutable.withLock { $0.target }
        }
    }

    /// A destination has been decided, and what was there of the part lies there.
    func setTarget(_ target: DownloadTarget) { mutable.withLock { $0.target = target } }

    /// What its destination came to: in this task, or in the one whose resume data it has.
    var decision: DownloadDecision? {
        mutable.withLock { $0.target }?.decision ?? resumeData?.record?.decision
    }

    /// The finished file, once the task is complete.
    public var file: PublishedFile? { mutable.withLock { $0.file } }

    func setFile(_ file: PublishedFile) { mutable.withLock { $0.file = file } }

    func makeRun(on loop: LoopCore) -> any LoopRun {
        RemoteScheme.makeRun(for: self, on: loop) ?? DownloadRun(task: self, core: loop)
    }

    /// Ends it; the bytes that came are kept and synced, and the error brings resume data for them.
    ///
    /// Cancelled with ``cancel(keepingBytes:)`` and `false`, it leaves nothing.
    public func cancel(keepingBytes: Bool) {
        if !keepingBytes { mutable.withLock { $0.leavesNothing = true } }
        cancel()
    }

    var leavesNothing: Bool { mutable.withLock { $0.leavesNothing } }

    /// Bytes between two checkpoints from which on a download is one of those that leave the page cache.
    private static let cachedShare: Int64 = 16 << 20

    /// Brings what has been received so far to the disk; a large and fast file's bytes leave the page cache with that.
    ///
    /// - Returns: resume data for it; `nil` where nothing has been received.
    /// - Throws: where the sync failed: then only earlier resume data count; `volumeDetached` where the part's file
    ///   system was taken off its place.
    public func checkpoint() async throws(TransferError) -> ResumeData? {
        await flushGathered()
        guard let (part, version) = mutable.withLock({ state in state.part.map { ($0, state.version) } }) else {
            return nil
        }
        let outcome: Result<ByteRangeSet, TransferError> = await withCheckedContinuation { continuation in
            let before = part.durable.count
            session.disk(of: part).syncs.synchronize(part) { result in
                do throws(TransferError) {
                    let ranges = try result.get()
                    _ = try part.checkPlace()
                    continuation.resume(returning: .success(ranges))
                    if ranges.count - before >= Self.cachedShare { part.leavePageCache() }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return resumeData(for: part, version, ranges: try outcome.get())
    }

    /// Hands the bytes that wait in memory for a large write to the kernel. At a small rate they would wait for long.
    private func flushGathered() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isPosted = session.loop(for: self).post { [self] core in
                let received = progress.transferredBytes
                (core.client(identifier) as? any FileRun)?.flushGathered()
                mutable.withLock { $0.handedOver = received }
                continuation.resume()
            }
            if !isPosted { continuation.resume() }
        }
    }

    /// The resume data of a checkpoint have been kept where they outlast a crash.
    public func confirm(_ resumeData: ResumeData) {
        let count = resumeData.ranges.count
        session.perform(self) { ($0 as? any ConfirmableRun)?.confirm(count) }
    }

    /// Whether bytes have been received that no checkpoint covers.
    public var needsCheckpoint: Bool {
        let received = progress.transferredBytes
        return mutable.withLock { ($0.part?.unsynced ?? 0) > 0 || $0.handedOver != received }
    }

    /// Written and not yet synced.
    public var unsyncedBytes: Int64 { mutable.withLock { $0.part?.unsynced ?? 0 } }

    /// What a server last stated of the file, in this attempt or in one before it whose bytes did not agree.
    var stated: StatedDigest? { mutable.withLock { $0.stated } }

    func setStated(_ stated: StatedDigest) { mutable.withLock { $0.stated = stated } }

    /// The source that all its bytes are of, by its URL; `nil` where that is not known.
    var soleSource: String? { mutable.withLock { $0.soleSource } }

    func setSoleSource(_ url: String) { mutable.withLock { $0.soleSource = url } }

    var version: ResourceVersion { mutable.withLock { $0.version } }

    // MARK: From the loop

    func setPart(_ part: PartFile?, _ version: ResourceVersion) {
        mutable.withLock { state in
            state.part = part
            state.version = version
        }
    }

    func resumeData(for part: PartFile, _ version: ResourceVersion, ranges: ByteRangeSet) -> ResumeData? {
        guard !ranges.ranges.isEmpty, !version.isDecoded else { return nil }
        var record: DownloadRecord?
        if placement.ownsPart {
            // Nobody else could find the part again.
            guard let wish, let decision else { return nil }
            record = DownloadRecord(request: RecordedRequest(wish), decision: decision)
        }
        return ResumeData(
            generation: part.generation, resource: ResumeData.resource(of: originalRequest.url), ranges: ranges,
            version: version, mismatches: mismatches, record: record)
    }

    /// Opens the part that `resumeData` speak of, if it is still that.
    ///
    /// - Throws: where that cannot be told now.
    func reopenPart(_ resumeData: ResumeData) throws(TransferError) -> PartFile? {
        switch placement {
        case .fixed(let target):
            return try PartFile.reopen(in: target.directory, name: target.partName, resumeData: resumeData)
        case .decided:
            guard let decision = resumeData.record?.decision else { return nil }
            let directory: Directory
            do {
                directory = try Directory.open(root: decision.directory)
            } catch {
                guard error.code == .io, error.systemError != ENOENT else { return nil }
                throw error
            }
            let part = try PartFile.reopen(in: directory, name: decision.partName, resumeData: resumeData)
            // In a directory that others may write to, as `/tmp` is, one of them may have put it there.
            return (try? part?.descriptor.status())?.st_uid == geteuid() ? part : nil
        }
    }

    // MARK: What stays

    /// Whether a part has to go where no resume data speak of it.
    var leavesNoLitter: Bool {
        leavesNothing || (placement.ownsPart && (resumeData != nil || mutable.withLock { $0.target != nil }))
    }

    /// Removes the part, wherever it is.
    func removePart() {
        if let target { _ = try? target.directory.removePart(target.partName) }
        _ = try? resumeData?.discard()
    }
}

extension TransferError {
    static let cancelled = TransferError(.cancelled, "cancelled")
}
