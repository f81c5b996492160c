import FoundationEssentials
import Glibc

/// A server program on a port of loopback: started, waited for, and killed with every process that it made.
final class ServerProcess: Sendable {
    let child: ChildProcess

    /// Returns once someone listens on `port`.
    ///
    /// - Parameters:
    ///   - name: what the server is called where it fails.
    ///   - log: a file that says more about a failure than standard error does.
    /// - Throws: ``Unusable`` where the program is missing or ends at once.
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

    /// Debian keeps servers where a plain user's `PATH` does not look.
    private static var searchPath: String {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    }

    /// Kills the server and the processes of its connections, which may have left its process group.
    func end() {
        guard child.poll() == nil else { return }
        // Stopped, it makes no further process while those that it made are looked for.
        child.kill(SIGSTOP)
        let descendants = Self.descendants(of: child.pid)
        child.end()
        for pid in descendants { kill(pid, SIGKILL) }
    }

    /// Kills the processes of its connections, and the server goes on.
    func cutConnections() {
        for pid in Self.descendants(of: child.pid) { kill(pid, SIGKILL) }
    }

    /// Stops the server and the processes of its connections where they are, or has them go on.
    func signalAll(_ signal: Int32) {
        for pid in [child.pid] + Self.descendants(of: child.pid) { kill(pid, signal) }
    }

    private static func descendants(of ancestor: pid_t) -> [pid_t] {
        var children: [pid_t: [pid_t]] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
            guard let pid = pid_t(name) else { continue }
            // The second field is the program's name in parentheses and may hold anything (proc(5)).
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

/// What a file holds, or nothing where it cannot be read.
func textOfFile(at path: String) -> String {
    String(decoding: (try? Data(contentsOf: URL(filePath: path))) ?? Data(), as: UTF8.self)
}

/// The lines of `text` that hold `mark`, each from behind it on.
func tails(of text: String, behind mark: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
        line.firstRange(of: mark).map { String(line[$0.upperBound...]) }
    }
}
