import ArgumentParser
import Glibc
import Logging
import TaskFiles
import TaskModel

/// The factory of the daemon's plan, from the command line, the configuration and the environment. It is used at the
/// start and on each reload of the configuration.
struct DaemonPlanner: Sendable {
    var environment: ProcessEnvironment
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

    /// - Parameter waits: as for ``SmallFile/read(_:limit:waits:)``.
    /// - Throws: ``FileError`` with the position of an error in the configuration, or another error whose description
    ///   states the reason.
    func plan(waits: Bool = false) throws -> DaemonPlan {
        let (read, readsFile) = try readConfiguration(waits: waits)
        var configuration = read
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
            configurationFile: file, readsFile: readsFile, stateDirectory: state,
            downloadDirectory: environment.downloadDirectory(stateDirectory: state),
            inheritedSockets: inheritedSockets, socket: socket,
            access: access,
            logLevel: logLevel ?? Logger.Level(rawValue: configuration.log.level.rawValue) ?? .info,
            uid: environment.uid, unit: environment.unit,
            proxyExemptions: configuration.network.proxyExemptions ?? environment.proxyExemptions,
            layout: environment.isSystem ? .perUser : .shared,
            allowsEveryDirectory: isFree(configuration),
            protectedDirectories: protectedDirectories(state, socket: socket, configuration))
    }

    private func isFree(_ configuration: Configuration) -> Bool {
        !environment.isSystem && configuration.downloads.roots == nil
    }

    private func protectedDirectories(_ state: String, socket: String?, _ configuration: Configuration) -> [String] {
        var (file, socket, watched) = (Optional(file), socket, [String]())
        if isFree(configuration) {
            // In other than the usual places, these may be in the user's home directory.
            if !usesDefaultFile { file = nil }
            if socket != environment.socket { socket = nil }
            // Files that servers name must not be taken for lists of tasks.
            watched = configuration.watch.map(\.directory)
        }
        return watched + [state] + environment.ownDirectories + [file, socket].compactMap { $0.map(Self.directory) }
    }

    private static func directory(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? "/"
    }

    /// The path of the configuration file.
    var file: String { configurationFile.map(ProcessEnvironment.absolute) ?? environment.configurationFile }

    /// Whether the configuration file is the default one.
    var usesDefaultFile: Bool { file == environment.configurationFile }

    /// Returns the configuration, and whether it comes from a file.
    private func readConfiguration(waits: Bool) throws -> (Configuration, Bool) {
        let path = file
        if configurationFile == nil, SmallFile.isMissing(path) {
            guard environment.instance == nil || !environment.isSystem else { throw MissingInstanceFile(path: path) }
            return (Configuration(), false)
        }
        let configuration = try Configuration(
            parsing: FileText.decode(try SmallFile.read(path, waits: waits && configurationFile != nil), file: path),
            file: path,
            readFile: BatchRun.read)
        return (configuration, true)
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
