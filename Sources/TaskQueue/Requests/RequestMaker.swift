import Glibc
import HTTPTypes
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// A converter of stored tasks into engine requests. It lives for one pass of the scheduler.
struct RequestMaker {
    let manager: SessionManager
    let settings: QueueSettings
    private let store: TaskStore
    private let shared: Shared
    /// The number of final attempts in which a failing source is abandoned for a mirror, even if it made progress.
    private static let lastAttempts = 3
    /// The store's identity, which is part of the names of part files.
    let identity: String
    /// The newest task that existed when the store was opened. Only this and older tasks can have been finished by an
    /// earlier daemon process without a record of their completion.
    let newestOfEarlierLifetimes: TaskID

    /// The monotonic time of the pass.
    private let now: Milliseconds
    /// The directories of the tasks that start in the same pass.
    private var directories: [RecentDirectories.Key: RecentDirectories.Found] = [:]
    /// The logins that the configuration has for the owners of the tasks that start in the same pass.
    private var logins = TaskLogin.Known()
    /// The directories whose names have been synced to disk in this pass.
    private var synchronized: Set<RecentDirectories.Key> = []

    /// The knowledge that the makers of all passes share.
    struct Shared: Sendable {
        var detachedPlaces = DetachedPlaces()
        var recentDirectories = RecentDirectories()
        var earlierNames = EarlierNames()
        var passedSources = PassedSources()
    }

    /// - Parameter now: the monotonic time.
    init(
        manager: SessionManager, settings: QueueSettings, store: TaskStore, shared: Shared = .init(), now: Milliseconds
    ) {
        self.now = now
        self.manager = manager
        self.settings = settings
        self.store = store
        self.shared = shared
        identity = store.identity
        newestOfEarlierLifetimes = store.newestTaskAtOpening
    }

    /// Returns the name of a task's part file, which is in the task's target directory.
    static func partName(_ id: TaskID, identity: String) -> String { ".dld-\(identity)-\(id).part" }

    enum Made {
        case download(DownloadRequest)
        case upload(UploadMaker.Upload)
        /// A metadata lookup that must complete first.
        case lookup(Lookup)
        /// A file of this size is already present, so that no transfer is needed.
        case done(path: String, size: Int64, isVerified: Bool)
    }

    /// Creates the request for a task.
    ///
    /// - Parameters:
    ///   - found: the result of the lookup for this run.
    ///   - share: the download's share of its owner's quota.
    /// - Throws: ``TransferError`` where the task cannot be started.
    mutating func make(
        _ work: TaskWork, found: Lookup.Answer? = nil, share: StorageShare? = nil
    ) throws(TransferError) -> Made {
        var specification = work.record.specification
        specification.restore(work.secrets)
        var request = try transferRequest(specification, owner: work.record.owner)
        switch specification.kind {
        case .upload:
            // All attempts use the same name, so that an attempt replaces the partial file that an interrupted one left
            // on a file server.
            request.uploadName = "\(store.identity)-\(work.record.id)"
            request.createsRemoteDirectories = true
            let maker = UploadMaker(manager: manager, settings: settings, passedSources: shared.passedSources)
            return .upload(try maker.make(request, specification, work))
        case .download: return try download(request, specification, work, found, share)
        }
    }

    private mutating func transferRequest(
        _ specification: TaskSpecification, owner: UInt32
    ) throws(TransferError) -> TransferRequest {
        var request = TransferRequest(url: specification.url)
        request.party = String(owner)
        request.ignoresDeniedNetworks = settings.networkExemption.includes(owner)
        for header in specification.headers {
            guard let (name, value) = TaskSpecification.splitHeader(header), let name = HTTPField.Name(name) else {
                throw TransferError(.invalidRequest, "a header of the task cannot be sent")
            }
            request.headerFields.append(HTTPField(name: name, value: value))
        }
        if let agent = specification.userAgent { request.headerFields[.userAgent] = agent }
        if let referer = specification.referer { request.headerFields[.referer] = referer }
        TaskLogin(settings: settings, owner: owner).apply(to: &request, specification, &logins)
        request.cookies = TaskCookies.storage(specification.cookies)
        request.connectTimeout = specification.connectTimeout
        request.stallTimeout = specification.stallTimeout
        request.proxy = specification.proxy
        request.caCertificates = specification.caCertificates
        request.trustsAnyServer = specification.insecure
        request.maximumBodySize = [specification.maxSize, settings.maximumSize].compactMap { $0 }.min()
        return request
    }

