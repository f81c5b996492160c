import ArgumentParser
import Glibc
import Logging
import TaskFiles
import TaskModel

/// Makes the daemon's plan of what the command line, the configuration and the surroundings say: at the start, and each
/// time that the configuration is to be read again.
struct DaemonPlanner: Sendable {
    let surroundings: Surroundings
    /// As they were given on the command line, where they were; they win over the configuration.
    let configurationFile: String?
    let socket: String?
    let stateDirectory: String?
    let downloadDirectory: String?
    let logLevel: Logger.Level?
    /// Sockets from systemd.
    let inheritedSockets: [Int32]

    /// - Parameter waits: as of ``TextFile/read(_:limit:waits:)``.
    /// - Throws: ``FileError`` with the place of what is wrong with the configuration, and other errors whose descriptions
    ///   say what is.
    func plan(waits: Bool = false) throws -> DaemonPlan {
        var configuration = try readConfiguration(waits: waits)
        if let downloadDirectory {
            configuration.downloads.directory = Surroundings.absolute(downloadDirectory)
            configuration.places.removeAll { $0.use == .downloadDirectory }
        }
        configuration.limits.activeTasks = Self.affordable(configuration.limits.activeTasks)
        let state = stateDirectory.map(Surroundings.absolute) ?? surroundings.stateDirectory
        let socket =
            inheritedSockets.isEmpty
            ? socket.map(Surroundings.absolute) ?? configuration.control.socket ?? surroundings.socket : nil
        return DaemonPlan(
            configuration: configuration, stateDirectory: state,
            downloadDirectory: surroundings.downloadDirectory(stateDirectory: state),
            inheritedSockets: inheritedSockets, socket: socket,
            access: try AccessRule(configuration, surroundings: surroundings),
            logLevel: logLevel ?? Logger.Level(rawValue: configuration.log.level.rawValue) ?? .info,
            uid: surroundings.uid, unit: surroundings.unit, layout: surroundings.isSystem ? .perUser : .shared,
            protectedDirectories: protectedDirectories(state, socket: socket))
    }

    private func protectedDirectories(_ state: String, socket: String?) -> [String] {
        let file = configurationFile.map(Surroundings.absolute) ?? surroundings.configurationFile
        return [state] + surroundings.ownDirectories + [file, socket].compactMap { $0.map(Self.directory) }
    }

    private static func directory(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? "/"
    }

    /// The configuration is the one that the daemon finds by itself.
    var usesDefaultFile: Bool {
        configurationFile.map { Surroundings.absolute($0) == surroundings.configurationFile } ?? true
    }

    private func readConfiguration(waits: Bool) throws -> Configuration {
        let path = configurationFile.map(Surroundings.absolute) ?? surroundings.configurationFile
        guard configurationFile != nil || !TextFile.isMissing(path) else { return Configuration() }
        return try Configuration(
            parsing: FileText.decode(try TextFile.read(path, waits: waits && configurationFile != nil), file: path),
            file: path,
            readFile: BatchRun.read)
    }

    /// Descriptors that the daemon itself uses, a few clients and the database's readers among them.
    private static let ownDescriptors = 56
    /// A part, its directory, a connection, and one that is kept for the next request.
    private static let descriptorsPerTask = 4

    /// How many tasks may run at a time, so that descriptors are left for those who ask about them: more transfers
    /// than the system lets be open would fail, where they can as well wait.
    private static func affordable(_ tasks: Int) -> Int {
        guard let descriptors else { return tasks }
        return max(1, min(tasks, (descriptors - ownDescriptors) / descriptorsPerTask))
    }

    /// The number of descriptors that are left for clients where so many tasks run.
    static func descriptorsForClients(besideTasks tasks: Int) -> Int {
        guard let descriptors else { return .max }
        let ofTasks = tasks.multipliedClamped(by: descriptorsPerTask)
        return max(0, descriptors.subtractingClamped(ownDescriptors).subtractingClamped(ofTasks))
    }

    /// The limit on them; `nil`: not known.
    private static var descriptors: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0 else { return nil }  // RLIMIT_NOFILE
        return Int(clamping: limit.rlim_cur)
    }
}
