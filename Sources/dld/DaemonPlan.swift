import ControlProtocol
import ControlServer
import Logging
import TaskFiles
import TaskModel
import TaskQueue
import Transfer

/// The effective settings from the command line, the configuration and the environment.
struct DaemonPlan: Sendable {
    var configuration: Configuration
    /// The credentials and header lines that requests are sent with, by host.
    var hostAccess: [String: HostAccess]
    /// The criteria by which servers are trusted, by host.
    var hostTrust: [String: HostTrust]
    /// The path of the configuration file.
    var configurationFile: String
    /// Whether the file exists. The defaults apply otherwise.
    var readsFile: Bool
    var stateDirectory: String
    var downloadDirectory: String
    /// The sockets passed by systemd; if there are any, the daemon creates none.
    var inheritedSockets: [Int32]
    /// The path at which to create a socket.
    var socket: String?
    var access: AccessRule
    var logLevel: Logger.Level
    var uid: UInt32
    /// The systemd unit that the daemon runs as.
    var unit: String?
    /// The servers that are contacted without the configuration's proxy.
    var proxyExemptions: [ProxyExemption] = []
    /// The layout of the download directory if the configuration names none.
    var layout: DownloadLayout
    /// Whether the daemon's user may name every directory: in a user's own daemon, unless `downloads.roots` is set.
    var allowsEveryDirectory: Bool
    /// The directories of the daemon itself: its state, its configuration and its socket.
    var protectedDirectories: [String]

    /// The configuration file for people.
    var configurationText: String {
        configurationFile + (readsFile ? "" : " (does not exist; the defaults apply)")
    }

    /// A line for each place that the daemon uses, with its name and its path.
    var paths: String {
        let places = [
            ("configuration", configurationText), ("state", stateDirectory),
            ("socket", socket ?? DaemonStatus.inheritedSocket),
            ("downloads", queueSettings.downloadDirectory),
        ]
        return places.map { name, path in name + String(repeating: " ", count: 15 - name.count) + path }
            .joined(separator: "\n")
    }

    var queueSettings: QueueSettings {
        var settings = QueueSettings(
            configuration, downloadDirectory: downloadDirectory, layout: layout, daemonUser: uid, unit: unit)
        settings.allowsEveryDirectory = allowsEveryDirectory
        // A protected directory that the administrator named for tasks may be used by them, except for the state
        // directory.
        let named = [settings.downloadDirectory] + settings.downloadRoots + settings.uploadRoots
        settings.protectedPlaces = ProtectedPlaces(
            protectedDirectories.filter { directory in
                directory == stateDirectory || !named.contains(directory)
            })
        settings.endingTasks = DescriptorPlan().endingTasks(besideActive: configuration.limits.activeTasks)
        settings.networkExemption = networkExemption
        settings.hostAccess = HostTable(hostAccess)
        return settings
    }

    private var networkExemption: NetworkExemption {
        switch configuration.network.exempt {
        case .none: .none
        case .administrators:
            .administrators { [administrators = access.administrators] uid in
                administrators?.contains(Peer(uid: uid, gid: .max, pid: 0)) ?? false
            }
        }
    }

    var session: SessionConfiguration {
        var session = SessionConfiguration()
        session.userAgent = "dld/\(ProductVersion.version)"
        session.connectTimeout = configuration.timeouts.connect
        session.stallTimeout = configuration.timeouts.stall
        session.connectTimeouts = HostTable(configuration.hosts.compactMapValues(\.connectTimeout))
        session.stallTimeouts = HostTable(configuration.hosts.compactMapValues(\.stallTimeout))
        session.proxy = configuration.network.proxy
        session.proxyExceptions = proxyExemptions.map { exemption in
            switch exemption {
            case .every: .every
            case .name(let name, let port): .name(name, port: port)
            case .network(let network, let port): .network(IPNetwork(network), port: port)
            }
        }
        session.hostProxies = HostTable(configuration.hosts.compactMapValues(\.proxy))
        session.deniedNetworks = configuration.network.deny.map { IPNetwork($0) }
        session.hostKeys = .userAndSystemKnownHosts
        session.caFile = configuration.tls.caFile
        session.hostTrust = HostTable(hostTrust)
        return session
    }

    /// Whether the two plans differ in the control socket.
    func isServedOtherwise(than other: DaemonPlan) -> Bool {
        socket != other.socket || access.mode != other.access.mode || access.group != other.access.group
    }

    /// The warnings about harmless settings that cannot take effect.
    var warnings: [String] {
        versionWarnings + socketWarnings + DirectoryWatcher.warnings(about: configuration.watch, queueSettings)
    }

    private var socketWarnings: [String] {
        let control = configuration.control
        guard !inheritedSockets.isEmpty, control.socket != nil || control.mode != nil || control.group != nil
        else { return [] }
        return [
            "control.socket, control.mode and control.group have no effect: systemd created the socket (see dld.socket)"
        ]
    }

    private var versionWarnings: [String] {
        let hosts = configuration.hosts.filter { $0.value.httpVersion == .http3 }.keys.sorted()
        if hosts.isEmpty || Session.speaksHTTP3 { return [] }
        let shown = hosts.prefix(Self.shownHosts).joined(separator: ", ")
        return [
            "\(Session.libraryVersion) does not support HTTP/3; HTTP/2 is used instead for "
                + (hosts.count > Self.shownHosts ? "\(shown) and others" : shown)
        ]
    }

    private static let shownHosts = 8
}

extension IPNetwork {
    fileprivate init(_ range: NetworkRange) {
        switch range {
        case .ipv4(let address, let length): self.init(ipv4: address, prefixLength: length)
        case .ipv6(let address, let length): self.init(ipv6: address, prefixLength: length)
        }
    }
}
