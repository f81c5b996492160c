import Glibc
import Logging
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// The processing of dropped files. It queues a file and moves it away, with a note about the result next to it.
///
/// A file is never queued twice, even if the daemon is killed at any time. The commit that queues its entries also
/// writes a receipt with the file's identity (directory, inode, modification time and size). Then the file is moved,
/// its new location is synced to disk, and the receipt is deleted. A file that is found with a receipt is only moved.
struct DropIntake: Sendable {
    let watch: Watch
    let queue: TaskQueue
    let rules: DropRules
    let clock: QueueClock
    let logger: Logger
    let work: BlockingWork
    var problems = DropProblems()

    /// The maximum size of a file in bytes. Parsing a file takes many times its size in memory.
    static let sizeLimit = 16 << 20
    /// The maximum number of values in a dropped file. Each takes some 250 bytes while the file is read.
    private static let valueLimit = 500_000

    enum Outcome: Equatable {
        /// The file was moved away.
        case done
        /// The file was modified meanwhile, or is gone.
        case changed
        /// The file cannot be queued for a reason that may be temporary.
        case later(String)
        /// The file was queued or refused but cannot be moved away for now. It is not queued again.
        case stuck(String)
    }

    func accept(_ name: String, _ file: EntryFile, in directory: Directory) async -> Outcome {
        let receipt = Self.receipt(file.identity, in: directory, watch)
        do throws(QueueError) {
            if let known = try queue.receipt(receipt) {
                return await finish(name, file.identity, in: directory, .done, Self.note(known, batch: nil), receipt)
            }
        } catch {
            return .later(error.refusal?.message ?? "")
        }
        guard rules.mayQueue(file.owner) else {
            return await refuse(name, file.identity, in: directory, "user \(file.owner) may not use this daemon")
        }
        if let objection = authorshipObjection(file, in: directory) {
            return await refuse(name, file.identity, in: directory, "\(name) \(objection)")
        }
        let content: QueueFile
        do throws(DropFault) {
            content = try await work.attempt { () throws(DropFault) in try read(name, file) }
        } catch {
            switch error {
            case .changed: return .changed
            case .refused(let message): return await refuse(name, file.identity, in: directory, message)
            }
        }
        do throws(QueueError) {
            let applied = try await queue.applyOnce(
                content.entries.map(\.specification), batch: content.batch, receipt: receipt,
                by: Caller(account: file.owner, isAdministrator: rules.isAdministrator(file.owner)))
            logger.info(
                "a dropped file was queued",
                metadata: [
                    "file": "\(directory.path(of: name))", "owner": "\(file.owner)", "added": "\(applied.added)",
                    "updated": "\(applied.updated)", "unchanged": "\(applied.unchanged)",
                ])
            let note = Self.note(applied, batch: content.batch) + content.notes.map { "\($0)\n" }.joined()
            return await finish(name, file.identity, in: directory, .done, note, receipt)
        } catch {
            let refusal = error.refusal?.message
            if error.isPassing { return .later(refusal ?? "the queue refused the file") }
            return await refuse(name, file.identity, in: directory, Self.text(of: error, content, name))
        }
    }

    /// Returns the reason why the file may not be the work of its owner: other users may have written it, or may have
    /// moved one of the owner's files here.
    private func authorshipObjection(_ file: EntryFile, in directory: Directory) -> String? {
        if file.isWritableByOthers {
            return
                "may be written to by users other than its owner; remove that permission (chmod go-w) and drop it again"
        }
        // Files that the daemon itself creates, such as downloads and notes, belong to its user.
        let isPrivileged = [0, queue.settings.daemonUser].contains(file.owner)
        guard isPrivileged, !directory.isWritableOnly([0, queue.settings.daemonUser]) else { return nil }
        return "belongs to the daemon's user or root, and others may move such files into this directory; "
            + "use dlctl, or a directory that nobody else may write to"
    }

    /// Moves a file away without queueing it.
    func refuse(
        _ name: String, _ identity: UploadSource.Identity, in directory: Directory, _ message: String
    ) async -> Outcome {
        let outcome = await finish(name, identity, in: directory, .failed, message + "\n", nil)
        if case .stuck(let reason) = outcome { return .stuck("it was refused (\(message)), and \(reason)") }
        logger.warning(
            "a dropped file was refused",
            metadata: ["file": "\(directory.path(of: name))", "reason": "\(message)"])
        return outcome
    }

    // MARK: Reading

    private enum DropFault: Error {
        case changed
        case refused(String)
    }

