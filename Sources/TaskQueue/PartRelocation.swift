import Glibc
import TaskModel
import TaskStore
import Transfer

/// Takes the part files of tasks along to another directory.
///
/// The order makes it safe against a death at any moment: the move is noted, the part is renamed, the task asks for the
/// other directory, the note is forgotten. The task's record says at each of these moments where its part belongs, and
/// whoever finds a note afterwards brings the part there (``settle(_:)``). Nothing of these tasks runs meanwhile.
struct PartRelocation {
    let store: TaskStore
    let settings: QueueSettings
    /// Whether a directory's file system was taken off its place.
    let detachedPlaces: DetachedPlaces

    /// What came of the beginning.
    struct Begun {
        /// Those whose parts have moved or may have.
        var moves: [PartMove] = []
        /// Those that stay where they are.
        var refused: [TaskID: FieldError] = [:]
    }

    private struct Candidate {
        var record: TaskRecord
        /// As the task will name it.
        var directory: String?
        var from: Directory
        var to: Directory
    }

    /// Moves the parts of `ids` to where `directory` is for their owners, before the tasks ask for it; tasks without a
    /// part are passed over.
    ///
    /// - Parameters:
    ///   - directory: as the caller asked for it.
    ///   - caller: whose rights count where the task is her own; otherwise the owner's do, as her account has them.
    func begin(_ ids: [TaskID], to directory: String?, by caller: Caller) async throws(StoreError) -> Begun {
        var begun = Begun()
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        var candidates: [Candidate] = []
        for id in ids {
            guard let record = try store.record(id, owner: nil), record.specification.kind == .download else {
                continue
            }
            let asked: String?
            do throws(FieldError) {
                asked = try DownloadPlace.settled(directory, isShared: false, owner: record.owner, settings: settings)
            } catch {
                begun.refused[id] = error
                continue
            }
            if record.specification.directory == asked { continue }
            let user =
                record.owner == caller.uid
                ? caller.identity : UserIdentity(uid: record.owner, groups: AccountNames.groups(of: record.owner))
            do throws(TransferError) {
                guard let from = try places.existing(record.specification.directory, of: record.owner),
                    from.contains(name(of: id))
                else { continue }
                let to = try places.made(asked, of: record.owner, for: user)
                if from.inode != to.inode {
                    candidates.append(Candidate(record: record, directory: asked, from: from, to: to))
                }
            } catch {
                begun.refused[id] = Self.refusal(of: record, error)
            }
        }
        begun.moves = candidates.map {
            PartMove(id: $0.record.id, directories: [$0.record.specification.directory, $0.directory])
        }
        try await store.note(begun.moves)
        var touched = TouchedDirectories()
        for candidate in candidates {
            do throws(TransferError) {
                // The one here is the one that the task's record speaks of.
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

    /// Those of `ids` whose files an earlier life of the daemon finished and could not note down any more: their next run
    /// notes it, and nothing of them can be changed.
    ///
    /// - Parameter field: what the refusal is about.
    func finished(_ ids: [TaskID], field: String) throws(StoreError) -> [TaskID: FieldError] {
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        let earlierNames = EarlierNames()
        var refused: [TaskID: FieldError] = [:]
        for id in ids {
            guard let record = try store.record(id, owner: nil), record.specification.kind == .download,
                record.standing.state != .completed,
                record.id <= store.newestTaskAtOpening || record.attempts > 0 || record.startedAt != nil,
                let name = record.path.map(FileName.last),
                // One that cannot be opened is told of by whoever needs it.
                let directory = (try? places.existing(record.specification.directory, of: record.owner)) ?? nil,
                let file = RequestMaker.published(
                    [name], by: RequestMaker.owner(of: record, identity: store.identity), in: directory,
                    record.specification.onConflict ?? settings.onConflict, earlierNames)
            else { continue }
            refused[id] = FieldError(
                field: field,
                message: "cannot be changed any more: \(directory.path(of: file.name)) is finished, and the task "
                    + "completes when it runs next")
        }
        return refused
    }

    /// Brings each part to where its task asks for it now, and forgets the moves of those that lie there; a part whose
    /// task is gone is removed.
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
                // The note stays: the daemon's next start looks again.
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
            // In the own directory of an owner who is not known any more, the search for leftover parts finds it.
            guard record != nil || !DownloadPlace.isOwn(directory),
                let from = try places.existing(directory, of: record?.owner ?? settings.daemonUser),
                from.contains(name)
            else { continue }
            var isMoved = false
            if let record, record.standing.state != .completed {
                // That its owner may was judged before the move was noted.
                let to = try places.made(
                    record.specification.directory, of: record.owner, for: UserIdentity(uid: 0, groups: []))
                if from.inode == to.inode { continue }
                do throws(TransferError) {
                    isMoved = try from.move(name, to: to, replaces: false)
                    touched.insert(to)
                } catch  where error.systemError == EEXIST {
                    // The task has run there since.
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
                message: "cannot take along the \(bytes) that are here already: \(error.message)")
        }
        return FieldError(
            field: "directory", code: .pathNotAllowed,
            message: "is on another file system than the \(bytes) that are here already; name one on the same file "
                + "system, or remove the task and add it anew to fetch them again")
    }

    /// Directories of tasks, each opened once.
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

        /// - Returns: `nil` where there is no such directory, or where tasks may not use it any more.
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
            let place: DownloadPlace
            do throws(FieldError) {
                place = try DownloadPlace(directory: directory, owner: owner, settings: settings)
            } catch {
                throw TransferError(.pathNotAllowed, error.message)
            }
            if let judged = made[MadePlace(place: place, user: user)] { return judged }
            try detachedPlaces.check(place.path)
            let directory = try place.make(for: user, settings: settings)
            made[MadePlace(place: place, user: user)] = directory
            return directory
        }
    }
}