    private mutating func download(
        _ request: TransferRequest, _ specification: TaskSpecification, _ work: TaskWork, _ found: Lookup.Answer?,
        _ share: StorageShare?
    ) throws(TransferError) -> Made {
        let record = work.record
        let asked = RecentDirectories.Key(
            directory: specification.directory,
            user: UserIdentity(uid: record.owner, groups: specification.groups))
        let place = try self.directory(asked)
        let directory = place.directory
        var (request, specification) = (request, specification)
        var described: String?
        if specification.metalink {
            // Only the Metalink knows the name under which an earlier daemon process may have finished the file, and
            // the file's digest.
            guard case .file(let file) = found else {
                return .lookup(Lookup(of: request, in: .metalink, manager: manager))
            }
            specification = specification.described(by: file)
            request = request.redirected(to: specification.url)
            described = file.output
        }
        let owner = Self.owner(of: record, identity: identity)
        let isVerified =
            specification.checksum != nil || specification.checksumURL != nil || specification.pieceHashes != nil
            || work.hasPieceHashes
        let earlier = Self.earlierFile(record, in: directory, identity: identity)
        let policy = earlier == nil ? settings.conflictPolicy(of: specification) : .overwrite

        // Checks for a file that an earlier daemon process finished but could not record.
        let likely = record.path.map(FileName.last)
        let hasPast = record.id <= newestOfEarlierLifetimes || record.attempts > 0 || record.startedAt != nil
        // The URL may have been changed since. The user vouches that it is of the same file.
        let resumeData = work.resumeData.flatMap { ResumeData(bytes: $0) }?.moved(to: specification.url)
        // An update finds such a file by its version.
        if hasPast, !specification.update {
            let suggested = resumeData?.suggestedFileName.flatMap(FileName.makeSafe)
            let redirected = resumeData?.redirectedFileName.flatMap(FileName.makeSafe)
            let names =
                (specification.output == nil ? [likely, suggested, described, redirected] : [likely]).compactMap(\.self)
            if let (name, size) = Self.published(names, by: owner, in: directory, policy, shared.earlierNames) {
                // The earlier process may have stopped before it synced the file's name, and the file may have been
                // without a name before.
                if !synchronized.contains(asked) {
                    try directory.synchronizeNames()
                    synchronized.insert(asked)
                }
                removePart(of: record, from: directory)
                // A file is verified before it gets its final name.
                return .done(path: directory.path(of: name), size: size, isVerified: isVerified)
            }
        }
        if let output = specification.output {
            switch policy {
            // With an expected digest, the file is verified later, off this thread.
            case .skip where !isVerified:
                if let size = directory.sizeOfFile(output) {
                    // An earlier run may have started to download the file that has since appeared from elsewhere.
                    removePart(of: record, from: directory)
                    return .done(path: directory.path(of: output), size: size, isVerified: false)
                }
            case .fail where directory.contains(output):
                throw TransferError.taken(output, in: directory)
            default: break
            }
        }
        if let list = specification.checksumURL, found == nil {
            let source = Lookup.Source.checksumList(list, output: specification.output)
            return .lookup(Lookup(of: request, in: source, manager: manager))
        }
        var naming = DownloadNaming(specification: specification, settings: settings)
        naming.described = described
        naming.earlier = earlier
        let isOwnPlace = DownloadPlace.isOwn(specification.directory)
        naming.user = isOwnPlace || settings.isTrusted(record.owner) ? nil : record.owner
        naming.holdsOwnDirectories = settings.layout == .perUser && directory.path == settings.downloadDirectory
        if case .checksum(let checksum) = found { naming.checksum = checksum }
        if case .list(let list) = found { naming.list = list }
        naming.pieces = Self.digests(work.hasPieceHashes ? try pieces(of: record.id) : specification.pieceHashes)
        if specification.update, resumeData == nil, let name = specification.output ?? likely,
            let condition = directory.version(of: name, from: request.url)?.condition
        {
            request.headerFields[condition.name] = condition.value
        }
        request.segments = specification.connections.map(QueueSettings.segments) ?? settings.segments
        request.mirrors = specification.mirrors
        let retry = settings.retry(of: specification)
        request.leavesFailingSource = record.failures >= max(2, retry.attempts - Self.lastAttempts)
        request.confirmationDelay = retry.baseDelay
        request.maximumRate = specification.limit
        request.checksDestinationFirst = [.io, .permissionDenied].contains(record.error?.code)
        var target = DownloadTarget(
            directory: directory, partName: Self.partName(record.id, identity: identity), owner: owner,
            reservedSpace: place.reservedSpace,
            destination: { [naming] (resource: ResourceMetadata) throws(TransferError) in
                try naming.destination(resource, in: directory, known: likely)
            })
        target.share = share
        target.isNew = !hasPast
        let progress = TransferProgress(completedBytes: record.bytesDone, totalBytes: record.bytesTotal)
        let made = manager.download(request, to: target, resumingWith: resumeData, progress: progress)
        if specification.maxAttempts != nil { made.retry(with: InterruptionRetrier(policy: retry)) }
        return .download(made)
    }

