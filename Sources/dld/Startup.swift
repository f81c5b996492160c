import ArgumentParser
import Logging
import TaskFiles
import TaskStore

/// The reason why the daemon cannot start.
struct StartupFailure: Error {
    /// The message for the user in one line; for an error in a file it begins with `FILE:LINE:COLUMN: `.
    var message: String
    var exit: ExitCode
    /// Whether the message begins with a file's name, and is printed without the program's name.
    var isInFile = false
    /// Messages about further faults in the file.
    var others: [String] = []

    /// The exit codes of sysexits(3).
    enum Exit {
        static let failure = ExitCode(1)
        /// The database cannot be used; systemd does not restart the daemon automatically.
        static let data = ExitCode(65)
        static let busy = ExitCode(75)
        static let configuration = ExitCode(78)
    }

    init(_ message: String, exit: ExitCode) {
        self.message = message
        self.exit = exit
    }

    /// - Parameter exit: the exit code, unless the error has its own.
    init(_ error: any Error, exit: ExitCode) {
        message = "\(error)"
        if let error = error as? FileError {
            isInFile = true
            others = Array(error.lines.dropFirst())
        }
        self.exit =
            switch error {
            case StateLock.Failure.held: Exit.busy
            case StoreError.corrupt, StoreError.newer, StoreError.development, StoreError.notADatabase,
                StoreError.missing, StoreError.foreignLog:
                Exit.data
            default: exit
            }
    }
}

/// The preparation of a daemon to run: reads the configuration, acquires the state directory's lock and opens the
/// database.
struct Startup: Sendable {
    let planner: DaemonPlanner
    /// The path as given with `--queue`.
    let queueFile: String?
    let exitsWhenDone: Bool
    let descriptorStore: DescriptorStore
    let logger: Logger

    struct Prepared: Sendable {
        let daemon: Daemon
        let batch: BatchRun?
        /// The lock, held for as long as the daemon runs.
        let lock: StateLock
    }

    /// - Parameter waits: as for ``SmallFile/read(_:limit:waits:)``.
    func prepare(waits: Bool) throws(StartupFailure) -> Prepared {
        let plan = try Self.failing(StartupFailure.Exit.configuration) { try planner.plan(waits: waits) }
        let batch = try queueFile.map { path throws(StartupFailure) in
            let exit = exitsWhenDone ? StartupFailure.Exit.failure : StartupFailure.Exit.configuration
            return try Self.failing(exit) {
                try BatchRun(file: ProcessEnvironment.absolute(path), uid: planner.environment.uid, waits: waits)
            }
        }
        LogLevelSwitch.level = plan.logLevel
        let lock = try Self.failing(StartupFailure.Exit.failure) { try StateLock(directory: plan.stateDirectory) }
        let daemon = try Self.failing(StartupFailure.Exit.failure) {
            try Daemon(plan: plan, planner: planner, descriptorStore: descriptorStore, logger: logger)
        }
        return Prepared(daemon: daemon, batch: batch, lock: lock)
    }

    /// Runs `body`. An error that it throws becomes a failure with the given exit code, unless the error has its own.
    private static func failing<Value>(
        _ exit: ExitCode, _ body: () throws -> Value
    ) throws(StartupFailure) -> Value {
        do {
            return try body()
        } catch {
            throw StartupFailure(error, exit: exit)
        }
    }
}
