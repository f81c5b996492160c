import Curl
import Synchronization

/// Where a download's bytes lie until they are whole, and how their final place is found.
public struct DownloadTarget: Sendable {
    /// Holds the part file and the finished file.
    public var directory: Directory
    public var partName: String
    /// Names the download on its part file; the same over all attempts and lives, and no other's.
    public var owner: String
    /// Final name and conditions, asked for once the head of the answer is judged; without a head where every
    /// byte is there already. An error refuses the download before a byte is taken.
    public var destination: @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination

    /// Bytes to leave free on the file system.
    public var reservedSpace: Int64
    /// Whether the whole file is read as soon as it is there, as for its digest: it stays in the page cache then.
    public var isReadBack: Bool

    public init(
        directory: Directory, partName: String, owner: String, reservedSpace: Int64 = 0, isReadBack: Bool = false,
        destination: @escaping @Sendable (ResourceMetadata) throws(TransferError) -> FileDestination
    ) {
        self.directory = directory
        self.partName = partName
        self.owner = owner
        self.reservedSpace = reservedSpace
        self.isReadBack = isReadBack
        self.destination = destination
    }
}

/// How a download task ended.
public enum DownloadOutcome: Sendable {
    case finished(PublishedFile)
    /// With resume data where bytes are there that still count.
    case failed(TransferError, ResumeData?)
}

/// Fetches a file: into a part beside its destination, and under its final name only when whole.
public final class DownloadTask: SessionTask {
    let core: TaskCore
    let session: Session
    public let target: DownloadTarget
    /// What an earlier attempt left.
    public let resumeData: ResumeData?

    private struct State {
        var part: PartFile?
        var version = ResourceVersion()
    }

    private let mutable = Mutex(State())

    init(
        _ request: TransferRequest, target: DownloadTarget, resumeData: ResumeData?, progress: TransferProgress,
        session: Session
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.target = target
        self.resumeData = resumeData
    }

    public var identifier: Int { core.identifier }
    public var state: SessionTaskState { core.state }
    public var originalRequest: TransferRequest { core.originalRequest }
    public var currentRequest: TransferRequest { core.currentRequest }
    public var response: ResponseHead? { core.response }
    public var progress: TransferProgress { core.progress }

    public func resume() {
        guard case .start = core.resume() else { return }
        session.start(self)
    }

    /// The bytes that came are kept and synced; the completion brings resume data for them.
    public func cancel() {
        switch core.cancel() {
        case .completeCancelled: session.complete(self, .failed(.cancelled, resumeData))
        case .cancelOnLoop: session.cancel(identifier)
        case .start, .nothing: break
        }
    }

    /// Bytes between two checkpoints from which on a download is one of those that leave the page cache.
    private static let cachedShare: Int64 = 16 << 20

    /// Brings what is written so far to the disk; a large and fast file's bytes leave the page cache with that.
    ///
    /// - Returns: resume data for it; `nil` where nothing has been written.
    /// - Throws: where the sync failed: then only earlier resume data count.
    public func checkpoint() async throws(TransferError) -> ResumeData? {
        guard let (part, version) = mutable.withLock({ state in state.part.map { ($0, state.version) } }) else {
            return nil
        }
        let staysCached = target.isReadBack
        let outcome: Result<ByteRangeSet, TransferError> = await withCheckedContinuation { continuation in
            session.diskThreads.perform {
                let before = part.durable.count
                do throws(TransferError) {
                    let ranges = try part.synchronize()
                    continuation.resume(returning: .success(ranges))
                    if !staysCached, ranges.count - before >= Self.cachedShare { part.leavePageCache() }
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return resumeData(for: part, version, ranges: try outcome.get())
    }

    /// The resume data of a checkpoint have been kept where they outlast a crash.
    public func confirm(_ resumeData: ResumeData) {
        let (number, count) = (identifier, resumeData.ranges.contiguousEnd)
        session.loop(for: number).post { core in (core.client(number) as? DownloadRun)?.confirm(count) }
    }

    /// Written and not yet synced.
    public var unsyncedBytes: Int64 { mutable.withLock { $0.part?.unsynced ?? 0 } }

    var version: ResourceVersion { mutable.withLock { $0.version } }

    // MARK: From the loop

    func setPart(_ part: PartFile?, _ version: ResourceVersion) {
        mutable.withLock { state in
            state.part = part
            state.version = version
        }
    }

    func resumeData(for part: PartFile, _ version: ResourceVersion, ranges: ByteRangeSet) -> ResumeData? {
        guard !ranges.ranges.isEmpty else { return nil }
        return ResumeData(
            generation: part.generation, resource: ResumeData.resource(of: originalRequest.url), ranges: ranges,
            version: version)
    }
}

extension TransferError {
    static let cancelled = TransferError(.cancelled, "cancelled")
}