    private func pieces(of id: TaskID) throws(TransferError) -> PieceHashes? {
        do throws(StoreError) {
            return try store.pieceHashes(of: id)
        } catch {
            throw TransferError(.io, "the store cannot be read: \(error)")
        }
    }

    private static func digests(_ hashes: PieceHashes?) -> PieceDigests? {
        hashes.flatMap { hashes in
            FileDigest.Algorithm(rawValue: hashes.algorithm.rawValue).flatMap {
                PieceDigests(algorithm: $0, length: hashes.length, hashes: hashes.hashes)
            }
        }
    }

    /// Returns the finished file of `owner`, also where it got a numbered name from an earlier daemon process.
    static func published(
        _ names: [String], by owner: String, in directory: Directory, _ policy: ConflictPolicy,
        _ earlierNames: EarlierNames
    ) -> (name: String, size: Int64)? {
        for wanted in names {
            if let size = directory.publishedSize(of: wanted, by: owner) { return (wanted, size) }
            guard policy == .rename, directory.contains(wanted) else { continue }
            if let found = earlierNames.find(owner, wanting: wanted, in: directory, numbering: FileName.numbered) {
                return found
            }
        }
        return nil
    }

    /// Removes the part file of a task that completed without it.
    private func removePart(of record: TaskRecord, from directory: Directory) {
        let owner = Self.owner(of: record, identity: identity)
        // A part file that cannot be removed now is found by the scan after the task has ended.
        _ = try? directory.removePart(Self.partName(record.id, identity: identity), of: owner)
    }

    private mutating func directory(
        _ asked: RecentDirectories.Key
    ) throws(TransferError) -> RecentDirectories.Found {
        if let found = directories[asked] ?? shared.recentDirectories.find(asked, now: now) {
            directories[asked] = found
            return found
        }
        let place: DownloadPlace
        do throws(FieldError) {
            place = try DownloadPlace(directory: asked.directory, owner: asked.user.uid, settings: settings)
        } catch {
            // EPERM marks the error as temporary, since a changed configuration may allow the directory again.
            throw TransferError(.pathNotAllowed, error.message, systemError: EPERM)
        }
        try shared.detachedPlaces.check(place.path)
        let directory: Directory
        do throws(TransferError) {
            directory = try place.make(for: asked.user, settings: settings)
        } catch {
            // An error without a system error is a missing permission of the user, not a disk problem.
            guard error.systemError != nil else { throw error }
            throw place.problem(settings.inspector).map(Self.error) ?? error
        }
        shared.detachedPlaces.record(directory)
        // The check precedes the first request, so that no data is requested that cannot be stored.
        if let problem = place.problem(settings.inspector) { throw Self.error(problem) }
        let found = RecentDirectories.Found(
            directory: directory, reservedSpace: directory.reserve(settings.minimumFree))
        directories[asked] = found
        shared.recentDirectories.record(found, for: asked, now: now)
        return found
    }

    private static func error(_ problem: PlaceProblem) -> TransferError {
        let code: TransferError.Code = problem.code == .permissionDenied ? .permissionDenied : .io
        return TransferError(code, problem.description, systemError: problem.systemError)
    }

