import FoundationEssentials
package import Glibc

/// A fault that strace(1) injects into a program's system calls. It takes effect before the call is executed, except
/// that a stop takes effect directly after it.
///
/// Occurrences are counted for each thread separately: "the second" is reached when the first thread makes its second
/// call.
package struct Injection: Sendable {
    package enum Effect: Sendable {
        /// The call is not executed and fails with the `errno` of this name.
        case error(String)
        /// The call takes this many milliseconds longer.
        case delay(Int)
        /// The process receives SIGKILL instead of the call.
        case kill
        /// The process receives SIGSTOP directly after the call.
        case stop
    }

    /// The names of the system calls, separated by commas.
    package var calls: String
    package var effect: Effect
    /// The affected occurrences: `3`, `3+`, `1..4`.
    package var occurrence: String
    /// The paths to which calls must refer, as given by the program or as the path of a descriptor. Empty means all
    /// calls.
    package var paths: [String]

    package init(_ calls: String, _ effect: Effect, occurrence: String = "1+", at paths: [String] = []) {
        self.calls = calls
        self.effect = effect
        self.occurrence = occurrence
        self.paths = paths
    }

    private var arguments: [String] {
        let fault =
            switch effect {
            case .error(let name): "error=\(name)"
            case .delay(let milliseconds): "delay_enter=\(milliseconds * 1000)"
            case .kill: "signal=SIGKILL"
            case .stop: "signal=SIGSTOP"
            }
        return ["-f", "-e", "trace=\(calls)", "-e", "inject=\(calls):\(fault):when=\(occurrence)"]
            + paths.flatMap { ["-P", $0] }
    }

    /// Returns a prefix for a program's command line. The program remains the child that was started.
    ///
    /// - Parameter log: the file to which the calls are written.
    package func prefix(log: String = "/dev/null") -> [String] { ["strace", "-D", "-o", log] + arguments }

    /// Injects the fault into a running program and returns when strace is attached.
    package func attach(to pid: pid_t) async throws -> AttachedInjection {
        let attached = try AttachedInjection(pid: pid, arguments: arguments)
        try await eventually(that: "strace is attached to \(pid)", within: .seconds(20), every: .milliseconds(5)) {
            if let status = attached.tracer.poll() {
                throw Unusable(reason: "strace ended (\(status)): \(attached.tracer.standardError)")
            }
            return attached.tracer.standardError.contains("attached")
        }
        return attached
    }
}

/// A fault in a running program, removed by ``detach()``.
package final class AttachedInjection: Sendable {
    fileprivate let tracer: ChildProcess
    private let directory: TemporaryDirectory

    fileprivate init(pid: pid_t, arguments: [String]) throws {
        directory = try TemporaryDirectory()
        tracer = try ChildProcess(["strace", "-o", directory.file("log"), "-p", "\(pid)"] + arguments)
    }

    /// The affected calls so far, one per line.
    package var log: String { textOfFile(at: directory.file("log")) }

    /// The number of calls that the injection made to fail.
    package var count: Int { log.split(separator: "\n").count { $0.contains("(INJECTED)") } }

    /// Whether the program has been stopped.
    package var hasStopped: Bool { log.contains("stopped by SIGSTOP") }

    /// Removes the fault; the program continues to run.
    package func detach() async throws {
        tracer.kill(SIGINT)
        _ = try await tracer.wait(within: .seconds(20))
    }
}
