import GRDB
import Glibc
import Synchronization

/// Looks whether what the store has open is what its names lead to, and saves a copy of it where it is not.
///
/// While it is not, the store takes nothing: whatever it acknowledged would be gone at the next start.
final class StoreWatch: Sendable {
    private enum Copy {
        case none
        case made(path: String)
        /// Of the last attempt, in seconds of a clock that no one sets.
        case failed(reason: String, at: Int)
    }

    private let directory: String
    private let names: StoreNames
    private let copy = Mutex(Copy.none)
    /// Told once of what was found, and of a copy that could be made at last.
    private let report: @Sendable (String) -> Void

    /// Seconds between attempts to make a copy.
    private static let pause = 60

    init(directory: String, names: StoreNames, report: @escaping @Sendable (String) -> Void) {
        self.directory = directory
        self.names = names
        self.report = report
    }

    /// Whether the store takes nothing now.
    var isDisplaced: Bool { names.fault() != nil }

    /// Whether emptying the log into the database harms nobody.
    var mayCheckpoint: Bool { names.fault().map(\.isLogGone) ?? true }

    /// What is wrong and what helps; `nil` where nothing is.
    var problem: String? {
        guard let fault = names.fault() else { return nil }
        return text(fault)
    }

    /// - Parameter database: the writer connection, outside of any transaction.
    /// - Returns: why the store takes nothing; by then there is a copy, if there can be one.
    func refusal(_ database: Database) -> StoreError? {
        guard let fault = names.fault() else { return nil }
        rescue(database, fault)
        return .displaced(text(fault))
    }

    private func text(_ fault: StoreNames.Fault) -> String {
        let end =
            "\(fault.text); until that is put right or the daemon is restarted, nothing is taken or written down. "
        switch copy.withLock({ $0 }) {
        case .none: return end + "A copy of what the daemon holds is being made: restart it after that"
        case .made(let path):
            return end + "What the daemon holds was saved as \(path): restart it, and it goes on with that"
        case .failed(let reason, _):
            return end + "What the daemon holds could not be saved (\(reason)): do not end it before that is mended; "
                + "it is tried again every minute"
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
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails for an unknown clock alone
        return time.tv_sec
    }
}