    /// Returns the file that the task fetched before it was retried, if it is still there.
    private static func earlierFile(_ record: TaskRecord, in directory: Directory, identity: String) -> EarlierFile? {
        guard record.round > 0, let name = record.path.map(FileName.last) else { return nil }
        var earlier = record
        earlier.round -= 1
        let owner = owner(of: earlier, identity: identity)
        return directory.publishedSize(of: name, by: owner) == nil ? nil : EarlierFile(name: name, owner: owner)
    }

    /// Returns the mark that identifies a task on its part file. It is unique across all databases: even a task that
    /// got the same number after an older copy of the database was restored has a different one, and a task that is
    /// fetched again as well.
    static func owner(of record: TaskRecord, identity: String) -> String {
        "\(identity)-\(record.id)-\(String(record.createdAt, radix: 36))" + (record.round > 0 ? ".\(record.round)" : "")
    }
}

/// The file of a completed download that is fetched again.
struct EarlierFile: Sendable {
    var name: String
    /// The mark on the file.
    var owner: String
}

/// The choice of a download's file name, in this order: the task's option, the server's suggestion, the name in the
/// Metalink, the last segment of the URL or of the one to which it was redirected.
struct DownloadNaming: Sendable {
    let specification: TaskSpecification
    let policy: ConflictPolicy
    /// The expected digest of the file.
    var checksum: Checksum?
    /// The list of digests in which the file is looked up by the name that its server gives it.
    var list: ChecksumList?
    var pieces: PieceDigests?
    /// The name in the Metalink at the task's URL.
    var described: String?
    /// The file that the new one replaces.
    var earlier: EarlierFile?
    /// The uid of the task's owner; `nil` unless the directory is shared with other users.
    var user: UInt32?
    /// Whether the users' private directories are in this directory.
    var holdsOwnDirectories = false

    init(specification: TaskSpecification, settings: QueueSettings) {
        self.specification = specification
        policy = settings.conflictPolicy(of: specification)
        checksum = specification.checksum.flatMap { try? Checksum(parsing: $0) }
    }

    /// Returns the destination of the file.
    ///
    /// - Parameters:
    ///   - known: the name found by an earlier attempt, for use where no response suggests one.
    func destination(
        _ resource: ResourceMetadata, in directory: Directory, known: String?
    ) throws(TransferError) -> FileDestination {
        var name = earlier?.name ?? specification.output ?? self.name(of: resource, known: known)
        // The name could otherwise block the private directory of a user who has none yet.
        if user != nil, holdsOwnDirectories, AccountNames.isDirectoryName(name) { name = FileName.numbered(name, 1) }
        let conflict: FileDestination.Conflict =
            switch earlier == nil ? policy : .overwrite {
            case .rename: .rename { FileName.numbered($0, $1) }
            case .overwrite: .overwrite
            case .skip: .skip
            case .fail: .fail
            }
        if case .fail = conflict, directory.contains(name) {
            throw TransferError.taken(name, in: directory)
        }
        if case .overwrite = conflict { try directory.checkReplacing(name, for: user) }
        var checksum = checksum
        if let list, let url = specification.checksumURL {
            let names = [resource.suggestedFileName, name].compactMap(\.self)
            checksum = try Lookup.checksum(of: names, in: list, at: url)
        }
        var destination = FileDestination(name: name, conflict: conflict)
        destination.user = user
        destination.replaceable = earlier?.owner
        if let checksum,
            let algorithm = FileDigest.Algorithm(rawValue: checksum.algorithm.rawValue)
        {
            destination.digest = FileDigest(algorithm: algorithm, hex: checksum.hex)
        }
        destination.keepsCurrentFile = specification.update
        destination.size = specification.size
        destination.pieces = pieces
        if !specification.noMtime { destination.modificationTime = resource.lastModified }
        return destination
    }

    private func name(of resource: ResourceMetadata, known: String?) -> String {
        let suggested = resource.suggestedFileName.flatMap(FileName.makeSafe)
        let redirected = resource.redirectedFileName.flatMap(FileName.makeSafe)
        let fromURL = FileName.fromURL(specification.url)
        let known = resource.head == nil ? known : nil
        let ofSource: String? =
            switch specification.nameFrom {
            case .url: fromURL
            case .final: redirected ?? known ?? fromURL
            case .header: suggested ?? known ?? fromURL
            case nil: suggested
            }
        return ofSource ?? described ?? known
            ?? SafeFileName.chosen(fromURL: fromURL, redirected: redirected)
    }
}
