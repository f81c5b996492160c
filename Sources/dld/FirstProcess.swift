import Glibc

/// The duties of a container's first process (PID 1), as which dld may run without an init system.
enum FirstProcess {
    /// Assumes the duties if this process is the first one.
    ///
    /// Processes whose parents have ended become children of the first one. The kernel removes them when they end if
    /// the first one ignores SIGCHLD (wait(2)). A first process receives no signal without a handler, not even SIGTERM
    /// (pid_namespaces(7)): until the daemon traps its signals, they end the process.
    static func assumeDuties() {
        guard getpid() == 1 else { return }
        _ = signal(SIGCHLD, SIG_IGN)  // fails only for an unknown signal
        for number in [SIGTERM, SIGINT] {
            _ = signal(number) { _exit(128 + $0) }  // fails only for an unknown signal
        }
    }
}
