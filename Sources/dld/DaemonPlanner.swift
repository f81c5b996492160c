import ArgumentParser
import Glibc
import Logging
import TaskFiles
import TaskModel

/// The factory of the daemon's plan, from the command line, the configuration and the environment. It is used at the
/// start and on each reload of the configuration.
struct DaemonPlanner: Sendable {
    let environment: ProcessEnvironment
    /// The command line's options, which take precedence over the configuration.
    let configurationFile: String?
    let socket: String?
    let stateDirectory: String?
    let downloadDirectory: String?
    let logLevel: Logger.Level?
    /// The sockets passed by systemd.
    let inheritedSockets: [Int32]
    /// Whether the credentials of hosts are read.
    var readsCredentials = true

    /// - Parameter waits: as for ``TextFile/read(_:limit:waits:)``.
    /// - Throws: ``FileError`` with the position of an error in the configuration, or another error whose description
    ///   states the reason.
    func plan(waits: Bool = false) throws -> DaemonPlan {
        var configuration = try readConfiguration(waits: waits)
        if let downloadDirectory {
            configuration.downloads.directory = ProcessEnvironment.absolute(downloadDirectory)
            configuration.places.removeAll { $0.use == .downloadDirectory }
        }
        configuration.limits.activeTasks = Self.affordable(configuration.limits.activeTasks)
        let state = stateDirectory.map(ProcessEnvironment.absolute) ?? environment.stateDirectory
        let socket =
            inheritedSockets.isEmpty
            ? socket.map(ProcessEnvironment.absolute) ?? configuration.control.socket ?? environment.socket : nil
        let access = try AccessRule(configuration, environment: environment)
        let hosts = HostPlanner(
            configuration: configuration, environment: environment, administrators: access.administrators,
            readsCredentials: readsCredentials)
        return DaemonPlan(
            configuration: configuration, hostAccess: try hosts.access(), hostTrust: try hosts.trust(),
            stateDirectory: state,
            downloadDirectory: environment.downloadDirectory(stateDirectory: state),
            inheritedSockets: inheritedSockets, socket: socket,
            access: access,
            logLevel: logLevel ?? Logger.Level(rawValue: configuration.log.level.rawValue) ?? .info,
            uid: environment.uid, unit: environment.unit, layout: environment.isSystem ? .perUser : .shared,
            protectedDirectories: protectedDirectories(state, socket: socket))
    }

    private func protectedDirectories(_ state: String, socket: String?) -> [String] {
        let file = configurationFile.map(ProcessEnvironment.absolute) ?? environment.configurationFile
        return [state] + environment.ownDirectories + [file, socket].compactMap { $0.map(Self.directory) }
    }

    private static func directory(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? "/"
    }

    /// Whether the configuration file is the default one.
    var usesDefaultFile: Bool {
        configurationFile.map { ProcessEnvironment.absolute($0) == environment.configurationFile } ?? true
    }

    private func readConfiguration(waits: Bool) throws -> Configuration {
        let path = configurationFile.map(ProcessEnvironment.absolute) ?? environment.configurationFile
        if configurationFile == nil, TextFile.isMissing(path) {
            guard environment.instance == nil || !environment.isSystem else { throw MissingInstanceFile(path: path) }
            return Configuration()
        }
        return try Configuration(
            parsing: FileText.decode(try TextFile.read(path, waits: waits && configurationFile != nil), file: path),
            file: path,
            readFile: BatchRun.read)
    }

    /// Returns the number of file descriptors that the daemon itself uses if it may have `limit`: 56 with a few clients,
    /// and 32 more for backups, webhooks and readers of the database. With a limit of 64, those wait for each other.
    private static func ownDescriptors(of limit: Int) -> Int {
        56 + max(0, min(32, limit.subtractingClamped(64) / 2))
    }
    /// The number of file descriptors per task: the part file, its directory, a connection, and one connection kept for
    /// the next request.
    private static let descriptorsPerTask = 4

    /// Limits the number of tasks that may run at a time, so that descriptors are left for clients. With more transfers
    /// than descriptors, some would fail instead of waiting.
    private static func affordable(_ tasks: Int) -> Int {
        guard let descriptors else { return tasks }
        return max(1, min(tasks, descriptors.subtractingClamped(ownDescriptors(of: descriptors)) / descriptorsPerTask))
    }

    /// Returns the number of descriptors left for clients while `tasks` tasks run.
    static func descriptorsForClients(besideTasks tasks: Int) -> Int {
        guard let descriptors else { return .max }
        let ofTasks = tasks.multipliedClamped(by: descriptorsPerTask)
        return max(0, descriptors.subtractingClamped(ownDescriptors(of: descriptors)).subtractingClamped(ofTasks))
    }

    /// The limit on file descriptors; `nil` if it is unknown.
    private static var descriptors: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }
}

/// The failure of an instance of the system's daemon that has no configuration file. With the defaults it would have
/// none of the restrictions that the system's own file sets.
struct MissingInstanceFile: Error, CustomStringConvertible {
    let path: String

    var description: String {
        "\(path) does not exist; each instance of the system's daemon has a configuration of its own: write one, for "
            + "example a copy of /etc/dld/dld.yaml without its queues and watched directories"
    }
}
