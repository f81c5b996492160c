/// The work in progress of all connections, in bytes and in requests, and the queues of those that wait. Belongs to the
/// event loop.
///
/// Every request holds its estimated memory, from its beginning until its response is written to the client's socket. A
/// request begins only if the memory limits of its user and of all users permit it, and only if its user has fewer
/// concurrent requests than allowed.
final class Workload {
    enum Lane: Int, CaseIterable {
        /// A short line with a quick request.
        case quick
        /// All other requests.
        case heavy
        /// A page of events for a subscriber.
        case events
    }

    /// A grant of memory, and of a place in the lane while the work is done.
    struct Ticket: Sendable {
        let user: UInt32
        fileprivate(set) var lane: Lane?
        fileprivate(set) var bytes: Int
    }

    private let limits: ConnectionLimits
    private let trimmer: HeapTrimmer
    private var memory: ResourceQuota
    private var longLines: ResourceQuota
    private var surplus: ResourceQuota
    /// The number of concurrent requests of each user, for each lane.
    private var running: [[UInt32: Int]] = Lane.allCases.map { _ in [:] }
    private var waiting: [FairQueue<(Ticket) -> Void>] = Lane.allCases.map { _ in FairQueue() }
    private var waitingLines = FairQueue<() -> Void>()
    private var isServing = false
    private var mustServeAgain = false

    init(limits: ConnectionLimits, trimmer: HeapTrimmer) {
        self.limits = limits
        self.trimmer = trimmer
        memory = ResourceQuota(
            perUser: limits.memoryPerUser, total: limits.memory, reserve: limits.memoryReserve,
            little: limits.littleMemory, small: limits.quickMemory)
        surplus = ResourceQuota(
            perUser: limits.surplusPerUser, total: limits.surplus, reserve: limits.surplus / 4, little: 64 << 10)
        longLines = ResourceQuota(
            perUser: limits.longLinesPerUser, total: limits.longLines, reserve: limits.longLineReserve, little: 1)
    }

    /// The number of bytes that requests and responses hold.
    var memoryUsed: Int { memory.used }

    // MARK: - Requests

    /// Calls `begin` when the work may begin, immediately or later.
    func request(
        _ lane: Lane, bytes: Int, user: UInt32, owner: ObjectIdentifier, _ begin: @escaping (Ticket) -> Void
    ) {
        let bytes = min(bytes, limits.memoryPerUser)
        if let ticket = grant(lane, bytes, user) {
            begin(ticket)
        } else {
            waiting[lane.rawValue].append(begin, amount: bytes, user: user, owner: owner)
        }
    }

    /// Grants work immediately or not at all (`nil`), for work that can also be done later. Otherwise the same as
    /// ``request(_:bytes:user:owner:_:)``.
    func requestNow(_ lane: Lane, bytes: Int, user: UInt32) -> Ticket? {
        grant(lane, min(bytes, limits.memoryPerUser), user)
    }

    private func grant(_ lane: Lane, _ bytes: Int, _ user: UInt32) -> Ticket? {
        guard !waiting[lane.rawValue].isWaiting(user), verdict(lane, bytes, user) == .yes else { return nil }
        return makeTicket(lane, bytes, user)
    }

    private func makeTicket(_ lane: Lane, _ bytes: Int, _ user: UInt32) -> Ticket {
        running[lane.rawValue][user, default: 0] += 1
        memory.add(bytes, user)
        reportUsage()
        return Ticket(user: user, lane: lane, bytes: bytes)
    }

    private func verdict(_ lane: Lane, _ bytes: Int, _ user: UInt32) -> ResourceQuota.Verdict {
        if running[lane.rawValue][user, default: 0] >= limits.atOnce { return .userHasTooMuch }
        return memory.mayAdd(bytes, user)
    }

    /// Charges a user for memory that is already in use and was not requested.
    func charge(_ bytes: Int, user: UInt32) -> Ticket {
        memory.add(bytes, user)
        reportUsage()
        return Ticket(user: user, lane: nil, bytes: bytes)
    }

    /// Records that the work is done and that `bytes` of its memory stay in use.
    func workEnded(_ ticket: inout Ticket, leaving bytes: Int) {
        releaseLane(&ticket)
        memory.subtract(ticket.bytes, ticket.user)
        memory.add(bytes, ticket.user)
        ticket.bytes = bytes
        reportUsage()
        serve()
    }

    /// Releases all that the ticket holds.
    func release(_ ticket: Ticket) {
        var ticket = ticket
        workEnded(&ticket, leaving: 0)
    }

    private func releaseLane(_ ticket: inout Ticket) {
        guard let lane = ticket.lane else { return }
        ticket.lane = nil
        let left = running[lane.rawValue][ticket.user, default: 1] - 1
        running[lane.rawValue][ticket.user] = left > 0 ? left : nil
    }

    // MARK: - Long lines

    /// Calls `begin` when the user may send a line that is longer than ``ConnectionLimits/shortLine``.
    func requestLongLine(user: UInt32, owner: ObjectIdentifier, _ begin: @escaping () -> Void) {
        if !waitingLines.isWaiting(user), longLines.mayAdd(1, user) == .yes {
            longLines.add(1, user)
            reportUsage()
            begin()
        } else {
            waitingLines.append(begin, amount: 1, user: user, owner: owner)
        }
    }

    func releaseLongLine(user: UInt32) {
        longLines.subtract(1, user)
        reportUsage()
        serve()
    }

    // MARK: - Surplus

    /// Changes the charge for input that was received although the handler did not permit reading. No request waits for
    /// this memory, because it is released only after a request of the same connection has been carried out.
    ///
    /// - Returns: whether there is room; if not, nothing has changed.
    func changeSurplus(from before: Int, to bytes: Int, user: UInt32) -> Bool {
        surplus.subtract(before, user)
        guard bytes == 0 || surplus.mayAdd(bytes, user) == .yes else {
            surplus.add(before, user)
            return false
        }
        surplus.add(bytes, user)
        reportUsage()
        return true
    }

    // MARK: - Waiting requests

    /// Removes a connection's waiting requests.
    func forget(user: UInt32, owner: ObjectIdentifier) {
        for lane in Lane.allCases { waiting[lane.rawValue].remove(user: user, owner: owner) }
        waitingLines.remove(user: user, owner: owner)
    }

    private func serve() {
        // A request that begins here may also end here.
        guard !isServing else {
            mustServeAgain = true
            return
        }
        isServing = true
        defer { isServing = false }
        repeat {
            mustServeAgain = false
            for lane in Lane.allCases { serve(lane) }
            while let begin = waitingLines.next({ longLines.mayAdd($0, $1) }, take: { longLines.add($0, $1) }) {
                begin()
            }
        } while mustServeAgain
    }

    private func serve(_ lane: Lane) {
        var ticket: Ticket?
        while let begin = waiting[lane.rawValue].next(
            { verdict(lane, $0, $1) }, take: { ticket = makeTicket(lane, $0, $1) })
        {
            if let ticket { begin(ticket) }
        }
    }

    private func reportUsage() {
        trimmer.record(memory.used + surplus.used + longLines.used * HeapTrimmer.longLine)
    }
}
