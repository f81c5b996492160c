import Glibc
import TaskModel
import Transfer

extension Directory {
    /// The maximum number of attempts to find a free name, since other processes may take names concurrently.
    private static let attempts = 100
    /// The maximum length of a base name in bytes, which leaves room for a number and the suffix of the note.
    private static let namesLength = FileName.maximumLength - 24

    /// Moves the file `name` into a subdirectory, under its name or a numbered one, and writes `NAME.note.txt` next to
    /// it. Both are synced to disk when the function returns.
    ///
    /// The note is written first, so that a moved file always has one.
    ///
    /// - Returns: `false` where the name now belongs to another file or to none.
    func retire(
        _ name: String, _ identity: UploadSource.Identity, into subdirectory: String, note: String
    ) throws(TransferError) -> Bool {
        let place = try making(subdirectory)
        // The owner of the subdirectory could rename the files in it and have them queued again.
        guard place.isOwned(by: [0, geteuid()]) else {
            throw TransferError(
                .permissionDenied, "\(subdirectory) belongs to another user: remove it, and the daemon creates its own")
        }
        // The note is written under a temporary name and renamed when it is complete.
        let draft = ".note-\(identity.inode)"
        try place.remove(draft)
        guard try place.makeFile(draft, holding: note) else {
            throw TransferError(.nameConflict, "\(draft) appeared in \(subdirectory)")
        }
        defer { try? place.remove(draft) }
        var base = name
        while base.utf8.count > Self.namesLength { base.removeLast() }
        let names = NumberedNames(directory: place, wanted: base, numbering: FileName.numbered)
        var number = 0
        for _ in 0..<Self.attempts {
            let newName = number == 0 ? base : names.name(number)
            let noteName = newName + ".note.txt"
            // The next name is tried if this one turns out to be taken.
            guard let next = names.free(above: number) else { break }
            number = next
            guard !place.contains(newName) else { continue }
            // The daemon may have been killed between writing the note and moving the file.
            guard try place.move(draft, to: place, as: noteName) || place.holds(note, in: noteName) else { continue }
            var isMoved = false
            defer { if !isMoved { _ = try? place.move(noteName, to: place, as: draft) } }
            switch entry(name) {
            case .file(let file) where file.identity == identity: break
            case .unreadable(identity, _), .leased(identity): break
            default: return false
            }
            guard try move(name, to: place, as: newName) else { continue }
            isMoved = true
            try place.synchronize()
            try synchronize()
            return true
        }
        throw TransferError(.nameConflict, "there are too many files called \(base) in \(subdirectory)")
    }

    private func holds(_ text: String, in name: String) -> Bool {
        guard case .file(let file) = entry(name) else { return false }
        let bytes = (try? file.read(limit: text.utf8.count)) ?? nil
        return bytes.map { $0.elementsEqual(text.utf8) } ?? false
    }
}
