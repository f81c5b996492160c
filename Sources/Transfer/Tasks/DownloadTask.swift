import Curl
import Glibc
import HTTPTypes
import Synchronization

/// A task that downloads a file: into a part file in the directory of its destination, renamed to the final name only
/// when complete.
public final class DownloadTask: LoopTask {
    let core: TaskCore
    let session: Session
    let body: RequestBody
    let placement: DownloadPlacement
    /// Whether the request may be sent again for other ranges, in this task or in a later one: a range is defined for
    /// `GET` only (RFC 9110, section 14.2).
    let isRepeatable: Bool
    /// The request before adapters, for resume data.
    private let unadapted: TransferRequest
    /// The resume data of an earlier attempt.
    private let earlier: CopyOnWrite<ResumeData>?
    /// The resume data of an earlier attempt; `nil` if the request is not repeatable.
    public var resumeData: ResumeData? { isRepeatable ? earlier?.value : nil }
    /// Resume data that the task cannot use.
    var unusableResumeData: ResumeData? { isRepeatable ? nil : earlier?.value }
    /// A record of the request's attempts whose bytes were wrong as a whole. The sources are then tried one by one.
    let mismatches: Mismatches

    private struct State {
        /// The target that the destination was resolved to.
        var target: DownloadTarget?
        var part: PartFile?
        var version = ResourceVersion()
        var file: PublishedFile?
        var leavesNothing = false
        var stated: StatedDigest?
        var soleSource: String?
        var unconfirmed: UnconfirmedVersion?
        /// The number of bytes received when the gathered bytes were last written.
        var flushedBytes: Int64 = 0
        /// The resource that resume data name, once there are some.
        var resource: String?
        /// Called when the task is complete.
        var completions: [@Sendable (ResumeData?) -> Void] = []
    }

    private let mutable: Mutex<State>

    /// - Parameter unadapted: the request before adapters; by default `request`.
    init(
        _ request: TransferRequest, body: RequestBody = .none, placement: DownloadPlacement, resumeData: ResumeData?,
        progress: TransferProgress, session: Session, unadapted: TransferRequest? = nil,
        mismatches: Mismatches = Mismatches()
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.body = body
        self.placement = placement
        isRepeatable = Self.isRepeatable(request, body)
        earlier = resumeData.map { CopyOnWrite($0) }
        self.unadapted = unadapted ?? request
        self.mismatches = mismatches
        mutable = Mutex(State(stated: mismatches.stated, unconfirmed: resumeData?.unconfirmed))
    }

    /// Creates a task that takes over the response of a data task.
    init(succeeding task: DataTask, placement: DownloadPlacement) {
        core = TaskCore(task.originalRequest, progress: task.progress, succeeding: task.core)
        session = task.session
        body = task.body
        self.placement = placement
        isRepeatable = Self.isRepeatable(task.originalRequest, task.body)
        earlier = nil
        mismatches = Mismatches()
        mutable = Mutex(State())
        unadapted = task.session.delegate.originalRequest(of: task) ?? task.originalRequest
    }

    private static func isRepeatable(_ request: TransferRequest, _ body: RequestBody) -> Bool {
        if case .none = body { request.method == .get || RemoteScheme(of: request.url) != nil } else { false }
    }

    /// The location of the part file; `nil` while a ``DownloadDestination`` is undecided.
    public var target: DownloadTarget? {
        switch placement {
        case .fixed(let target): target
        case .decided: mutable.withLock { $0.target }
        }
    }

    /// Records the target of a decided destination. An existing part file lies there already.
    func setTarget(_ target: DownloadTarget) { mutable.withLock { $0.target = target } }

    /// The decision on the destination: of this task, or of the task that produced its resume data.
    var decision: DownloadDecision? {
        mutable.withLock { $0.target }?.decision ?? resumeData?.record?.decision
    }

    /// The finished file, once the task is complete.
    public var file: PublishedFile? { mutable.withLock { $0.file } }

    func setFile(_ file: PublishedFile) { mutable.withLock { $0.file = file } }

    /// Runs `work` on the loop's thread if the task is still running.
    func perform(_ work: @escaping @Sendable (any DownloadTaskRun) -> Void) {
        session.perform(self) { run in
            if let run = run as? any DownloadTaskRun { work(run) }
        }
    }

    /// Cancels the task. Received bytes are kept and synced, and the error contains resume data for them, if
    /// `keepingBytes` is `true`. Otherwise nothing stays on disk.
    public func cancel(keepingBytes: Bool) {
        if !keepingBytes { mutable.withLock { $0.leavesNothing = true } }
        cancel()
    }

    /// Cancels the task, which keeps and syncs its bytes.
    ///
    /// - Parameter completion: called once the task is complete, on one of the session's threads, which it must not
    ///   block. Its argument is `nil` if no byte was received, or if the task completed successfully.
    public func cancel(byProducingResumeData completion: @escaping @Sendable (ResumeData?) -> Void) {
        let isComplete = mutable.withLock { state in
            if core.state == .completed { return true }
            state.completions.append(completion)
            return false
        }
        if isComplete { completion(error?.resumeData) } else { cancel() }
    }

    func didEnd(_ error: TransferError?) {
        let completions = mutable.withLock { state in
            defer { state.completions = [] }
            return state.completions
        }
        for completion in completions { completion(error?.resumeData) }
    }

    var leavesNothing: Bool { mutable.withLock { $0.leavesNothing } }

