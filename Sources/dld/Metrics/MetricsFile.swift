import Dispatch
import Glibc
import Synchronization
import TaskQueue

/// The text file of the metrics. It is replaced as a whole, so that a reader never sees a part of it.
///
/// The disk is used on a thread of its own, since it may hang.
final class MetricsFile: Sendable {
    private struct State {
        var path: String?
        var problem: String?
        /// Whether the file is this daemon's.
        var isWritten = false
        /// Whether the last values are written, after which no others are.
        var hasEnded = false
    }

    private let state: Mutex<State>
    private let thread = DispatchQueue(label: "dld-metrics")
    /// The changes of the path.
    let changes = ChangeCount()

    /// - Parameter path: the absolute path; `nil` for no file.
    init(path: String?) { state = Mutex(State(path: path)) }

    /// The path. When it changes, the file of the former path is removed: its values would look like those of a second
    /// daemon.
    var path: String? {
        get { state.withLock { $0.path } }
        set {
            let former = state.withLock { state -> State? in
                guard state.path != newValue else { return nil }
                defer { state = State(path: newValue, hasEnded: state.hasEnded) }
                return state
            }
            guard let former else { return }
            if former.isWritten, let path = former.path {
                thread.async { if Self.obstacle(at: path) == nil { _ = unlink(path) } }  // may be gone by now
            }
            changes.add()
        }
    }

    /// Returns why the file cannot be written to a path: something else has the name, which must not be replaced.
    static func obstacle(at path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        return switch status.st_mode & S_IFMT {
        case S_IFREG, S_IFLNK: nil
        case S_IFDIR: "it is a directory"
        default: "it is not a regular file"
        }
    }

    /// The reason why the file could not be written; `nil` if it could.
    var problem: String? { state.withLock { $0.problem } }

    /// Replaces the file.
    ///
    /// - Returns: a problem that was not known before; `nil` if there is none.
    func write(_ text: String) async -> String? {
        guard let path else { return nil }
        return await withCheckedContinuation { continuation in
            thread.async {
                // An earlier call may come here after the last one.
                let hasEnded = self.state.withLock { $0.hasEnded }
                continuation.resume(returning: hasEnded ? nil : self.update(path, text))
            }
        }
    }

    /// Replaces the file for the last time. A disk that hangs is given up after ``patience``.
    func writeLast(_ text: String) {
        guard let path else { return }
        let writing = DispatchWorkItem {
            self.state.withLock { $0.hasEnded = true }
            _ = self.update(path, text)  // no one reads the problems any more
        }
        thread.async(execute: writing)
        _ = writing.wait(timeout: .now() + Self.patience)  // the values then stay as they are
    }

    private static let patience: DispatchTimeInterval = .seconds(2)

    private func update(_ path: String, _ text: String) -> String? {
        let reason = Self.obstacle(at: path) ?? Self.replace(path, with: text).map { String(cString: strerror($0)) }
        let problem = reason.map {
            "the metrics cannot be written to \(path) (\($0)); correct \"metrics.textfile\", or make its directory writable"
        }
        return state.withLock { state in
            guard state.path == path else { return nil }
            if problem == nil { state.isWritten = true }
            defer { state.problem = problem }
            return state.problem == problem ? nil : problem
        }
    }

    /// Replaces a file by way of another one in the same directory. Nothing is synced: after a power failure the values
    /// are outdated anyway.
    ///
    /// - Returns: the system error; `nil` if the file was replaced.
    static func replace(_ path: String, with text: String) -> Int32? {
        let draft = path + ".tmp"
        _ = unlink(draft)  // usually there is none; if one stays, the next call fails
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { return errno }
        var error = write(text, to: descriptor)
        // The user of node_exporter reads the file, whatever the daemon's umask.
        if error == nil, fchmod(descriptor, 0o644) != 0 { error = errno }
        if close(descriptor) != 0, error == nil { error = errno }
        if error == nil, rename(draft, path) != 0 { error = errno }
        if error != nil { _ = unlink(draft) }  // the next attempt removes what stays
        return error
    }

    private static func write(_ text: String, to descriptor: Int32) -> Int32? {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count < 0 ? errno : EIO }
            rest = rest.dropFirst(count)
        }
        return nil
    }
}
