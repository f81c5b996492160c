import ControlProtocol
import Glibc
import TaskFiles
import TaskModel

/// The environment: the locations that systemd, XDG and the user define.
struct ProcessEnvironment {
    let variables: [String: String]
    let uid: UInt32
    /// The instance of the daemon; `nil` for the one without a name.
    var instance: InstanceName?
    /// The places of the user's own daemon.
    private let own: OwnPlaces

    init(variables: [String: String], uid: UInt32, instance: InstanceName? = nil) {
        (self.variables, self.uid, self.instance) = (variables, uid, instance)
        own = OwnPlaces(environment: variables, uid: uid)
    }

    static var current: ProcessEnvironment { current(nil) }

    static func current(_ instance: InstanceName?) -> ProcessEnvironment {
        var variables: [String: String] = [:]
        for name in [
            "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY",
            "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_DOWNLOAD_DIR", "HOME", "JOURNAL_STREAM",
            "INVOCATION_ID", "no_proxy", "NO_PROXY",
        ] {
            if let value = getenv(name) { variables[name] = String(cString: value) }
        }
        return ProcessEnvironment(variables: variables, uid: getuid(), instance: instance)
    }

    /// Removes variables that could change the behaviour of the libraries.
    static func scrub() {
        for name in [
            "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
            "ftp_proxy", "FTP_PROXY", "SSLKEYLOGFILE", "CURL_HOME", "CURL_CA_BUNDLE", "NETRC",
        ] { _ = unsetenv(name) }  // fails only for a name with "="
    }

    /// Whether this is the system's service, as opposed to a user's own daemon. The daemon that root runs in a shell is
    /// root's own.
    var isSystem: Bool { variables["STATE_DIRECTORY"]?.hasPrefix("/var/") ?? false }

    /// The environment of the system's service on this machine, as its units define it.
    var ofService: ProcessEnvironment {
        let service = variables.merging([
            "STATE_DIRECTORY": "/var/lib/\(directory)", "RUNTIME_DIRECTORY": "/run/\(directory)",
        ]) { $1 }
        return ProcessEnvironment(variables: service, uid: uid, instance: instance)
    }

    /// The servers that the user of a user's own daemon wants to reach without a proxy (`NO_PROXY`). The spelling in
    /// lower case has precedence, as in curl(1). Such variables of the system's daemon are ignored.
    var proxyExemptions: [ProxyExemption] {
        guard !isSystem, let text = variables["no_proxy"] ?? variables["NO_PROXY"] else { return [] }
        return ProxyExemption.list(ofVariable: text)
    }

    /// The unit of the system's service.
    var serviceUnit: String { instance.map { "dld@\($0).service" } ?? "dld.service" }

    /// The name of the directories for the state and the socket.
    var directory: String { instance?.directory ?? "dld" }

    /// Returns the first directory of a variable. systemd separates several directories by colons.
    private func first(_ name: String) -> String? {
        variables[name]?.split(separator: ":").first.map(String.init)
    }

    var configurationFile: String {
        let name = instance?.configurationFile ?? "dld.yaml"
        if isSystem { return "/etc/dld/" + name }
        return own.configurations + "/dld/" + name
    }

    /// The directory of the credentials that systemd passes (systemd.exec(5), `LoadCredential=`).
    var systemCredentials: String? { first("CREDENTIALS_DIRECTORY") }

    /// The directory of the credentials of a user's own daemon; `nil` for the system's.
    var userCredentials: String? {
        isSystem ? nil : own.configurations + "/dld/credentials"
    }

    var stateDirectory: String {
        first("STATE_DIRECTORY") ?? own.states + "/" + directory
    }

    /// The path of the control socket.
    var socket: String {
        if let runtime = first("RUNTIME_DIRECTORY") { return runtime + "/dld.sock" }
        if isSystem { return "/run/\(directory)/dld.sock" }
        return own.sockets(directory).first ?? stateDirectory + "/dld.sock"
    }

    /// The system directories that hold the daemon's own files: the socket, the configuration, and units that would be
    /// started as other users.
    var ownDirectories: [String] {
        var directories = [
            first("RUNTIME_DIRECTORY"), first("CONFIGURATION_DIRECTORY"), systemCredentials, userCredentials,
        ]
        .compactMap(\.self)
        if isSystem { directories += ["/etc", "/run", "/usr", "/boot", "/dev", "/proc", "/sys"] }
        return directories
    }

    func downloadDirectory(stateDirectory: String) -> String {
        if isSystem { return stateDirectory + "/downloads" }
        return variables["XDG_DOWNLOAD_DIR"] ?? (own.home == "/" ? "" : own.home) + "/Downloads"
    }

    /// The systemd unit whose service this process is (systemd.exec(5), `INVOCATION_ID`); `nil` outside of one.
    var unit: String? {
        guard variables["INVOCATION_ID"] != nil, let bytes = try? SmallFile.read("/proc/self/cgroup", limit: 1 << 16)
        else { return nil }
        // The last line is that of the unified hierarchy (cgroups(7)): `0::/system.slice/dld.service`.
        let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").last ?? ""
        return line.split(separator: "/").last.map(String.init).flatMap { $0.hasSuffix(".service") ? $0 : nil }
    }

    /// Whether standard error goes to the journal.
    var logsToJournal: Bool { variables["JOURNAL_STREAM"] != nil }

    /// Returns the absolute path for a path relative to the working directory.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        guard let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path
    }
}
