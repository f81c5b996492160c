import ArgumentParser
import CDescriptors
import ControlProtocol
import ControlServer
import CoreMetrics
import Glibc
import Logging
import ServiceLifecycle
import TaskFiles
import TaskModel
import TaskQueue
import TaskStore
import Transfer
import UnixSignals

/// The daemon's command line.
@main
struct Dld: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dld",
        abstract: "Downloads and uploads files, and continues after failures and restarts.",
        usage: "dld [<options>]",
        discussion: """
            dld runs in the foreground. It stores tasks in the state directory, so they survive any end of the daemon. \
            Use dlctl to add and control tasks.

            EXAMPLES:
              dld                        run your own daemon with your configuration
              dld --check-config         check the configuration
              dld --queue files.yaml --exit-when-done
                                         apply a queue file, run its tasks, then exit

            SIGTERM and SIGINT stop the daemon after it has saved all progress.
            """,
        version: ProductVersion.version)

    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The name of a daemon beside others, with its own configuration NAME.yaml, state and socket.",
            valueName: "name"))
    var instance: String?

    @Option(help: ArgumentHelp("The path of the control socket.", valueName: "path"))
    var socket: String?

    @Option(help: ArgumentHelp("The directory in which tasks are stored.", valueName: "dir"))
    var stateDirectory: String?

    @Option(help: ArgumentHelp("The directory for downloads that name no other.", valueName: "dir"))
    var downloadDirectory: String?

    @Option(
        help: ArgumentHelp("The log level: trace, debug, info, notice, warning, error or critical.", valueName: "level")
    )
    var logLevel: String?

    @Flag(help: "Check the configuration, then exit.")
    var checkConfig = false

    @Flag(help: "Print the configuration file, the state directory, the socket and the download directory, then exit.")
    var showPaths = false

    @Option(help: ArgumentHelp("Apply this queue file.", valueName: "file"))
    var queue: String?

    @Flag(
        help:
            "With --queue: exit when every task of the file has ended, with status 0 if all completed and 1 otherwise.")
    var exitWhenDone = false

    static func main() async {
        do {
            var command = try parseAsRoot(try CommandWords.own())
            if let dld = command as? Dld { try await dld.run() } else { try command.run() }
        } catch {
            let status = error is CommandWords.Unreadable ? ExitCode.validationFailure : exitCode(for: error)
            guard status == .validationFailure else { exit(withError: error) }
            report(usageFault(error is CommandWords.Unreadable ? "\(error)" : message(for: error)))
            Glibc.exit(status.rawValue)
        }
    }

    /// Returns a message of the argument parser in the form of dlctl's.
    static func usageFault(_ message: String) -> String {
        var text = message.split(separator: "\n").map { $0.drop { $0 == " " } }.joined(separator: " ")
        text = text.replacing(". Did you", with: "; did you").replacing("'", with: "\"")
        if text.dropFirst().first?.isLowercase == true { text = text.prefix(1).lowercased() + text.dropFirst() }
        return text + "; see \"dld --help\""
    }

    func validate() throws {
        let paths = [
            ("config", config), ("socket", socket), ("state-directory", stateDirectory),
            ("download-directory", downloadDirectory), ("queue", queue),
        ]
        for (name, path) in paths where path?.isEmpty == true {
            throw ValidationError("--\(name): is empty; give a path or leave the option out")
        }
        _ = try instanceName()
        if exitWhenDone, queue == nil { throw ValidationError("--exit-when-done needs --queue FILE") }
        if let logLevel, Logger.Level(rawValue: logLevel) == nil {
            throw ValidationError("--log-level: use one of trace, debug, info, notice, warning, error, critical")
        }
    }

    private func instanceName() throws -> InstanceName? {
        do throws(FieldError) {
            return if let instance { try InstanceName(instance) } else { nil }
        } catch {
            throw ValidationError("--instance: \(error.message)")
        }
    }

    func run() async throws {
        let environment = ProcessEnvironment.current(try instanceName())
        ProcessEnvironment.scrub()
        // A closed peer and a file beyond the size limit then cause errors of a call instead of ending the process.
        // SIGHUP is ignored until the daemon traps it for reloading.
        _ = signal(SIGPIPE, SIG_IGN)  // fails only for an unknown signal
        _ = signal(SIGXFSZ, SIG_IGN)  // fails only for an unknown signal
        _ = signal(SIGHUP, SIG_IGN)  // fails only for an unknown signal
        FirstProcess.assumeDuties()
        Self.raiseDescriptorLimit()
        cdescriptors_keep()
        SchedulingPolicy.becomeBatch()

        let isCheck = checkConfig || showPaths
        if !isCheck { ReceivingProcess.start() }
        defer { if !isCheck { ReceivingProcess.stop() } }

        let inherited = isCheck ? ServiceManager.Inherited() : ServiceManager.inherited()
        let planner = DaemonPlanner(
            environment: environment, configurationFile: config, socket: socket, stateDirectory: stateDirectory,
            downloadDirectory: downloadDirectory, logLevel: logLevel.flatMap(Logger.Level.init(rawValue:)),
            inheritedSockets: inherited.sockets)
        if isCheck {
            do throws(StartupFailure) {
                if checkConfig { for check in ConfigurationCheck.all(planner) { try check.run() } }
                if showPaths { try ConfigurationCheck(planner: planner).showPaths() }
            } catch {
                Self.report(error)
                throw error.exit
            }
            return
        }
        MetricsSystem.bootstrap(MetricsRegistry.shared)
        defer { LogOutput.queue.flush() }
        let logger = Logger(label: "dld") { _ in QueueLogHandler(LogOutput.queue) }
        let startup = Startup(
            planner: planner, queueFile: queue, exitsWhenDone: exitWhenDone,
            descriptorStore: DescriptorStore(inherited), logger: logger)
        let prepared = try await Self.prepare(startup, logger)
        let status = try await Self.serve(prepared.daemon, prepared.batch, exitWhenDone: exitWhenDone, logger)
        withExtendedLifetime(prepared) {}
        if status != 0 { throw ExitCode(status) }
    }

    private static func prepare(_ startup: Startup, _ logger: Logger) async throws -> Startup.Prepared {
        do throws(StartupFailure) {
            do throws(StartupFailure) {
                return try startup.prepare(waits: true)
            } catch {
                report(error)
                ServiceManager.notify("STATUS=Cannot start: \(LogText.printable(error.message))")
                return try await FailureServer(startup: startup, logger: logger).serve(error)
            }
        } catch {
            throw error.exit
        }
    }

    private static func serve(
        _ daemon: Daemon, _ batch: BatchRun?, exitWhenDone: Bool, _ logger: Logger
    ) async throws -> Int32 {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(
                        service: daemon, successTerminationBehavior: .gracefullyShutdownGroup,
                        failureTerminationBehavior: .gracefullyShutdownGroup)
                ],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet(logger)))
        do {
            return try await withThrowingTaskGroup(of: Int32?.self) { tasks in
                tasks.addTask {
                    try await group.run()
                    return nil
                }
                if let batch {
                    tasks.addTask { try await carryOut(batch, on: daemon, exitWhenDone: exitWhenDone) }
                }
                // A batch that a signal interrupts counts as not completed.
                var status: Int32 = batch != nil && exitWhenDone ? 1 : 0
                for try await result in tasks {
                    guard let result else { break }
                    status = result
                    // The request follows the assignment, because the end of the daemon ends this loop.
                    if exitWhenDone || status != 0 { daemon.stopRequest.request() }
                }
                tasks.cancelAll()
                return status
            }
        } catch let error as ExitCode {
            throw error
        } catch {
            report("\(error)")
            throw StartupFailure.Exit.failure
        }
    }

    /// - Returns: the exit status for the batch.
    private static func carryOut(_ batch: BatchRun, on daemon: Daemon, exitWhenDone: Bool) async throws -> Int32 {
        var status: Int32 = 0
        for note in batch.notes { daemon.logger.warning("\(note)") }
        do {
            // First, so that a task which fails right after it was added is not tried a second time.
            if exitWhenDone { try await batch.retryFailed(on: daemon.queue) }
            let changes = try await batch.apply(to: daemon.queue, validatesPlaces: true)
            daemon.logger.info(
                "queue file applied",
                metadata: [
                    "batch": "\(batch.batch)", "added": "\(changes.added)", "updated": "\(changes.updated)",
                    "unchanged": "\(changes.unchanged)", "checked": "\(changes.checked)",
                ])
            guard exitWhenDone else { return 0 }
            try await batch.wait(on: daemon.queue)
            try await batch.forEachIncomplete(on: daemon.queue) { task in
                let why = task.error.map { "\($0.code): \($0.message)" } ?? task.reason?.rawValue ?? "no reason known"
                report("task \(task.id) (\(task.url)) is \(task.state.rawValue): \(why)")
                status = 1
            }
        } catch let error as FileError {
            report("\(error)")
            status = 1
        } catch let error as QueueError {
            // If a signal ended the daemon first, that was already reported.
            if error != .store(.closed) { report(error.text) }
            status = 1
        }
        return status
    }

    // MARK: Setup

    /// Limits the service group's own messages to warnings, as the others only serve debugging.
    private static func quiet(_ logger: Logger) -> Logger {
        var quiet = logger
        quiet.logLevel = .warning
        return quiet
    }

    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)  // at worst the limit stays as it was
    }

    // MARK: Errors

    static func report(_ message: String) {
        LogOutput.queue.flush()
        var line = "\(errorPrefix)dld: \(LogText.printable(message))\n"
        _ = line.withUTF8 { write(2, $0.baseAddress, $0.count) }  // there is no other place to report to
    }

    /// The prefix for the priority `err`, which the journal parses on each line (sd-daemon(3), `SD_ERR`).
    static var errorPrefix: String { ProcessEnvironment.current.logsToJournal ? "<3>" : "" }

    /// Prints why the daemon cannot start. A position, FILE:LINE:COLUMN, comes first, as editors expect it.
    static func report(_ failure: StartupFailure) {
        guard failure.isInFile else { return report(failure.message) }
        LogOutput.queue.flush()
        let lines = ([failure.message] + failure.others).map { errorPrefix + LogText.printable($0) + "\n" }
        var line = lines.joined()
        _ = line.withUTF8 { write(2, $0.baseAddress, $0.count) }  // there is no other place to report to
    }
}
