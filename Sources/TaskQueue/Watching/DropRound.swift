import Logging
import TaskModel
import Transfer

/// Looks at a watched directory again and again, and takes the files that are complete.
///
/// Complete is a file that the kernel said was closed by its writer or moved here. One of which it says nothing (there
/// before the watching, or on a file system of which it knows too little) is complete when two looks some time apart
/// found it the same. In both cases nobody may have it open to write, as far as that can be told.
struct DropRound {
    let directory: Directory
    let intake: DropIntake
    /// The kernel does not tell of everything that happens here: only looking does.
    let polls: Bool

    /// What to look at.
    enum Scope {
        /// Files of which the kernel told just now.
        case told
        /// Also those that were not complete before.
        case known
        /// Also all others: where the kernel did not tell of them.
        case all
    }

    /// Milliseconds that a file must not have changed for.
    static let ripeness: Milliseconds = 2_000
    /// The same where nobody can tell whether it is open to write.
    static let longRipeness: Milliseconds = 30_000
    /// Milliseconds from look to look where only looking tells.
    static let pollInterval: Milliseconds = 10_000
    /// Milliseconds until what failed for a reason that may pass is tried again.
    static let delay: Milliseconds = 60_000

    private struct Seen {
        var identity: UploadSource.Identity
        /// When it is looked at again, of a clock that no one sets.
        var due: Milliseconds
    }

    private var unripe: [String: Seen] = [:]
    private var delayed: [String: Seen] = [:]
    private var isSwept = false

    init(directory: Directory, intake: DropIntake, polls: Bool) {
        self.directory = directory
        self.intake = intake
        self.polls = polls
    }

    /// - Parameters:
    ///   - closed: names of files that the kernel said are complete.
    ///   - scope: what else to look at.
    /// - Returns: milliseconds after which to look at what is known again, or at everything where only looking tells; `nil`:
    ///   not before something happens.
    /// - Throws: ``TransferError`` where the directory cannot be read.
    mutating func look(closed: [String], _ scope: Scope) async throws(TransferError) -> Milliseconds? {
        let told = Set(closed)
        var names = closed
        if scope == .known { names += Set(unripe.keys).union(delayed.keys).subtracting(told).sorted() }
        if scope == .all {
            let directory = directory
            let present = try await intake.work.attempt { () throws(TransferError) in try directory.names() }
            if !isSwept { await intake.sweep(directory, present: present) }
            isSwept = true
            names += present.filter { !told.contains($0) }
            let kept = Set(present)
            unripe = unripe.filter { kept.contains($0.key) }
            for name in delayed.keys where !kept.contains(name) { forget(name) }
        }
        for name in names where !Self.isLeftAlone(name) {
            if Task.isCancelled { return nil }
            await consider(name, isClosed: told.contains(name))
        }
        let now = intake.clock.monotonic()
        let due = (Array(unripe.values) + Array(delayed.values)).map { max(1, $0.due - now) }
        return (due + (polls ? [Self.pollInterval] : [])).min()
    }

    /// Names that programs give to what they still write.
    static func isLeftAlone(_ name: String) -> Bool {
        name.hasPrefix(".") || [".part", ".tmp", "~", ".crdownload"].contains { name.hasSuffix($0) }
    }

    private mutating func consider(_ name: String, isClosed: Bool) async {
        let directory = directory
        let (entry, writers) = await intake.work.run { () -> (DirectoryEntry, EntryFile.Writers) in
            let entry = directory.entry(name)
            guard case .file(let file) = entry else { return (entry, .unknown) }
            return (entry, file.writers())
        }
        let identity: UploadSource.Identity
        switch entry {
        case .nothing, .other: return forget(name)
        // Its end is told, or found by a later look at everything.
        case .file where writers == .some: return forget(name)
        case .file(let file): identity = file.identity
        case .unreadable(let known, _, _): identity = known
        }
        // Its writer may be about to let others read it.
        let isClosed = if case .unreadable = entry { false } else { isClosed }
        guard !isDelayed(name, identity) else { return }
        guard isClosed || isRipe(name, identity, after: Self.ripeness(writers)) else { return }
        let outcome =
            switch entry {
            case .file(let file): await intake.take(name, file, in: directory)
            case .unreadable(_, _, let reason): await intake.refuse(name, identity, in: directory, "\(name) \(reason)")
            case .other, .nothing: DropIntake.Outcome.changed
            }
        note(outcome, of: name, identity)
    }

    private mutating func note(_ outcome: DropIntake.Outcome, of name: String, _ identity: UploadSource.Identity) {
        let now = intake.clock.monotonic()
        switch outcome {
        case .done: forget(name)
        case .stuck(let reason):
            delay(
                name, identity, now,
                "was dealt with and cannot be moved away; it is not queued again, and its move is tried every minute",
                reason)
        case .changed:
            forget(name)
            // Where it still is, it is looked at until it keeps still.
            unripe[name] = Seen(identity: identity, due: now + Self.ripeness)
        case .later(let reason):
            delay(name, identity, now, "waits, and is tried again every minute", reason)
        }
    }

    /// Says so once for each file.
    ///
    /// - Parameter standing: what is said of a dropped file.
    private mutating func delay(
        _ name: String, _ identity: UploadSource.Identity, _ now: Milliseconds, _ standing: String, _ reason: String
    ) {
        unripe[name] = nil
        let path = directory.path(of: name)
        if delayed[name]?.identity != identity {
            intake.logger.warning("a dropped file \(standing)", metadata: ["file": "\(path)", "reason": "\(reason)"])
        }
        intake.complaints.note(path, "\(standing) (\(reason))")
        delayed[name] = Seen(identity: identity, due: now + Self.delay)
    }

    private mutating func forget(_ name: String) {
        if delayed[name] != nil { intake.complaints.settle(directory.path(of: name)) }
        unripe[name] = nil
        delayed[name] = nil
    }

    private func isDelayed(_ name: String, _ identity: UploadSource.Identity) -> Bool {
        guard let seen = delayed[name], seen.identity == identity else { return false }
        return intake.clock.monotonic() < seen.due
    }

    static func ripeness(_ writers: EntryFile.Writers) -> Milliseconds {
        writers == .none ? ripeness : longRipeness
    }

    private mutating func isRipe(
        _ name: String, _ identity: UploadSource.Identity, after span: Milliseconds
    ) -> Bool {
        let now = intake.clock.monotonic()
        if delayed[name]?.identity == identity { return true }
        guard let seen = unripe[name], seen.identity == identity else {
            unripe[name] = Seen(identity: identity, due: now + span)
            return false
        }
        return now >= seen.due
    }
}
