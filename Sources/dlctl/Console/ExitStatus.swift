/// The exit status of the program. Scripts rely on these numbers; those from 64 on are from sysexits.h.
enum ExitStatus: Int32, Error {
    case done = 0
    /// A failed task, an unknown id or a refused request.
    case failed = 1
    /// A usage error or a rejected argument.
    case usage = 64
    case noDaemon = 69
    case timedOut = 75
    case notPermitted = 77
    case interrupted = 130
}
