import ControlClient
import Glibc
import TaskModel

/// Advice for a daemon that does not answer: how to start the daemon of the socket that was tried, and where its log
/// is.
struct DaemonAdvice {
    private let userSocket: String
    private let environment: [String: String]
    /// Whether systemd has a unit for the user's own daemon.
    private let hasUserUnit: Bool

    /// - Parameters:
    ///   - environment: the environment of the process.
    ///   - exists: returns whether a file exists at a path.
    init(environment: [String: String], exists: (String) -> Bool) {
        self.environment = environment
        userSocket = SocketPath.user(environment: environment)
        hasUserUnit = Self.unitDirectories(environment).contains { exists($0 + "/dld.service") }
    }

    /// The advice for the environment and file system of this process.
    static var here: DaemonAdvice {
        DaemonAdvice(environment: Environment.variables) { access($0, F_OK) == 0 }
    }

    /// Returns the directories in which systemd looks for user units (systemd.unit(5)).
    private static func unitDirectories(_ environment: [String: String]) -> [String] {
        let home = environment["HOME"] ?? ""
        func directory(_ variable: String, _ fallback: String) -> [String] {
            if let path = environment[variable], path.hasPrefix("/") { return [path + "/systemd/user"] }
            return home.hasPrefix("/") ? [home + fallback + "/systemd/user"] : []
        }
        return directory("XDG_CONFIG_HOME", "/.config") + directory("XDG_DATA_HOME", "/.local/share")
            + ["/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"]
    }

    /// Returns `start it with …`, or `start your own with …, or the system's with …`, for each socket that was tried.
    func start(_ paths: [String]) -> String {
        guard paths.count > 1 else { return "start it with \"\(command(paths.first ?? SocketPath.system))\"" }
        return paths.map { path in
            "\(path.hasPrefix("/run/dld") ? "the system's" : "start your own") with \"\(command(path))\""
        }.joined(separator: ", or ")
    }

    private func command(_ path: String) -> String {
        switch path {
        case SocketPath.system: "sudo systemctl start dld.socket dld.service"
        case userSocket: hasUserUnit ? "systemctl --user start dld" : "dld"
        default: instance(path).map { command($0, path) } ?? "dld --socket \(Shell.quoted(path))"
        }
    }

    private func command(_ instance: InstanceName, _ path: String) -> String {
        if path == SocketPath.system(instance) { return "sudo systemctl start dld@\(instance).socket" }
        return hasUserUnit ? "systemctl --user start dld@\(instance).socket" : "dld --instance \(instance)"
    }

    /// Returns the instance of the daemon to which a socket belongs.
    private func instance(_ path: String) -> InstanceName? {
        let components = path.split(separator: "/").suffix(2)
        guard let directory = components.first, directory.hasPrefix("dld-") else { return nil }
        guard let instance = try? InstanceName(String(directory.dropFirst(4))) else { return nil }
        let own = [SocketPath.system(instance), SocketPath.user(instance, environment: environment)]
        return own.contains(path) ? instance : nil
    }

    private static let elsewhere = "the terminal or log of that daemon may say why"

    private func log(_ instance: InstanceName, _ path: String) -> String {
        let isSystem = path == SocketPath.system(instance)
        if !isSystem, !hasUserUnit { return Self.elsewhere }
        return "\"journalctl \(isSystem ? "" : "--user ")-u dld@\(instance) -n 20\" may say why"
    }

    /// Returns where the daemon at a socket writes its log.
    func log(_ path: String) -> String {
        switch path {
        case SocketPath.system: "\"journalctl -u dld -n 20\" may say why"
        case userSocket where hasUserUnit: "\"journalctl --user -u dld -n 20\" may say why"
        default: instance(path).map { log($0, path) } ?? Self.elsewhere
        }
    }
}
