import Glibc
import Logging
import TaskFiles
import TaskModel
import TaskStore
import Transfer

/// Queues one dropped file and moves it out of the way, with a note of what became of it beside it.
///
/// A file is never queued twice, whenever the daemon is killed: the commit that queues its entries writes a receipt
/// under the file's identity (directory, inode, time of change and size), the file is moved and its new place brought to
/// the disk, and then the receipt is deleted. A file that is found with a receipt is only moved.
struct DropIntake: Sendable {
    let watch: Watch
    let queue: TaskQueue
    let rules: DropRules
    let clock: QueueClock
    let logger: Logger
    let work: BlockingWork
    var complaints = Complaints()

    /// Bytes of a file; reading one takes many times as much memory.
    static let sizeLimit = 16 << 20

    enum Outcome: Equatable {
        /// It was moved away.
        case done
        /// It was written to meanwhile, or is gone.
        case changed
        /// For a reason that may pass.
        case later(String)
        /// It was queued or refused, and cannot be moved away for now; it is not queued again.
        case stuck(String)
    }

    func take(_ name: String, _ file: EntryFile, in directory: Directory) async -> Outcome {
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
            if error.isPassing { return .later(refusal ?? "the queue refused") }
            return await refuse(name, file.identity, in: directory, Self.text(of: error, content, name))
        }
    }

    /// Why a file need not be of its owner's hand: others may have written it, or given a file of the owner's this name.
    private func authorshipObjection(_ file: EntryFile, in directory: Directory) -> String? {
        if file.isWritableByOthers {
            return "may be written to by others than its owner; take that right away (chmod go-w) and drop it again"
        }
        // The daemon's own products, such as finished downloads and notes, are files of its user.
        let isPrivileged = [0, queue.settings.daemonUser].contains(file.owner)
        guard isPrivileged, !directory.isOpenToNoneBut([0, queue.settings.daemonUser]) else { return nil }
        return "is a file of the daemon's user or of root, and others may move such files into this directory; "
            + "use dlctl, or a directory that nobody else may write to"
    }

    /// Moves a file away that is not queued.
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
                "\(name) is longer than the \(ByteSize.describe(Int64(Self.sizeLimit))) that a dropped file may have; "
                    + "give it to dlctl add --input")
        }
        let now = clock.now()
        // The daemon opens no path on the word of another user (save upload sources, which are judged by themselves).
        let isTrusted = [0, queue.settings.daemonUser].contains(file.owner)
        let readFile = rules.readFile
        do throws(FileError) {
            var content = try InputFile.parse(
                bytes, file: name, baseDirectory: watch.directory, now: now,
                utcOffset: { LocalClock.utcOffset(at: $0) },
                readFile: { (path, limit) throws(UnreadableFile) in
                    guard isTrusted else {
                        throw UnreadableFile(
                            "the daemon opens no file that a dropped file of user \(file.owner) names; "
                                + "use dlctl, which sends what it says")
                    }
                    return try readFile(path, limit)
                })
            try watch.defaults.fill(&content, named: name, now: now) { LocalClock.utcOffset(at: $0) }
            return content
        } catch {
            throw .refused("\(error)")
        }
    }

    private static func text(of error: QueueError, _ content: QueueFile, _ name: String) -> String {
        if let fault = error.fault(in: content.entries, of: name) { return "\(fault)" }
        if case .field(let error) = error { return "\(name): \(error)" }
        return "\(name): \(error.refusal?.message ?? "the queue refused")"
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
        // Where this fails, the first look after the next start does it.
        if let receipt { try? await queue.forgetReceipts([receipt]) }
        return .done
    }

    // MARK: Receipts

    /// The inode of the directory is part of it: another file system may be mounted there by and by.
    static func receiptPrefix(_ directory: Directory, _ watch: Watch) -> String {
        "watch\n\(watch.directory)\n\(directory.inode.number)\n"
    }

    static func receipt(_ identity: UploadSource.Identity, in directory: Directory, _ watch: Watch) -> String {
        receiptPrefix(directory, watch) + "\(identity.inode) \(identity.modified) \(identity.size)"
    }

    /// Forgets receipts of files that are no longer there: a kill came between moving one and forgetting its receipt.
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
                    case .unreadable(let identity, _, _): Self.receipt(identity, in: directory, watch)
                    case .other, .nothing: nil
                    }
                })
        }
        try? await queue.forgetReceipts(receipts.filter { !present.contains($0) })
    }

    /// Ranges of ids that a note spells out.
    private static let shownRanges = 100

    private static func note(_ receipt: SetReceipt, batch: String?) -> String {
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
