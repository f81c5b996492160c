import Glibc
import TaskModel
import TaskStore
import Transfer

/// A relocation of the part files of tasks to another directory.
///
/// The order of the steps makes it crash-safe: record the move, rename the part file, change the task's directory,
/// delete the record of the move. At each step the task's record names the directory to which its part file belongs.
/// After a crash, ``settle(_:)`` moves the part file there for each recorded move. None of these tasks runs meanwhile.
struct PartRelocation {
    let store: TaskStore
    let settings: QueueSettings
    /// The registry of directories whose file system was unmounted.
    let detachedPlaces: DetachedPlaces

    /// The result of ``begin(_:to:by:)``.
    struct Begun {
        /// The tasks whose part files have been moved or may have been.
        var moves: [PartMove] = []
        /// The tasks whose part files stay where they are, with the reason.
        var refused: [TaskID: FieldError] = [:]
    }

    private struct Candidate {
        var record: TaskRecord
        /// The directory as the task's record will name it.
        var directory: String?
        var from: Directory
        var to: Directory
    }

    /// Moves the part files of `ids` into the final form of `directory` for each owner, before the tasks' records
    /// change. Tasks without a part file are skipped.
    ///
    /// - Parameters:
    ///   - directory: the directory as the caller requested it.
    ///   - caller: the caller, whose permissions apply to the caller's own tasks. For the tasks of another owner, the
    ///     permissions of the owner's account apply.
    func begin(_ ids: [TaskID], to directory: String?, by caller: Caller) async throws(StoreError) -> Begun {
        var begun = Begun()
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        var candidates: [Candidate] = []
        try store.forEachRecord(of: ids, owner: nil) { record in
            guard record.specification.kind == .download else { return }
            let asked: String?
            do throws(FieldError) {
                asked = try DownloadPlace.settled(directory, isShared: false, owner: record.owner, settings: settings)
            } catch {
                begun.refused[record.id] = error
                return
            }
            if record.specification.directory == asked { return }
            let user =
                record.owner == caller.uid
                ? caller.identity : UserIdentity(uid: record.owner, groups: AccountNames.groups(of: record.owner))
            do throws(TransferError) {
                guard let from = try source(of: record, &places), from.contains(name(of: record.id)) else { return }
                let to = try places.made(asked, of: record.owner, for: user)
                if from.inode != to.inode {
                    candidates.append(Candidate(record: record, directory: asked, from: from, to: to))
                }
            } catch {
                begun.refused[record.id] = Self.refusal(of: record, error)
            }
        }
        begun.moves = candidates.map {
            PartMove(id: $0.record.id, directories: [$0.record.specification.directory, $0.directory])
        }
        try await store.record(begun.moves)
        var touched = TouchedDirectories()
        for candidate in candidates {
            do throws(TransferError) {
                // An existing part file in the target directory is replaced. The one in the source directory is the one
                // that the task's record describes.
                _ = try candidate.from.move(name(of: candidate.record.id), to: candidate.to, replaces: true)
                touched.insert(candidate.from)
                touched.insert(candidate.to)
            } catch {
                begun.refused[candidate.record.id] = Self.refusal(of: candidate.record, error)
            }
        }
        touched.synchronize()
        return begun
    }

    /// Opens the directory of a task's part. One that cannot be opened is of no concern to a task without bytes.
    private func source(of record: TaskRecord, _ places: inout Places) throws(TransferError) -> Directory? {
        do throws(TransferError) {
            return try places.existing(record.specification.directory, of: record.owner)
        } catch {
            guard record.bytesDone == 0 else { throw error }
            return nil
        }
    }

    /// Returns those of `ids` whose files were published by an earlier daemon process that stopped before it could
    /// record the completion. Their next run records it, so nothing about them can be changed.
    ///
    /// - Parameter field: the field for the error.
    func finished(_ ids: [TaskID], field: String) throws(StoreError) -> [TaskID: FieldError] {
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        let earlierNames = EarlierNames()
        var refused: [TaskID: FieldError] = [:]
        try store.forEachRecord(of: ids, owner: nil) { record in
            guard record.specification.kind == .download,
                record.lifecycle.state != .completed,
                record.id <= store.newestTaskAtOpening || record.attempts > 0 || record.startedAt != nil,
                let name = record.path.map(FileName.last),
                // A directory that cannot be opened is skipped. The component that needs it reports the error.
                let directory = (try? places.existing(record.specification.directory, of: record.owner)) ?? nil,
                let file = RequestMaker.published(
                    [name], by: RequestMaker.owner(of: record, identity: store.identity), in: directory,
                    record.specification.onConflict ?? settings.onConflict, earlierNames)
            else { return }
            refused[record.id] = FieldError(
                field: field,
                message: "cannot be changed any more: \(directory.path(of: file.name)) is finished, and the task "
                    + "completes when it runs next")
        }
        return refused
    }

