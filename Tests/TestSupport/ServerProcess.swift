import FoundationEssentials
import Glibc

/// A server program on a loopback port, killed together with all its descendant processes.
final class ServerProcess: Sendable {
    let child: ChildProcess

    /// Starts the server and waits until it listens on `port`.
    ///
    /// - Parameters:
    ///   - name: the name of the server in error messages.
    ///   - log: a file with more details about a failure than standard error.
    /// - Throws: ``Unusable`` if the program is missing or ends at once.
    init(_ name: String, _ arguments: [String], port: Int, log: String? = nil) async throws {
        child = try ChildProcess(arguments, environment: ["PATH": Self.searchPath])
        do {
            try await eventually(that: "\(name) on port \(port)", within: .seconds(20), every: .milliseconds(5)) {
                [child] in
                if let status = child.poll() {
                    let more = log.map(textOfFile(at:)) ?? ""
                    throw Unusable(reason: "\(name) ended at once (\(status)): \(child.standardError)\(more)")
                }
                return (try? StreamSocket(port: port)) != nil
            }
        } catch {
            end()
            throw error
        }
    }

    deinit { end() }

    /// The search path with the system directories in which Debian installs servers, added to a plain user's `PATH`.
    private static var searchPath: String {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    }

    /// Kills the server and the processes of its connections, which may have left its process group.
    func end() {
        guard child.poll() == nil else { return }
        // Stop the server first, so that it creates no more processes while its descendants are collected.
        child.kill(SIGSTOP)
        let descendants = Self.descendants(of: child.pid)
        child.end()
        for pid in descendants { kill(pid, SIGKILL) }
    }

    /// Kills the processes of the connections; the server continues to run.
    func cutConnections() {
        for pid in Self.descendants(of: child.pid) { kill(pid, SIGKILL) }
    }

    /// Sends a signal, such as SIGSTOP or SIGCONT, to the server and the processes of its connections.
    func signalAll(_ signal: Int32) {
        for pid in [child.pid] + Self.descendants(of: child.pid) { kill(pid, signal) }
    }

    private static func descendants(of ancestor: pid_t) -> [pid_t] {
        var children: [pid_t: [pid_t]] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let pid = pid_t(name) else { continue }
            // The second field is the program's name in parentheses and may contain any character (proc(5)).
            let fields = textOfFile(at: "/proc/\(pid)/stat").split(separator: ")").last?.split(separator: " ") ?? []
            guard fields.count > 1, let parent = pid_t(fields[1]) else { continue }
            children[parent, default: []].append(pid)
        }
        var found: [pid_t] = []
        var next = [ancestor]
        while let pid = next.popLast() {
            found += children[pid, default: []]
            next += children[pid, default: []]
        }
        return found
    }
}

/// Returns the contents of a file, or an empty string if it cannot be read.
func textOfFile(at path: String) -> String {
    String(decoding: (try? Data(contentsOf: URL(filePath: path))) ?? Data(), as: UTF8.self)
}

/// Returns the remainder behind `mark` of each line of `text` that contains it.
func tails(of text: String, behind mark: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
        line.firstRange(of: mark).map { String(line[$0.upperBound...]) }
    }
}
