import CLinux
import Glibc
import TaskModel

/// The process of a hook's command for one event.
struct HookProcess {
    /// The command, for `/bin/sh`.
    var command: String
    /// The variables in addition to those of this program.
    var variables: [String: String]
    /// The bytes of standard input.
    var input: [UInt8]
    /// The standard output.
    var output = STDOUT_FILENO
    /// The file in which the shell records success, the number of the event, and the lock that the shell holds.
    var record: (path: String, sequence: Int64, lock: Int32)?
    /// The time in seconds after which the command is ended; `nil` for no limit.
    var limit: Double?
    /// Called when the command has started, with the number of its process, and of its group if it has a record or a limit.
    var started: (pid_t) -> Void = { _ in }
    /// Called when the command has run for long, at ever longer intervals.
    var runsLong: (pid_t) -> Void = { _ in }
    /// The time in seconds after which a command runs for long.
    var longTime = Double(HookRun.longTime) / 1_000
    /// The time in seconds between SIGTERM and SIGKILL.
    static let grace: Double = 5

    enum Ending: Equatable {
        case success
        /// The command has succeeded, but the shell could not record it.
        case unrecorded
        case failure(String)
    }

    /// The shell runs the command without the lock: what the command leaves behind must not hold it. The shell outlives a
    /// SIGTERM to the group, so that it records the success of a command that ends with 0 then.
    private static let script = """
        trap : TERM
        /bin/sh -c "$1" 3<&-
        status=$?
        [ "$status" -eq 0 ] || exit "$status"
        echo "done $3" >>"$2" || kill -USR1 $$
        """
    /// The signal by which the shell says that it could not record a success. No exit status is left for that.
    private static let unrecorded = SIGUSR1
    private static let lockDescriptor: Int32 = 3

    /// Runs the command, and waits for its end.
    func run() -> Ending {
        let input = linux_memory_file("event")
        guard input >= 0 else { return .failure("cannot keep its input: \(SystemText.error(errno))") }
        defer { _ = close(input) }  // nothing is lost with it
        guard write(to: input), lseek(input, 0, SEEK_SET) == 0 else {
            return .failure("cannot keep its input: \(SystemText.error(errno))")
        }
        var process = pid_t()
        let code = spawn(&process, input)
        guard code == 0 else { return .failure("cannot start it: \(SystemText.error(code))") }
        started(process)
        let isTimedOut = watch(process)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return .failure("cannot wait for it: \(SystemText.error(errno))") }
        }
        let signal = status & 0x7F
        if isTimedOut, status != 0, let limit {
            let time = Describe.span(milliseconds: Int64(limit * 1_000))
            let grace = Describe.span(milliseconds: Int64(Self.grace * 1_000))
            return .failure(
                signal == SIGKILL
                    ? "it did not end after \(time), and was killed \(grace) later" : "it was ended after \(time)")
        }
        if record != nil, signal == Self.unrecorded { return .unrecorded }
        if signal != 0 { return .failure("signal \(signal) ended it") }
        let exit = (status >> 8) & 0xFF
        if exit == 0 { return .success }
        return .failure("it ended with \(exit)")
    }

    /// Waits for the end of the command, or ends its process group after the limit.
    ///
    /// - Returns: whether the limit was passed.
    private func watch(_ process: pid_t) -> Bool {
        let end = linux_process_descriptor(process)
        // Without a descriptor the command is waited for, however long it takes.
        guard end >= 0 else { return false }
        defer { _ = close(end) }  // nothing is lost with it
        let start = ContinuousClock.now
        var report = longTime
        while true {
            let elapsed = (ContinuousClock.now - start) / .seconds(1)
            if let limit, elapsed >= limit {
                // The process is not waited for yet, so its number is not given to another one. What is left of its
                // group has the time to end.
                _ = kill(-process, SIGTERM)  // fails only where the group has ended
                _ = usleep(UInt32(Self.grace * 1e6))  // a signal only shortens the time
                _ = kill(-process, SIGKILL)  // fails only where the group has ended
                return true
            }
            if elapsed >= report {
                runsLong(process)
                report *= 4
            }
            let wait = min(report, limit ?? report, elapsed + 3_600) - elapsed
            var poll = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
            if Glibc.poll(&poll, 1, Int32(max(0, wait) * 1_000) + 1) > 0 { return false }
        }
    }

    private func write(to descriptor: Int32) -> Bool {
        var rest = input[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
        }
        return true
    }

    private func spawn(_ process: inout pid_t, _ input: Int32) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        var code = posix_spawn_file_actions_init(&actions)
        guard code == 0 else { return code }
        defer { _ = posix_spawn_file_actions_destroy(&actions) }  // frees memory
        code = posix_spawn_file_actions_adddup2(&actions, input, 0)
        guard code == 0 else { return code }
        code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        guard code == 0 else { return code }
        if let record {
            code = posix_spawn_file_actions_adddup2(&actions, record.lock, Self.lockDescriptor)
            guard code == 0 else { return code }
        }
        var arguments = ["/bin/sh", "-c", command]
        if let record {
            arguments = ["/bin/sh", "-c", Self.script, "dld-hook", command, record.path, "\(record.sequence)"]
        }
        var attributes = posix_spawnattr_t()
        code = posix_spawnattr_init(&attributes)
        guard code == 0 else { return code }
        defer { _ = posix_spawnattr_destroy(&attributes) }  // frees memory
        code = Self.set(&attributes, ownGroup: record != nil || limit != nil)
        guard code == 0 else { return code }
        let inherited = Environment.variables.filter { !$0.key.hasPrefix("DLD_") || $0.key == "DLD_SOCKET" }
        let environment = inherited.merging(variables) { _, new in new }.map { "\($0.key)=\($0.value)" }
        return withCStrings(arguments) { arguments in
            withCStrings(environment) { environment in
                posix_spawn(&process, "/bin/sh", &actions, &attributes, arguments, environment)
            }
        }
    }

    /// Gives the shell the default signal dispositions, and with a record or a limit a process group of its own: a Ctrl-C
    /// that ends this program must not cut off a command that is then run a second time, and a limit ends the whole
    /// group.
    private static func set(_ attributes: inout posix_spawnattr_t, ownGroup: Bool) -> Int32 {
        var signals = sigset_t()
        guard sigfillset(&signals) == 0 else { return errno }
        var code = posix_spawnattr_setsigdefault(&attributes, &signals)
        guard code == 0 else { return code }
        guard sigemptyset(&signals) == 0 else { return errno }
        code = posix_spawnattr_setsigmask(&attributes, &signals)
        guard code == 0 else { return code }
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (ownGroup ? POSIX_SPAWN_SETPGROUP : 0)
        return posix_spawnattr_setflags(&attributes, Int16(flags))
    }

    private func withCStrings<Value>(
        _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        var copies: [UnsafeMutablePointer<CChar>?] = texts.map { strdup($0) }
        copies.append(nil)
        defer { for copy in copies { free(copy) } }
        return body(&copies)
    }
}