    /// Moves each part file to the current directory of its task and deletes the record of the move. Removes the part
    /// file of a task that no longer exists.
    func settle(_ moves: [PartMove]) async throws(StoreError) {
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        var touched = TouchedDirectories()
        var settled: Set<TaskID> = []
        for move in moves {
            let record = try store.record(move.id, owner: nil)
            do throws(TransferError) {
                try settle(move, record, &places, &touched)
                settled.insert(move.id)
            } catch {
                // The record of the move is kept. The daemon tries again at its next start.
                continue
            }
        }
        touched.synchronize()
        try await store.forgetPartMoves(of: settled)
    }

    private func settle(
        _ move: PartMove, _ record: TaskRecord?, _ places: inout Places, _ touched: inout TouchedDirectories
    ) throws(TransferError) {
        let name = name(of: move.id)
        for directory in move.directories where record == nil || directory != record?.specification.directory {
            // The private directory of an unknown owner is left to the scan for leftover part files.
            guard record != nil || !DownloadPlace.isOwn(directory),
                let from = try places.existing(directory, of: record?.owner ?? settings.daemonUser),
                from.contains(name)
            else { continue }
            var isMoved = false
            if let record, record.lifecycle.state != .completed {
                // The owner's permissions were checked before the move was recorded.
                let to = try places.made(
                    record.specification.directory, of: record.owner, for: UserIdentity(uid: 0, groups: []))
                if from.inode == to.inode { continue }
                do throws(TransferError) {
                    isMoved = try from.move(name, to: to, replaces: false)
                    touched.insert(to)
                } catch  where error.systemError == EEXIST {
                    // The task has run in the new directory since, and has a part file there.
                }
            }
            if !isMoved { try from.remove(name) }
            touched.insert(from)
        }
    }

    private func name(of id: TaskID) -> String { RequestMaker.partName(id, identity: store.identity) }

    private static func refusal(of record: TaskRecord, _ error: TransferError) -> FieldError {
        let bytes = ByteSize.describe(record.bytesDone)
        guard error.systemError == EXDEV else {
            return FieldError(
                field: "directory", code: ErrorCode(rawValue: error.code.rawValue),
                message: "cannot be changed, because moving the \(bytes) already downloaded failed: \(error.message)")
        }
        return FieldError(
            field: "directory", code: .pathNotAllowed,
            message: "is on another file system than the \(bytes) already downloaded; give a directory on the same "
                + "file system, or remove the task and add it again to download them again")
    }

    /// A cache of the opened directories of tasks.
    private struct Places {
        let settings: QueueSettings
        let detachedPlaces: DetachedPlaces
        private var opened: [String: Directory] = [:]
        private var made: [MadePlace: Directory] = [:]

        private struct MadePlace: Hashable {
            var place: DownloadPlace
            var user: UserIdentity
        }

        init(settings: QueueSettings, detachedPlaces: DetachedPlaces) {
            self.settings = settings
            self.detachedPlaces = detachedPlaces
        }

        /// Opens an existing directory.
        ///
        /// - Returns: `nil` where the directory does not exist or is no longer allowed.
        mutating func existing(_ directory: String?, of owner: UInt32) throws(TransferError) -> Directory? {
            guard let place = try? DownloadPlace(directory: directory, owner: owner, settings: settings) else {
                return nil
            }
            if let directory = opened[place.path] { return directory }
            try detachedPlaces.check(place.path)
            let found = try place.existing()
            opened[place.path] = found
            return found
        }

        mutating func made(
            _ directory: String?, of owner: UInt32, for user: UserIdentity
        ) throws(TransferError) -> Directory {
            let place = try DownloadPlace(allowed: directory, owner: owner, settings: settings)
            if let judged = made[MadePlace(place: place, user: user)] { return judged }
            try detachedPlaces.check(place.path)
            let directory = try place.make(for: user, settings: settings)
            made[MadePlace(place: place, user: user)] = directory
            return directory
        }
    }
}
