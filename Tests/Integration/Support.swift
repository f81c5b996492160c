import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

let isRoot = geteuid() == 0

/// A configuration for tests that depend on the throughput of one connection.
let oneConnection = "limits: {connections-per-task: 1}\n"

/// A configuration under which failures end quickly.
let quickRetries = "retry: {attempts: 3, base-delay: 50ms, max-delay: 200ms}\n"

/// A configuration that allows downloads in the daemon's own directory for them alone.
let onlyDownloads = "downloads: {roots: [@DIR@/downloads]}\n"

let mebibyte: Int64 = 1 << 20

/// Returns a command that runs a daemon which resolves names from the hosts file only, whatever resolver this machine
/// has or lacks. Without root it uses the machine's resolver.
func hostsFileAlone(in place: TemporaryDirectory) throws -> [String] {
    guard isRoot else { return [] }
    let file = try place.write("hosts: files\n", to: "nsswitch.conf")
    return ["unshare", "--mount", "sh", "-c", "mount --bind \(file) /etc/nsswitch.conf && exec \"$@\"", "sh"]
}

/// Returns a command that runs a daemon for which `home` is root's home directory.
///
/// - Parameter place: where the substitute of passwd(5) is written.
func homeOfRoot(_ home: String, in place: TemporaryDirectory) throws -> [String] {
    let lines = try text(of: "/etc/passwd").split(separator: "\n").map { line in
        var fields = line.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        if fields.count == 7, fields[2] == "0" { fields[5] = home }
        return fields.joined(separator: ":") + "\n"
    }
    let file = try place.write(lines.joined(), to: "passwd")
    let script = #"mount --bind "$0" /etc/passwd; exec "$@""#
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-ec", script, file]
}

extension DaemonProcess {
    /// Starts a daemon and waits until it answers.
    static func started(
        _ configuration: String = quickRetries, stateDirectory: String? = nil, prefix: [String] = []
    ) async throws -> DaemonProcess {
        let daemon = try DaemonProcess(
            configuration: configuration, stateDirectory: stateDirectory, prefix: prefix)
        try await daemon.start()
        return daemon
    }

    /// Adds a task with `dlctl`; a refusal is a test failure.
    func add(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws -> TaskID {
        try await id(of: dlctl(["add"] + arguments), sourceLocation)
    }

    func upload(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws -> TaskID {
        try await id(of: dlctl(["upload"] + arguments), sourceLocation)
    }

    private func id(of outcome: Outcome, _ sourceLocation: SourceLocation) throws -> TaskID {
        #expect(outcome.succeeded, "\(outcome.error)", sourceLocation: sourceLocation)
        let number = try #require(outcome.lines.first.flatMap { Int64($0) }, sourceLocation: sourceLocation)
        return TaskID(number)
    }

    /// Makes one call on a new connection.
    func call<Value: Decodable & Sendable>(
        _ method: MethodName, _ parameters: some Encodable & Sendable, as type: Value.Type = Value.self
    ) throws -> Value {
        let connection = try StreamSocket(path: socket)
        connection.setReadTimeout(20)
        let request = OutgoingRequest(id: 1, method: method, parameters: parameters)
        connection.send(try JSONEncoder().encode(request) + [0x0A])
        let line = try connection.readLine() ?? ""
        return try JSONDecoder().decode(IncomingResponse<Value>.self, from: Data(line.utf8)).outcome.get()
    }

    func task(_ id: TaskID) throws -> TaskStatus { try call(.taskGet, TaskGetParameters(id: id)) }

    /// Returns all tasks, page by page.
    func tasks() throws -> [TaskStatus] {
        var all: [TaskStatus] = []
        var after: TaskID?
        repeat {
            let page: TaskListResult = try call(.taskList, TaskListParameters(after: after))
            all += page.tasks
            after = page.next
        } while after != nil
        return all
    }

    /// Waits until the task has ended, or needs a person.
    func settled(_ id: TaskID, within limit: Duration = .seconds(120)) async throws -> TaskStatus {
        try await state(of: id, "to settle", within: limit) { $0.isSettled }
    }

    /// Waits until the reported status of the task satisfies `condition`.
    @discardableResult
    func state(
        of id: TaskID, _ what: String, within limit: Duration = .seconds(60),
        _ condition: (TaskStatus) -> Bool
    ) async throws -> TaskStatus {
        var last: TaskStatus?
        do {
            return try await eventually(have: "task \(id) \(what)", within: limit) {
                let status = try task(id)
                last = status
                return condition(status) ? status : nil
            }
        } catch let error as TimedOut {
            throw Unusable(reason: "\(error); it stands at \(String(describing: last)); log:\n\(log.suffix(4000))")
        }
    }

    func path(_ name: String) -> String { "\(downloads)/\(name)" }

    /// Checks the state after the last task: no part file is left, and the daemon runs.
    func expectTidy(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(partFiles == [], sourceLocation: sourceLocation)
        #expect(isRunning, "\(log.suffix(4000))", sourceLocation: sourceLocation)
    }
}

func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

func size(of path: String) -> Int64? {
    var status = stat()
    return lstat(path, &status) == 0 ? Int64(status.st_size) : nil
}

func text(of path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
