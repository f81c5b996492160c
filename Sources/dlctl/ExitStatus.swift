/// What the shell learns. The numbers are a promise to scripts (those from 64 on are sysexits.h's).
enum ExitStatus: Int32, Error {
    case done = 0
    /// A task failed, an id is unknown, or the request was refused.
    case failed = 1
    /// Usage, or an argument that was rejected.
    case usage = 64
    case noDaemon = 69
    case timedOut = 75
    case notPermitted = 77
    case interrupted = 130
}
