import GRDB
import Glibc
import Synchronization

/// A monitor that checks whether the paths of the store's open files still refer to them and whether the files have the
/// contents that this process gave them, and saves a copy of the database if not.
///
/// In that case the store rejects all changes, because acknowledged changes would be lost at the next start.
final class StoreWatch: Sendable {
    private enum Copy {
        case none
        case made(path: String)
        /// The reason and the time of the last failed attempt, in seconds of the monotonic clock.
        case failed(reason: String, at: Int)
    }

    private struct Contents {
        /// The sizes and times of the files after the last change by this process.
        var stamps = StoreNames.Stamps()
        /// The contents read after an earlier change by this process.
        var known: StoreContents?
        var fault: StoreNames.Fault?
    }

    private let directory: String
    private let names: StoreNames
    private let copy = Mutex(Copy.none)
    private let contents = Mutex(Contents())
    /// Receives a message once when a fault is found, and once more when a copy succeeds after a failed attempt.
    private let report: @Sendable (String) -> Void

    /// The interval between attempts to make a copy, in seconds.
    private static let pause = 60

    init(directory: String, names: StoreNames, report: @escaping @Sendable (String) -> Void) {
        self.directory = directory
        self.names = names
        self.report = report
    }

    /// The present fault. A database that was truncated or overwritten stays unusable until the next start.
    private var fault: StoreNames.Fault? {
        var stamps = StoreNames.Stamps()
        return contents.withLock { $0.fault } ?? names.fault(&stamps)
    }

    /// Whether the store currently rejects changes.
    var isDisplaced: Bool { fault != nil }

    /// Whether a checkpoint of the log into the database is safe.
    var mayCheckpoint: Bool { fault.map(\.isLogGone) ?? true }

    /// A description of the fault and its remedy; `nil` if there is no fault.
    var problem: String? { fault.map(text) }

    /// Checks the paths and the contents, and tries to save a copy if something is wrong with them.
    ///
    /// - Parameters:
    ///   - database: the writer connection, outside of any transaction.
    ///   - isAfterChange: whether this process has changed the files since the last check. What they contain now is then
    ///     recorded, and the next check compares with it.
    /// - Returns: the error with which the store rejects changes; `nil` if there is no fault.
    func refusal(_ database: Database, isAfterChange: Bool = false) -> StoreError? {
        let fault = contents.withLock { contents -> StoreNames.Fault? in
            if let fault = contents.fault { return fault }
            var stamps = StoreNames.Stamps()
            if let fault = names.fault(&stamps) { return fault }
            if stamps == contents.stamps { return nil }
            // Own changes write to the log at every commit, and to the database at a checkpoint only.
            if !isAfterChange || contents.known == nil || stamps.database != contents.stamps.database {
                let found = StoreContents(of: database)
                if let known = contents.known, let text = found?.fault(since: known) {
                    contents.fault = StoreNames.Fault(text: "\(names.path) \(text)")
                    return contents.fault
                }
                contents.known = found ?? contents.known
            }
            contents.stamps = stamps
            return nil
        }
        guard let fault else { return nil }
        rescue(database, fault)
        return .displaced(text(fault))
    }

    private func text(_ fault: StoreNames.Fault) -> String {
        let end =
            "\(fault.text); until this is corrected or the daemon is restarted, nothing is accepted or saved. "
        switch copy.withLock({ $0 }) {
        case .none: return end + "A copy of the open database is being made: restart the daemon after that"
        case .made(let path):
            return end + "The open database was saved as \(path): restart the daemon, and it uses that copy"
        case .failed(let reason, _):
            return end
                + "The open database could not be saved (\(reason)): do not stop the daemon before this is corrected; "
                + "saving is tried again every minute"
        }
    }

    private func rescue(_ database: Database, _ fault: StoreNames.Fault) {
        let now = Self.now()
        let isFirst: Bool
        switch copy.withLock({ $0 }) {
        case .made: return
        case .failed(_, let last):
            guard now - last >= Self.pause else { return }
            isFirst = false
        case .none: isFirst = true
        }
        do throws(StoreError) {
            let path = try RescuedStore.make(of: database, in: directory)
            copy.withLock { $0 = .made(path: path) }
        } catch {
            copy.withLock { $0 = .failed(reason: "\(error)", at: now) }
            if !isFirst { return }
        }
        report(text(fault))
    }

    private static func now() -> Int {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails only for an unknown clock
        return time.tv_sec
    }
}
