import Dispatch
import FoundationEssentials
package import Glibc
import Synchronization

/// The exit status of a process.
package enum ExitStatus: Sendable, Equatable {
    case exited(Int32)
    case killed(signal: Int32)
}

/// A program under test. Its output goes to files, so that it never blocks on a full pipe. It is killed when this
/// object is deinitialised and when the test process ends.
package final class ChildProcess: Sendable {
    package let pid: pid_t
    package let command: String
    private let output: TemporaryDirectory
    /// The exit status. The lock prevents a signal to a process ID that was reaped and reused by another process.
    private let status = Mutex<ExitStatus?>(nil)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: the program, looked up in `PATH`, and its arguments.
    ///   - environment: changes to this process's environment; `nil` removes a variable.
    ///   - input: the contents of the program's standard input.
    ///   - listener: a socket that the program receives as descriptor 3.
    package init(
        _ arguments: [String], environment changes: [String: String?] = [:], directory: String? = nil,
        input: String = "", listener: Int32? = nil
    ) throws {
        command = arguments.joined(separator: " ")
        output = try TemporaryDirectory()
        try output.write(input, to: "stdin")
        var environment = ProcessInfo.processInfo.environment
        for (name, value) in changes { environment[name] = value }
        pid = try Spawner.spawn(
            ["setpriv", "--pdeathsig", "KILL", "--", "env", "--chdir", directory ?? "/"] + arguments,
            environment: environment.map { "\($0.key)=\($0.value)" },
            input: output.file("stdin"), output: output.file("stdout"), error: output.file("stderr"),
            listener: listener)
    }

    deinit { end() }

    /// Kills the process unless it has ended, and waits for its end.
    package func end() {
        status.withLock { status in
            guard status == nil else { return }
            _ = Glibc.kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            status = .killed(signal: SIGKILL)
        }
    }

    package var standardOutput: String { Self.text(output.file("stdout")) }
    package var standardError: String { Self.text(output.file("stderr")) }

    private static func text(_ path: String) -> String {
        String(decoding: (try? Data(contentsOf: URL(filePath: path))) ?? Data(), as: UTF8.self)
    }

    /// Sends `signal` unless the process has ended.
    package func kill(_ signal: Int32) {
        status.withLock { status in
            if status == nil { _ = Glibc.kill(pid, signal) }
        }
    }

    /// Returns the exit status, or `nil` while the process runs.
    package func poll() -> ExitStatus? {
        status.withLock { status in
            if status != nil { return status }
            var word: Int32 = 0
            guard waitpid(pid, &word, WNOHANG) == pid else { return nil }
            let signal = word & 0x7F
            status = signal == 0 ? .exited((word >> 8) & 0xFF) : .killed(signal: signal)
            return status
        }
    }

    /// Waits until the process has ended.
    package func wait(within limit: Duration = .seconds(120)) async throws -> ExitStatus {
        try await eventually(have: "the end of \(command)", within: limit, every: .milliseconds(2)) { poll() }
    }
}

/// The only thread that starts processes. The parent-death signal is sent when the *thread* that started the child
/// ends. Pool threads come and go; this thread lasts as long as the process.
private enum Spawner {
    private static let jobs = Mutex<[@Sendable () -> Void]>([])
    private static let wake = DispatchSemaphore(value: 0)
    private static let thread = Result {
        try startThread {
            while true {
                wake.wait()
                let job = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                job?()
            }
        }
    }

    private final class Answer: Sendable {
        let pid = Mutex<Result<pid_t, any Error>?>(nil)
    }

    static func spawn(
        _ arguments: [String], environment: [String], input: String, output: String,
        error: String, listener: Int32?
    ) throws -> pid_t {
        try thread.get()
        let done = DispatchSemaphore(value: 0)
        let answer = Answer()
        jobs.withLock {
            $0.append {
                let result = Result {
                    try start(
                        arguments, environment: environment, input: input, output: output,
                        error: error, listener: listener)
                }
                answer.pid.withLock { $0 = result }
                done.signal()
            }
        }
        wake.signal()
        done.wait()
        guard let pid = try answer.pid.withLock({ try $0?.get() }) else {
            throw SystemError("starting \(arguments.joined(separator: " "))", number: ECHILD)
        }
        return pid
    }

    private static func start(
        _ arguments: [String], environment: [String], input: String, output: String,
        error: String, listener: Int32?
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, error, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        // Close all other descriptors, so that no socket of another test stays open in the child and keeps a port or a
        // connection open. An action for a descriptor that was closed meanwhile is harmless.
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            if let descriptor = Int32(name), descriptor > 2, descriptor != listener {
                posix_spawn_file_actions_addclose(&actions, descriptor)
            }
        }
        if let listener {
            posix_spawn_file_actions_adddup2(&actions, listener, 3)
            if listener != 3 { posix_spawn_file_actions_addclose(&actions, listener) }
        }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A test runner may block or ignore signals; the program under test starts with default handling and none
        // blocked.
        var none = sigset_t()
        sigemptyset(&none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var argv = arguments.map { strdup($0) } + [nil]
        var envp = environment.map { strdup($0) } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var pid = pid_t()
        let result = posix_spawnp(&pid, arguments[0], &actions, &attributes, &argv, &envp)
        guard result == 0 else { throw SystemError("starting \(arguments[0])", number: result) }
        return pid
    }
}

/// The exit status and output of a program that ran to its end.
package struct Outcome: Sendable {
    package let status: ExitStatus
    package let output: String
    package let error: String

    package var succeeded: Bool { status == .exited(0) }
    package var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// Runs a program to its end.
package func run(
    _ arguments: [String], environment: [String: String?] = [:], directory: String? = nil, input: String = "",
    within limit: Duration = .seconds(60)
) async throws -> Outcome {
    let child = try ChildProcess(arguments, environment: environment, directory: directory, input: input)
    let status = try await child.wait(within: limit)
    return Outcome(status: status, output: child.standardOutput, error: child.standardError)
}
