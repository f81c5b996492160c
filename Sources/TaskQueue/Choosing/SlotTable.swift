import TaskModel
import Transfer

/// The counts of running tasks by host and of urgent tasks by owner, which decide whether a task may start. The type
/// knows neither tasks nor the engine. Hosts are identified by their fingerprints
/// (``TaskStore/ReadyTask/hostFingerprint``).
///
/// A slot is meant for a task that receives or sends data. A task without data for a while lends its slot to tasks of
/// other hosts but keeps waiting. A host that accepts connections and never responds therefore does not block others.
/// In addition, a host that has never responded gets at most half of the slots.
///
/// Urgent tasks come first and wait for no slot, but their number per owner is limited. Without the limit, an owner who
/// declares all tasks urgent would block everyone else.
struct SlotTable: Sendable {
    var activeTasks: Int
    /// The maximum number of running tasks of one owner; `nil` for no limit.
    var activeTasksPerOwner: Int?
    /// The factor that limits the total of running tasks, silent ones included: this many times the number of slots.
    static let lendingFactor = 16
    /// The divisor that yields the maximum number of urgent tasks per owner from the number of slots.
    static let urgentPart = 4
    /// The maximum number of hosts remembered as responding.
    static let answeringLimit = 4_096

    private struct Host {
        var running = 0
        var silent = 0
        /// The host's connection limit; `nil` while the host's name, on which the limit depends, is unknown.
        var limit: Int?
        var name: String?
    }

    private var hosts: [Int64: Host] = [:]
    private var answering: Set<Int64> = []
    private(set) var running = 0
    private var silent = 0
    /// The running tasks that did not wait for a slot.
    private var beyond = 0
    /// The number of running tasks by owner.
    private var owners: [UInt32: Int] = [:]
    /// The number of running urgent tasks by owner.
    private var urgent: [UInt32: Int] = [:]

    init(activeTasks: Int, activeTasksPerOwner: Int? = nil) {
        self.activeTasks = activeTasks
        self.activeTasksPerOwner = activeTasksPerOwner
    }

    /// Applies new settings.
    ///
    /// - Parameter connections: Returns the maximum number of concurrent connections to a host.
    mutating func apply(
        activeTasks: Int, activeTasksPerOwner: Int? = nil, connections: (_ host: String) -> Int
    ) {
        self.activeTasks = activeTasks
        self.activeTasksPerOwner = activeTasksPerOwner
        for (fingerprint, host) in hosts { hosts[fingerprint]?.limit = host.name.map(connections) }
    }

    /// Whether a task of at least one host may start.
    var hasRoom: Bool { running - silent - beyond < activeTasks && isBounded }

    /// Whether one more task of an owner may run.
    func hasRoom(for owner: UInt32) -> Bool {
        activeTasksPerOwner.map { owners[owner, default: 0] < $0 } ?? true
    }

    /// The owners that have as many running tasks as one may have.
    var fullOwners: [UInt32] { owners.keys.filter { !hasRoom(for: $0) } }

    /// The maximum number of concurrent urgent tasks per owner.
    var urgentPerOwner: Int { max(1, activeTasks / Self.urgentPart) }

    /// Whether one more task of an owner may come before everyone else's.
    func mayBeUrgent(of owner: UInt32) -> Bool { urgent[owner, default: 0] < urgentPerOwner }

    /// Whether an urgent task may start without waiting for a slot. There are as many additional places as slots, and
    /// in any case one per owner.
    func hasRoomBeyond(of owner: UInt32) -> Bool {
        isBounded && (beyond < activeTasks ? mayBeUrgent(of: owner) : urgent[owner] == nil)
    }

    /// Whether an urgent task of at least one owner may start without a slot.
    var hasRoomBeyond: Bool { isBounded }

    private var isBounded: Bool { running < activeTasks * Self.lendingFactor }

    private var isLending: Bool { running - beyond >= activeTasks }

    /// The hosts of which no task may start now.
    var blockedHosts: Set<Int64> {
        Set(hosts.lazy.filter { isClosed($0.key, $0.value) }.map(\.key))
    }

    func mayStart(_ host: Int64) -> Bool {
        guard let entry = hosts[host] else { return true }
        return !isClosed(host, entry)
    }

    private func isClosed(_ host: Int64, _ entry: Host) -> Bool {
        if isLending && entry.silent > 0 { return true }
        let unproven = answering.contains(host) ? Int.max : max(1, activeTasks / 2)
        return entry.running >= min(entry.limit ?? 1, unproven)
    }

    /// Records the start of a task.
    ///
    /// - Parameters:
    ///   - owner: the owner of the task.
    ///   - isBeyond: Whether the task waits for no slot.
    ///   - isUrgent: Whether the task is urgent.
    mutating func start(_ host: Int64, of owner: UInt32, beyond isBeyond: Bool = false, isUrgent: Bool = false) {
        running += 1
        owners[owner, default: 0] += 1
        if isUrgent { urgent[owner, default: 0] += 1 }
        if isBeyond { beyond += 1 }
        hosts[host, default: Host()].running += 1
    }

    /// Sets the name and the connection limit of a host with a running task, unless they are known.
    ///
    /// - Parameters:
    ///   - name: the host's name.
    ///   - connections: Returns the maximum number of concurrent connections to a host.
    mutating func setHost(_ host: Int64, name: @autoclosure () -> String, connections: (_ host: String) -> Int) {
        guard let entry = hosts[host], entry.limit == nil else { return }
        let name = name()
        hosts[host]?.name = name
        hosts[host]?.limit = connections(name)
    }

    /// Records whether the host responds.
    mutating func set(_ host: Int64, isAnswering: Bool) {
        if !isAnswering {
            answering.remove(host)
        } else if !answering.contains(host) {
            if answering.count >= Self.answeringLimit { answering.removeAll() }
            answering.insert(host)
        }
    }

    mutating func setSilent(_ isSilent: Bool, _ host: Int64) {
        silent += isSilent ? 1 : -1
        hosts[host, default: Host()].silent += isSilent ? 1 : -1
    }

    mutating func end(
        _ host: Int64, of owner: UInt32, wasSilent: Bool, beyond wasBeyond: Bool = false, wasUrgent: Bool = false
    ) {
        if let count = owners[owner] { owners[owner] = count > 1 ? count - 1 : nil }
        if wasUrgent, let count = urgent[owner] { urgent[owner] = count > 1 ? count - 1 : nil }
        if wasSilent { setSilent(false, host) }
        running -= 1
        if wasBeyond { beyond -= 1 }
        hosts[host]?.running -= 1
        if let entry = hosts[host], entry.running <= 0 { hosts[host] = nil }
    }
}
