import FoundationEssentials
import Glibc

/// A fault that strace(1) puts into a program's system calls: before the call is carried out, or, where it stops the
/// program, right after.
///
/// Occurrences are counted for each thread by itself, so that "the second" comes to pass where the first thread makes
/// its second call.
package struct Injection: Sendable {
    package enum Effect: Sendable {
        /// The call is not carried out and fails with this `errno`, by its name.
        case error(String)
        /// The call takes so many milliseconds more.
        case delay(Int)
        /// SIGKILL in place of the call.
        case kill
        /// SIGSTOP right after the call.
        case stop
    }

    /// Names of calls, with commas between them.
    package var calls: String
    package var effect: Effect
    /// Which occurrences: `3`, `3+`, `1..4`.
    package var occurrence: String
    /// Only calls about these: a path as the program gives it, or that of its descriptor. Empty: all.
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

    /// What to put before a program's command line. The program stays the child that was started.
    ///
    /// - Parameter log: the file that the calls are written to.
    package func prefix(log: String = "/dev/null") -> [String] { ["strace", "-D", "-o", log] + arguments }

    /// Puts the fault into a program that runs; returns once it counts.
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

/// A fault in a running program, taken out of it with ``detach()``.
package final class AttachedInjection: Sendable {
    fileprivate let tracer: ChildProcess
    private let directory: TemporaryDirectory

    fileprivate init(pid: pid_t, arguments: [String]) throws {
        directory = try TemporaryDirectory()
        tracer = try ChildProcess(["strace", "-o", directory.file("log"), "-p", "\(pid)"] + arguments)
    }

    /// The calls that it is about, a line each, as far as they went.
    package var log: String { textOfFile(at: directory.file("log")) }

    /// How often a call was made to fail.
    package var count: Int { log.split(separator: "\n").count { $0.contains("(INJECTED)") } }

    /// The program has been stopped.
    package var hasStopped: Bool { log.contains("stopped by SIGSTOP") }

    /// Ends the fault; the program goes on by itself.
    package func detach() async throws {
        tracer.kill(SIGINT)
        _ = try await tracer.wait(within: .seconds(20))
    }
}