    /// The number of bytes between two checkpoints from which on a download's synced bytes are dropped from the page
    /// cache.
    private static let cachedShare: Int64 = 16 << 20

    /// Syncs the bytes received so far to the disk. The bytes of a large and fast download leave the page cache after
    /// that.
    ///
    /// - Returns: resume data for them; `nil` if nothing has been received.
    /// - Throws: an error of the sync. Only earlier resume data are valid then. `volumeDetached` if the part file's
    ///   file system is no longer mounted at its place.
    public func checkpoint() async throws(TransferError) -> ResumeData? {
        let writer = await flushGathered()
        guard let (part, version) = mutable.withLock({ state in state.part.map { ($0, state.version) } }) else {
            return nil
        }
        let outcome: Result<ByteRangeSet, TransferError> = await withCheckedContinuation { continuation in
            let before = part.durable.count
            let synced: SharedSync.Completion = { result in
                do throws(TransferError) {
                    let ranges = try result.get()
                    _ = try part.checkPlace()
                    continuation.resume(returning: .success(ranges))
                    if ranges.count - before >= Self.cachedShare { part.leavePageCache() }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
            let syncs = session.resources.disk(of: part).syncs
            if let writer {
                writer.perform { syncs.synchronize(part, synced) }
            } else {
                syncs.synchronize(part, synced)
            }
        }
        return resumeData(for: part, version, ranges: try outcome.get())
    }

    /// Writes the bytes that are gathered in memory for a large write. At a low rate they would otherwise stay there
    /// for long.
    ///
    /// - Returns: the writer that has blocks still to write; `nil` if there are none.
    private func flushGathered() async -> BlockWriter? {
        await withCheckedContinuation { (continuation: CheckedContinuation<BlockWriter?, Never>) in
            let isPosted = session.loop(for: self)?.post { [self] core in
                let received = progress.transferredBytes
                let writer = (run(on: core) as? any DownloadTaskRun)?.flushGathered()
                mutable.withLock { $0.flushedBytes = received }
                continuation.resume(returning: writer)
            }
            if isPosted != true { continuation.resume(returning: nil) }
        }
    }

    /// Records that the resume data of a checkpoint are stored crash-safely.
    public func confirm(_ resumeData: ResumeData) {
        let (count, generation) = (resumeData.ranges.count, resumeData.generation)
        perform { $0.confirm(count, of: generation) }
    }

    /// Whether bytes have been received that no checkpoint covers.
    public var needsCheckpoint: Bool {
        let received = progress.transferredBytes
        return mutable.withLock { ($0.part?.unsynced ?? 0) > 0 || $0.flushedBytes != received }
    }

    /// The number of bytes that are written but not yet synced.
    public var unsyncedBytes: Int64 { mutable.withLock { $0.part?.unsynced ?? 0 } }

    /// The digest that a server last sent for the file, in this attempt or in an earlier one whose bytes did not match.
    var stated: StatedDigest? { mutable.withLock { $0.stated } }

    func setStated(_ stated: StatedDigest) { mutable.withLock { $0.stated = stated } }

    /// The URL of the source that provided all the bytes; `nil` if that is unknown.
    var soleSource: String? { mutable.withLock { $0.soleSource } }

    func setSoleSource(_ url: String) { mutable.withLock { $0.soleSource = url } }

    /// The other version that the last response claimed, in this attempt or in an earlier one.
    var unconfirmed: UnconfirmedVersion? { mutable.withLock { $0.unconfirmed } }

    func setUnconfirmed(_ version: UnconfirmedVersion?) { mutable.withLock { $0.unconfirmed = version } }

    var version: ResourceVersion { mutable.withLock { $0.version } }

    // MARK: From the loop

    func setPart(_ part: PartFile?, _ version: ResourceVersion) {
        mutable.withLock { state in
            state.part = part
            state.version = version
        }
    }

    /// The resource that resume data name, derived from the URL once.
    private var resource: String {
        mutable.withLock { state in
            let resource = state.resource ?? ResumeData.resource(of: originalRequest.url)
            state.resource = resource
            return resource
        }
    }

    func resumeData(for part: PartFile, _ version: ResourceVersion, ranges: ByteRangeSet) -> ResumeData? {
        guard isRepeatable, part.isNamed, !ranges.ranges.isEmpty, !version.isDecoded else { return nil }
        var record: DownloadRecord?
        if placement.ownsPart {
            // Without a record, the part file could not be found again.
            guard let decision else { return nil }
            record = DownloadRecord(request: RecordedRequest(unadapted), decision: decision)
        }
        return ResumeData(
            generation: part.generation, resource: resource, ranges: ranges,
            version: version, mismatches: mismatches, unconfirmed: unconfirmed, record: record)
    }

    /// Opens the part file that `resumeData` describe, if it is still the same; `nil` otherwise.
    ///
    /// - Throws: an error if that cannot be determined now.
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
            // In a directory that other users may write to, such as `/tmp`, the file may be another user's.
            return (try? part?.descriptor.status())?.st_uid == geteuid() ? part : nil
        }
    }

    // MARK: Removal of the part file

    /// Whether a part file has to be removed if no resume data describe it.
    var removesUnusedPart: Bool {
        leavesNothing || (placement.ownsPart && (resumeData != nil || mutable.withLock { $0.target != nil }))
    }

    /// Removes the part file, wherever it is.
    func removePart() {
        if let target { _ = try? target.directory.removePart(target.partName) }
        _ = try? resumeData?.discard()
    }
}

extension TransferError {
    static let cancelled = TransferError(.cancelled, "cancelled")
}
