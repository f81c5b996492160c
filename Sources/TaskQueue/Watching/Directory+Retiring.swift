import Glibc
import TaskModel
import Transfer

extension Directory {
    /// Names that others may take first, and bytes that are left for a number and the note's suffix.
    private static let attempts = 100
    private static let namesLength = FileName.maximumLength - 24

    /// Moves the file `name` into a directory in this one, by that name or one with a number behind it, and writes
    /// `NAME.note.txt` beside it. When this returns, both are on the disk.
    ///
    /// The note comes first: a file that was moved always has one.
    ///
    /// - Returns: `false` where another file has that name by now, or none.
    func retire(
        _ name: String, _ identity: UploadSource.Identity, into subdirectory: String, note: String
    ) throws(TransferError) -> Bool {
        let place = try making(subdirectory)
        // Whoever owns it could give what lies in it another name, and have it queued again.
        guard place.isOwned(by: [0, geteuid()]) else {
            throw TransferError(
                .permissionDenied, "\(subdirectory) is another user's: remove it, and the daemon makes its own")
        }
        // It gets its name when it is whole.
        let draft = ".note-\(identity.inode)"
        try place.remove(draft)
        guard try place.makeFile(draft, holding: note) else {
            throw TransferError(.nameConflict, "\(draft) came to be in \(subdirectory)")
        }
        defer { try? place.remove(draft) }
        var base = name
        while base.utf8.count > Self.namesLength { base.removeLast() }
        let names = NumberedNames(directory: place, wanted: base, numbering: FileName.numbered)
        var number = 0
        for _ in 0..<Self.attempts {
            let newName = number == 0 ? base : names.name(number)
            let noteName = newName + ".note.txt"
            // Should this name be of no use, then the next one.
            guard let next = names.free(above: number) else { break }
            number = next
            guard !place.contains(newName) else { continue }
            // A kill may have come between the note and the move.
            guard try place.move(draft, to: place, as: noteName) || place.holds(note, in: noteName) else { continue }
            var isMoved = false
            defer { if !isMoved { _ = try? place.move(noteName, to: place, as: draft) } }
            switch entry(name) {
            case .file(let file) where file.identity == identity: break
            case .unreadable(identity, _, _): break
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
