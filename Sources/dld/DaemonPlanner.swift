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
        configuration.limits.activeTasks = DescriptorPlan().activeTasks(configuration.limits.activeTasks)
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
            uid: environment.uid, unit: environment.unit,
            proxyExemptions: configuration.network.proxyExemptions ?? environment.proxyExemptions,
            layout: environment.isSystem ? .perUser : .shared,
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