    private func read(_ name: String, _ file: EntryFile) throws(DropFault) -> QueueFile {
        let bytes: [UInt8]?
        do throws(TransferError) {
            bytes = try file.read(limit: Self.sizeLimit)
        } catch {
            throw .refused("\(name): \(error.message)")
        }
        guard file.isUnchanged else { throw .changed }
        guard let bytes else {
            throw .refused(
                "\(name) is longer than \(ByteSize.describe(Int64(Self.sizeLimit))), the maximum for a dropped file; "
                    + "use dlctl add --input")
        }
        guard Self.mostValues(in: bytes) <= Self.valueLimit else {
            throw .refused(
                "\(name) may have more than \(Self.valueLimit) values, the maximum for a dropped file; "
                    + "use dlctl add --input")
        }
        let now = clock.now()
        // The daemon opens no path named by another user. Upload sources are excepted, since they are checked
        // separately.
        let isTrusted = [0, queue.settings.daemonUser].contains(file.owner)
        let readFile = rules.readFile
        do throws(FileError) {
            var content = try InputFile.parse(
                bytes, file: name, baseDirectory: watch.directory, now: now,
                utcOffset: { LocalClock.utcOffset(at: $0) },
                readFile: { (path, limit) throws(UnreadableFile) in
                    guard isTrusted else {
                        throw UnreadableFile(
                            "the daemon does not open files that a dropped file of user \(file.owner) names; "
                                + "use dlctl, which passes their content to the daemon")
                    }
                    return try readFile(path, limit)
                })
            try watch.defaults.fill(&content, named: name, now: now) { LocalClock.utcOffset(at: $0) }
            return content
        } catch {
            throw .refused(error.lines.joined(separator: "\n"))
        }
    }

    /// Returns an upper bound of the number of values in a file of any format.
    private static func mostValues(in bytes: [UInt8]) -> Int {
        var (count, previous) = (1, UInt8(ascii: "\n"))
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: ","), UInt8(ascii: "["), UInt8(ascii: "{"),
                UInt8(ascii: "<"):
                count += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                switch previous {
                case UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "?"): count += 1
                default: break
                }
            default: break
            }
            previous = byte
        }
        return count
    }

    private static func text(of error: QueueError, _ content: QueueFile, _ name: String) -> String {
        if let fault = error.fault(in: content.entries, of: name) { return "\(fault)" }
        if case .field(let error) = error { return "\(name): \(error)" }
        return "\(name): \(error.refusal?.message ?? "the queue refused the file")"
    }

    // MARK: Moving away

    private enum Place: String {
        case done = ".done"
        case failed = ".failed"
    }

    private func finish(
        _ name: String, _ identity: UploadSource.Identity, in directory: Directory, _ place: Place, _ note: String,
        _ receipt: String?
    ) async -> Outcome {
        do throws(TransferError) {
            let moved = try await work.attempt { () throws(TransferError) in
                try directory.retire(name, identity, into: place.rawValue, note: note)
            }
            guard moved else { return .changed }
        } catch {
            return .stuck(error.message)
        }
        // If this fails, the first scan after the next start deletes the receipt.
        if let receipt { try? await queue.forgetReceipts([receipt]) }
        return .done
    }

    // MARK: Receipts

    /// Returns the common prefix of a directory's receipts. It contains the directory's inode, since another file
    /// system may be mounted there later.
    static func receiptPrefix(_ directory: Directory, _ watch: Watch) -> String {
        "watch\n\(watch.directory)\n\(directory.inode.number)\n"
    }

    static func receipt(_ identity: UploadSource.Identity, in directory: Directory, _ watch: Watch) -> String {
        receiptPrefix(directory, watch) + "\(identity.inode) \(identity.modified) \(identity.size)"
    }

    /// Deletes receipts of files that no longer exist. They remain if the daemon was killed between moving a file and
    /// deleting its receipt.
    func sweep(_ directory: Directory, present names: [String]) async {
        guard let receipts = try? queue.receipts(beginningWith: Self.receiptPrefix(directory, watch)),
            !receipts.isEmpty
        else { return }
        let watch = watch
        let present = await work.run {
            Set(
                names.compactMap { name -> String? in
                    switch directory.entry(name) {
                    case .file(let file): Self.receipt(file.identity, in: directory, watch)
                    case .unreadable(let identity, _), .leased(let identity):
                        Self.receipt(identity, in: directory, watch)
                    case .other, .nothing: nil
                    }
                })
        }
        try? await queue.forgetReceipts(receipts.filter { !present.contains($0) })
    }

    /// The maximum number of id ranges listed in a note.
    private static let shownRanges = 100

    private static func note(_ receipt: StagedBatchReceipt, batch: String?) -> String {
        let ids = receipt.ids.prefix(shownRanges).compactMap { range -> String? in
            guard let first = range.first, let last = range.last else { return nil }
            return first == last ? "\(first)" : "\(first)-\(last)"
        }
        return (batch.map { "batch \($0): " } ?? "")
            + "\(receipt.added) added, \(receipt.updated) updated, \(receipt.unchanged) unchanged\n"
            + (ids.isEmpty
                ? "" : "ids: \(ids.joined(separator: " "))" + (receipt.ids.count > shownRanges ? " …" : "") + "\n")
    }
}
