import FoundationEssentials
package import Glibc
import Synchronization

/// The built `dld` with its own state directory, socket and download directory, and `dlctl` to control it.
package final class DaemonProcess: Sendable {
    package let directory: TemporaryDirectory
    /// The directory of finished files, which is the only download root.
    package let downloads: String
    package let socket: String
    package let stateDirectory: String
    package let configurationFile: String
    private let prefix: [String]
    private let environment: [String: String?]
    private let process = Mutex<ChildProcess?>(nil)

    /// Prepares a daemon without starting it.
    ///
    /// - Parameters:
    ///   - configuration: YAML, written to the daemon's configuration file. `@DIR@` stands for the directory of this
    ///     daemon.
    ///   - stateDirectory: the state directory; by default one in the daemon's own directory.
    ///   - downloadDirectory: the download directory; by default one in the daemon's own directory.
    ///   - prefix: a command that runs the daemon, such as `unshare --mount`.
    ///   - mode: the permissions of the directory that contains all of this.
    package init(
        configuration: String = "", stateDirectory: String? = nil, downloadDirectory: String? = nil,
        prefix: [String] = [], environment: [String: String?] = [:], mode: mode_t = 0o700
    ) throws {
        directory = try TemporaryDirectory(mode: mode)
        downloads = try downloadDirectory ?? directory.makeDirectory("downloads")
        self.stateDirectory = try stateDirectory ?? directory.makeDirectory("state")
        socket = directory.file("dld.sock")
        configurationFile = try directory.write(
            configuration.replacing("@DIR@", with: directory.path), to: "dld.yaml")
        self.prefix = prefix
        self.environment = Self.isolated.merging(environment) { $1 }
    }

    /// Replaces the configuration, which applies from the next start or reload.
    package func configure(_ configuration: String) throws {
        _ = try directory.write(configuration.replacing("@DIR@", with: directory.path), to: "dld.yaml")
    }

    deinit {
        // End the daemon before its directory is removed.
        process.withLock { $0?.end() }
    }

    /// Environment changes that keep the machine's own configuration from the daemon under test.
    private static let isolated: [String: String?] = [
        "XDG_CONFIG_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent", "STATE_DIRECTORY": nil,
        "RUNTIME_DIRECTORY": nil, "NOTIFY_SOCKET": nil, "LISTEN_FDS": nil, "LISTEN_PID": nil, "DLD_SOCKET": nil,
        "http_proxy": nil, "https_proxy": nil, "NO_COLOR": "1",
    ]

    /// Returns the path of the program `name`, from `DLD_BIN_DIR` or the directory of the running test bundle.
    package static func program(_ name: String) throws -> String {
        var places: [String] = []
        if let place = ProcessInfo.processInfo.environment["DLD_BIN_DIR"] { places.append(place) }
        if let bundle = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") {
            places.append(String(bundle[..<(bundle.lastIndex(of: "/") ?? bundle.startIndex)]))
        }
        for place in places where access("\(place)/\(name)", X_OK) == 0 { return "\(place)/\(name)" }
        throw Unusable(reason: "\(name) is in none of \(places); build it or set DLD_BIN_DIR")
    }

    /// The arguments with which the daemon is started, without its program.
    package var arguments: [String] {
        [
            "--config", configurationFile, "--socket", socket, "--state-directory", stateDirectory,
            "--download-directory", downloads, "--log-level", "debug",
        ]
    }

    package var pid: pid_t? { process.withLock { $0?.pid } }

    /// The daemon's standard error since its last start.
    package var log: String { process.withLock { $0?.standardError } ?? "" }

    /// Starts the daemon and waits until it answers on its socket.
    ///
    /// - Parameter prefix: a command that runs the daemon for this start only, after the `prefix` of ``init``.
    package func start(under prefix: [String] = []) async throws {
        let child = try launch(under: prefix)
        try await eventually(that: "the daemon answers", within: .seconds(20), every: .milliseconds(10)) {
            if let status = child.poll() {
                throw Unusable(reason: "dld ended at once (\(status)): \(child.standardError)")
            }
            return answers
        }
    }

    /// Starts the daemon without waiting for it.
    @discardableResult
    package func launch(under prefix: [String] = [], extra: [String] = []) throws -> ChildProcess {
        let child = try ChildProcess(
            self.prefix + prefix + [Self.program("dld")] + arguments + extra, environment: environment,
            directory: directory.path)
        process.withLock { $0 = child }
        return child
    }

    /// Starts the daemon with a socket that is already listening, as systemd does.
    func launch(listener: Int32) throws -> ChildProcess {
        // LISTEN_PID must be the process ID of the daemon, which replaces sh by exec (sd_listen_fds(3)).
        let shell = ["sh", "-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh"]
        var options = arguments
        if let flag = options.firstIndex(of: "--socket") { options.removeSubrange(flag...flag + 1) }
        let child = try ChildProcess(
            shell + [Self.program("dld")] + options, environment: environment, directory: directory.path,
            listener: listener)
        process.withLock { $0 = child }
        return child
    }

    /// Whether a daemon currently answers `daemon.status`.
    package var answers: Bool {
        guard let connection = try? StreamSocket(path: socket) else { return false }
        connection.setReadTimeout(5)
        connection.send(#"{"jsonrpc":"2.0","id":1,"method":"daemon.status"}"#.utf8 + [0x0A])
        return (try? connection.readLine())?.contains("\"result\"") == true
    }

    /// Kills the daemon with SIGKILL, so that it cannot write anything more.
    package func kill() async throws {
        guard let child = process.withLock({ $0 }) else { return }
        child.kill(SIGKILL)
        _ = try await child.wait()
    }

    /// Ends the daemon with SIGTERM and returns its exit status.
    @discardableResult
    package func terminate() async throws -> ExitStatus {
        guard let child = process.withLock({ $0 }) else { throw Unusable(reason: "no daemon runs") }
        child.kill(SIGTERM)
        return try await child.wait(within: .seconds(20))
    }

    /// Whether the daemon is still running.
    package var isRunning: Bool {
        process.withLock { child in child.map { $0.poll() == nil } ?? false }
    }

    /// Runs `dlctl` against this daemon.
    package func dlctl(_ arguments: [String], input: String = "", within limit: Duration = .seconds(120)) async throws
        -> Outcome
    {
        try await run(
            [Self.program("dlctl"), "--socket", socket] + arguments, environment: environment,
            directory: directory.path, input: input, within: limit)
    }

    /// Runs ``dlctl(_:input:within:)`` with a variadic list of arguments.
    package func dlctl(_ arguments: String...) async throws -> Outcome { try await dlctl(arguments) }

    /// The names of part files in the download directory, at any depth.
    package var partFiles: [String] {
        TemporaryDirectory.names(beneath: downloads).filter { $0.contains(".dld-") }
    }
}
