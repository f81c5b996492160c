import Logging
import TaskModel
import Transfer

/// The repeated scan of a watched directory, which takes the files that are complete.
///
/// A file is complete when the kernel has reported that its writer closed it or that it was moved here. A file without
/// such a report (because it existed before the watch, or is on a file system without complete reports) is complete
/// when two scans some time apart find it unchanged. In both cases no process may have it open for writing, as far as
/// that can be determined.
struct DropRound {
    let directory: Directory
    let intake: DropIntake
    /// Whether the kernel does not report all events of the directory, so that it must be polled.
    let polls: Bool

    /// The extent of a scan.
    enum Scope {
        /// Only files for which the kernel has just reported an event.
        case named
        /// In addition, known files that were incomplete or delayed.
        case known
        /// In addition, all other files, for which the kernel may have reported nothing.
        case all
    }

    /// The time for which a file must be unchanged, in milliseconds.
    static let settleTime: Milliseconds = 2_000
    /// The same time where it cannot be determined whether the file is open for writing.
    static let longSettleTime: Milliseconds = 30_000
    /// The polling interval, in milliseconds.
    static let pollInterval: Milliseconds = 10_000
    /// The retry interval after a failure that may be temporary, in milliseconds.
    static let delay: Milliseconds = 60_000

    private struct Seen {
        var identity: UploadSource.Identity
        /// The monotonic time of the next check.
        var due: Milliseconds
    }

    private var unsettled: [String: Seen] = [:]
    private var delayed: [String: Seen] = [:]
    private var isSwept = false

    init(directory: Directory, intake: DropIntake, polls: Bool) {
        self.directory = directory
        self.intake = intake
        self.polls = polls
    }

    /// Scans the directory.
    ///
    /// - Parameters:
    ///   - closed: the names of files that the kernel has reported as complete.
    ///   - scope: the other files to check.
    /// - Returns: the delay until the next scan of the known files or, when polling, of all files, in milliseconds;
    ///   `nil` to wait for an event.
    /// - Throws: ``TransferError`` where the directory cannot be read.
    mutating func process(closed: [String], _ scope: Scope) async throws(TransferError) -> Milliseconds? {
        let named = Set(closed)
        var names = closed
        if scope == .known { names += Set(unsettled.keys).union(delayed.keys).subtracting(named).sorted() }
        if scope == .all {
            let directory = directory
            let present = try await intake.work.attempt { () throws(TransferError) in try directory.names() }
            if !isSwept { await intake.sweep(directory, present: present) }
            isSwept = true
            names += present.filter { !named.contains($0) }
            let kept = Set(present)
            unsettled = unsettled.filter { kept.contains($0.key) }
            for name in delayed.keys where !kept.contains(name) { forget(name) }
        }
        for name in names where !Self.isLeftAlone(name) {
            if Task.isCancelled { return nil }
            await consider(name, isClosed: named.contains(name))
        }
        let now = intake.clock.monotonic()
        let due = (Array(unsettled.values) + Array(delayed.values)).map { max(1, $0.due - now) }
        return (due + (polls ? [Self.pollInterval] : [])).min()
    }

    /// Whether the name is hidden or has a suffix that programs give to unfinished files.
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
        // The end of writing is reported by an event, or found by a later scan of all files.
        case .file where writers == .some: return forget(name)
        case .file(let file): identity = file.identity
        case .unreadable(let known, _), .leased(let known): identity = known
        }
        // The writer may be about to make the file readable.
        let isClosed = if case .unreadable = entry { false } else { isClosed }
        guard !isDelayed(name, identity) else { return }
        guard isClosed || isSettled(name, identity, after: Self.settleTime(writers)) else { return }
        let outcome =
            switch entry {
            case .file(let file): await intake.accept(name, file, in: directory)
            case .unreadable(_, let reason): await intake.refuse(name, identity, in: directory, "\(name) \(reason)")
            case .leased: DropIntake.Outcome.later("a program has a lease on it")
            case .other, .nothing: DropIntake.Outcome.changed
            }
        record(outcome, of: name, identity)
    }

    private mutating func record(_ outcome: DropIntake.Outcome, of name: String, _ identity: UploadSource.Identity) {
        let now = intake.clock.monotonic()
        switch outcome {
        case .done: forget(name)
        case .stuck(let reason):
            delay(
                name, identity, now,
                "is queued but cannot be moved away; moving it is tried every minute, and it is not queued again",
                reason)
        case .changed:
            forget(name)
            // If the file still exists, it is checked until it stays unchanged.
            unsettled[name] = Seen(identity: identity, due: now + Self.settleTime)
        case .later(let reason):
            delay(name, identity, now, "waits, and is tried again every minute", reason)
        }
    }

    /// Delays a file, and logs the reason once per file.
    ///
    /// - Parameter condition: the state of the file, as a predicate for the message.
    private mutating func delay(
        _ name: String, _ identity: UploadSource.Identity, _ now: Milliseconds, _ condition: String, _ reason: String
    ) {
        unsettled[name] = nil
        let path = directory.path(of: name)
        if delayed[name]?.identity != identity {
            intake.logger.warning("a dropped file \(condition)", metadata: ["file": "\(path)", "reason": "\(reason)"])
        }
        intake.problems.report(path, "\(condition) (\(reason))")
        delayed[name] = Seen(identity: identity, due: now + Self.delay)
    }

    private mutating func forget(_ name: String) {
        if delayed[name] != nil { intake.problems.clear(directory.path(of: name)) }
        unsettled[name] = nil
        delayed[name] = nil
    }

    private func isDelayed(_ name: String, _ identity: UploadSource.Identity) -> Bool {
        guard let seen = delayed[name], seen.identity == identity else { return false }
        return intake.clock.monotonic() < seen.due
    }

    static func settleTime(_ writers: EntryFile.Writers) -> Milliseconds {
        writers == .none ? settleTime : longSettleTime
    }

    private mutating func isSettled(
        _ name: String, _ identity: UploadSource.Identity, after span: Milliseconds
    ) -> Bool {
        let now = intake.clock.monotonic()
        if delayed[name]?.identity == identity { return true }
        guard let seen = unsettled[name], seen.identity == identity else {
            unsettled[name] = Seen(identity: identity, due: now + span)
            return false
        }
        return now >= seen.due
    }
}
