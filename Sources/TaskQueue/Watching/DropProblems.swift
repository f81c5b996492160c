import Synchronization

/// The current problems with dropped files, for the daemon's status.
final class DropProblems: Sendable {
    /// The maximum number of files remembered. Problems of further files appear only in the log.
    private static let limit = 100

    private let reasons = Mutex<[String: String]>([:])

    /// Records a problem.
    ///
    /// - Parameter path: the path of the file.
    func report(_ path: String, _ reason: String) {
        reasons.withLock { reasons in
            if reasons.count < Self.limit || reasons[path] != nil { reasons[path] = reason }
        }
    }

    func clear(_ path: String) {
        reasons.withLock { $0[path] = nil }
    }

    /// A line for each file with a problem, sorted by path.
    var lines: [String] {
        reasons.withLock { $0 }.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    }
}
