import TaskModel
import Transfer

/// Who may start: counts what runs by host, without knowing tasks or engine.
///
/// A slot is for a task that receives or sends. One that no byte has come from or gone to for a while lends its slot
/// to tasks of other hosts, so that a host that accepts and never answers holds up nobody else; it goes on waiting all
/// the same.
struct SlotTable {
    var activeTasks: Int
    var connectionsPerHost: Int
    /// In place of ``connectionsPerHost``.
    private let hostConnections: HostTable<Int>
    /// Silent tasks are many at most: so many times the slots may run in all.
    static let lendingFactor = 16

    private struct Host {
        var running = 0
        var silent = 0
        let limit: Int

        var isFull: Bool { running >= limit }
    }

    private var hosts: [String: Host] = [:]
    private(set) var running = 0
    private var silent = 0

    init(activeTasks: Int, connectionsPerHost: Int, hostConnections: HostTable<Int> = HostTable()) {
        self.activeTasks = activeTasks
        self.connectionsPerHost = connectionsPerHost
        self.hostConnections = hostConnections
    }

    /// Whether a task of some host may start.
    var hasRoom: Bool { running - silent < activeTasks && running < activeTasks * Self.lendingFactor }

    /// Hosts of which no task may start now.
    var closedHosts: Set<String> {
        let isLending = running >= activeTasks
        return Set(
            hosts.lazy.filter { $0.value.isFull || (isLending && $0.value.silent > 0) }
                .map(\.key))
    }

    func mayStart(_ host: String) -> Bool {
        guard hasRoom else { return false }
        guard let entry = hosts[host] else { return true }
        if entry.isFull { return false }
        return running < activeTasks || entry.silent == 0
    }

    /// - Parameter host: scheme, name and port.
    mutating func start(_ host: String) {
        running += 1
        let fresh = entry(for: host)
        hosts[host, default: fresh].running += 1
    }

    private func entry(for host: String) -> Host {
        Host(limit: hostConnections.value(forOrigin: host) ?? connectionsPerHost)
    }

    mutating func setSilent(_ isSilent: Bool, _ host: String) {
        silent += isSilent ? 1 : -1
        let fresh = entry(for: host)
        hosts[host, default: fresh].silent += isSilent ? 1 : -1
    }

    mutating func end(_ host: String, wasSilent: Bool) {
        if wasSilent { setSilent(false, host) }
        running -= 1
        hosts[host]?.running -= 1
        if let entry = hosts[host], entry.running <= 0 { hosts[host] = nil }
    }
}
