import TaskModel
import Transfer

/// Counts of what runs by host, and of what is urgent by owner, which say what may start; without tasks or engine. Hosts
/// go by their marks (``TaskStore/ReadyTask/hostMark``).
///
/// A slot is for a task that receives or sends. One that no byte has come from or gone to for a while lends its slot
/// to tasks of other hosts, so that a host that accepts and never answers holds up nobody else; it goes on waiting all
/// the same. Nor has a host that never answered yet more than half of the slots.
///
/// Urgent tasks go before everybody's and wait for no slot, but no more than a few of each owner: were it any number,
/// whoever calls all her tasks urgent would hold up everybody else's.
struct SlotTable {
    var activeTasks: Int
    /// Silent tasks are many at most: so many times the slots may run in all.
    static let lendingFactor = 16
    /// One in so many slots may be each owner's for what is urgent.
    static let urgentPart = 4
    /// Hosts that are remembered as having answered.
    static let answeringLimit = 4_096

    private struct Host {
        var running = 0
        var silent = 0
        /// `nil`: what it is called, and so how many it may have, is not known yet.
        var limit: Int?
        var name: String?
    }

    private var hosts: [Int64: Host] = [:]
    private var answering: Set<Int64> = []
    private(set) var running = 0
    private var silent = 0
    /// Tasks among them that did not wait for a slot.
    private var beyond = 0
    /// Urgent tasks that run, by owner.
    private var urgent: [UInt32: Int] = [:]

    init(activeTasks: Int) {
        self.activeTasks = activeTasks
    }

    /// - Parameter connections: that a host may have at a time.
    mutating func apply(activeTasks: Int, connections: (_ host: String) -> Int) {
        self.activeTasks = activeTasks
        for (mark, host) in hosts { hosts[mark]?.limit = host.name.map(connections) }
    }

    /// Whether a task of some host may start.
    var hasRoom: Bool { running - silent - beyond < activeTasks && isBounded }

    /// Urgent tasks of one owner that may run at a time.
    var urgentPerOwner: Int { max(1, activeTasks / Self.urgentPart) }

    /// Whether another task of an owner may go before everybody else's.
    func mayBeUrgent(of owner: UInt32) -> Bool { urgent[owner, default: 0] < urgentPerOwner }

    /// Whether an urgent task may start that waits for no slot: as many again as there are slots, and one of each owner
    /// in any case.
    func hasRoomBeyond(of owner: UInt32) -> Bool {
        isBounded && (beyond < activeTasks ? mayBeUrgent(of: owner) : urgent[owner] == nil)
    }

    /// Whether that may be so of some owner.
    var hasRoomBeyond: Bool { isBounded }

    private var isBounded: Bool { running < activeTasks * Self.lendingFactor }

    private var isLending: Bool { running - beyond >= activeTasks }

    /// Hosts of which no task may start now.
    var closedHosts: Set<Int64> {
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

    /// - Parameters:
    ///   - isBeyond: it waits for no slot.
    ///   - owner: of an urgent task.
    mutating func start(_ host: Int64, beyond isBeyond: Bool = false, urgentOf owner: UInt32? = nil) {
        running += 1
        if let owner { urgent[owner, default: 0] += 1 }
        if isBeyond { beyond += 1 }
        hosts[host, default: Host()].running += 1
    }

    /// - Parameters:
    ///   - name: of the host.
    ///   - connections: that it may have at a time.
    mutating func know(_ host: Int64, name: @autoclosure () -> String, connections: (_ host: String) -> Int) {
        guard let entry = hosts[host], entry.limit == nil else { return }
        let name = name()
        hosts[host]?.name = name
        hosts[host]?.limit = connections(name)
    }

    /// Whether the host answers, as far as is known.
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

    mutating func end(_ host: Int64, wasSilent: Bool, beyond wasBeyond: Bool = false, urgentOf owner: UInt32? = nil) {
        if let owner, let count = urgent[owner] { urgent[owner] = count > 1 ? count - 1 : nil }
        if wasSilent { setSilent(false, host) }
        running -= 1
        if wasBeyond { beyond -= 1 }
        hosts[host]?.running -= 1
        if let entry = hosts[host], entry.running <= 0 { hosts[host] = nil }
    }
}
