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
        var from: Directory
        var to: Directory
    }

    /// Moves the parts of `ids` to `directory`, before the tasks ask for it; tasks without a part are passed over.
    func begin(_ ids: [TaskID], to directory: String?) async throws(StoreError) -> Begun {
        var begun = Begun()
        var places = Places(settings: settings, detachedPlaces: detachedPlaces)
        var candidates: [Candidate] = []
        for id in ids {
            guard let record = try store.record(id, owner: nil), record.specification.kind == .download,
                record.specification.directory != directory
            else { continue }
            do throws(TransferError) {
                guard let from = try places.existing(record.specification.directory), from.contains(name(of: id))
                else { continue }
                let to = try places.made(directory)
                if from.inode != to.inode { candidates.append(Candidate(record: record, from: from, to: to)) }
            } catch {
                begun.refused[id] = Self.refusal(of: record, error)
            }
        }
        begun.moves = candidates.map {
            PartMove(id: $0.record.id, directories: [$0.record.specification.directory, directory])
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
        var refused: [TaskID: FieldError] = [:]
        for id in ids {
            guard let record = try store.record(id, owner: nil), record.specification.kind == .download,
                record.standing.state != .completed,
                record.id <= store.newestTaskAtOpening || record.attempts > 0 || record.startedAt != nil,
                let name = record.path.map(FileName.last),
                // One that cannot be opened is told of by whoever needs it.
                let directory = (try? places.existing(record.specification.directory)) ?? nil,
                let file = RequestMaker.published(
                    [name], by: RequestMaker.owner(of: record, identity: store.identity), in: directory,
                    record.specification.onConflict ?? settings.onConflict)
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
            guard let from = try places.existing(directory), from.contains(name) else { continue }
            var isMoved = false
            if let record, record.standing.state != .completed {
                let to = try places.made(record.specification.directory)
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

        init(settings: QueueSettings, detachedPlaces: DetachedPlaces) {
            self.settings = settings
            self.detachedPlaces = detachedPlaces
        }

        /// - Returns: `nil` where there is no such directory, or where tasks may not use it any more.
        mutating func existing(_ directory: String?) throws(TransferError) -> Directory? {
            guard let place = try? DownloadPlace(directory: directory, settings: settings) else { return nil }
            do throws(TransferError) {
                return try open(place) { () throws(TransferError) in
                    try Directory.open(existing: place.root, subdirectory: place.subdirectory)
                }
            } catch  where error.systemError == ENOENT || error.systemError == ENOTDIR {
                return nil
            }
        }

        mutating func made(_ directory: String?) throws(TransferError) -> Directory {
            let place: DownloadPlace
            do throws(FieldError) {
                place = try DownloadPlace(directory: directory, settings: settings)
            } catch {
                throw TransferError(.pathNotAllowed, error.message)
            }
            return try open(place) { () throws(TransferError) in
                try Directory.open(root: place.root, subdirectory: place.subdirectory, makesRoot: place.makesRoot)
            }
        }

        private mutating func open(
            _ place: DownloadPlace, _ open: () throws(TransferError) -> Directory
        ) throws(TransferError) -> Directory {
            if let directory = opened[place.path] { return directory }
            try detachedPlaces.check(place.path)
            let directory = try open()
            opened[place.path] = directory
            return directory
        }
    }
}
