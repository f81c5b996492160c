import Synchronization

/// What is wrong with dropped files at this moment, for whoever asks about the daemon.
final class Complaints: Sendable {
    /// Files that are remembered; of more, only the log tells.
    private static let limit = 100

    private let reasons = Mutex<[String: String]>([:])

    /// - Parameter path: the file's.
    func note(_ path: String, _ reason: String) {
        reasons.withLock { reasons in
            if reasons.count < Self.limit || reasons[path] != nil { reasons[path] = reason }
        }
    }

    func settle(_ path: String) {
        reasons.withLock { $0[path] = nil }
    }

    /// A line for each file, by path.
    var lines: [String] {
        reasons.withLock { $0 }.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    }
}
