import TaskModel
import TaskStore
import Transfer

/// The tasks that are stored as ready but must not be started, because they are running or held.
protocol BusyTasks {
    /// Whether a task of this owner runs or is held.
    func isBusy(_ id: TaskID, of owner: UInt32) -> Bool
    /// Returns the running tasks, and the held ones of an owner.
    func busy(of owner: UInt32) -> Set<TaskID>
    /// Whether so many of an owner's tasks are held that none is to be started.
    func isResting(_ owner: UInt32) -> Bool
}

/// A chooser of the tasks that start next, with the count of occupied places. It reads missing data from the store
/// through indexes, so its cost does not grow with the length of the queue.
struct TaskChooser {
    /// A place held by a running task, for which other tasks wait.
    struct Place: Sendable, Equatable {
        var group: FairShareGroup.Key
        var hostFingerprint: Int64
        /// Whether the task started without waiting for a slot.
        var isBeyond: Bool
        /// Whether the task started before all tasks that are not urgent.
        var isUrgent = false
    }

    /// The number of tasks read of a group at a time.
    private static let readLimit = 512
    /// The number of tasks read of a group at a time where there are many groups (more than 8).
    private static let shortReadLimit = 64
    /// The number of tasks read of a group at a time where only urgent tasks, which need no slot, may start.
    private static let urgentReadLimit = 8
    /// The maximum number of owners considered together. Further owners take turns.
    static let ownersTogether = 64
    /// The maximum number of groups considered together per owner. Further groups take turns.
    static let groupsTogether = 64
    /// The number of records read at a time, including those of the tasks likely to be next.
    private static let recordsTogether = 64
    /// The maximum number of times that groups are read for one choice, where no task found so far may start.
    private static let turnsPerChoice = 16

    private let store: TaskStore
    private var settings: QueueSettings
    private var window = ReadyWindow()
    private var owners: FairShare<UInt32>
    private var groups: FairShare<FairShareGroup.Key>
    private(set) var slots: SlotTable
    private(set) var gate: HostAvailability
    /// The records read in advance.
    private var works: [TaskID: TaskWork] = [:]
    /// The tasks with damaged records. They are skipped.
    private(set) var unreadable: Set<TaskID> = []
    /// The tasks whose owners chose a proxy that is on hold, with its fingerprint.
    private(set) var behindProxies: [TaskID: Int64] = [:]
    private static let behindProxiesLimit = 1_024
    /// Whether something may have changed since the ready tasks were read.
    private var isStale = true
    /// The number of calls of ``invalidate()``.
    private(set) var invalidations: UInt64 = 0
    /// The position at which the next read of groups continues, where there are more than are considered together.
    private var nextOwner: UInt32?
    private var nextGroup: [UInt32: Int64] = [:]
    /// The owners whose groups were not read because they have as many running tasks as they may have.
    private var ownersAtLimit: Set<UInt32> = []
    /// Whether the last read omitted groups.
    private var hasMoreGroups = false

    init(store: TaskStore, settings: QueueSettings) {
        self.store = store
        self.settings = settings
        slots = SlotTable(
            activeTasks: settings.activeTasks, activeTasksPerOwner: settings.activeTasksPerOwner)
        gate = HostAvailability(policy: settings.retry)
        owners = FairShare(credit: settings.activeTasks)
        groups = FairShare(credit: settings.activeTasks)
    }

    /// Discards the cached data after a task became ready, ceased to be ready, or was changed.
    mutating func invalidate() {
        invalidations &+= 1
        isStale = true
        // A changed task may have another proxy.
        behindProxies.removeAll()
        works.removeAll(keepingCapacity: true)
    }

    mutating func apply(_ settings: QueueSettings) {
        self.settings = settings
        slots.apply(activeTasks: settings.activeTasks, activeTasksPerOwner: settings.activeTasksPerOwner) {
            settings.connections(ofHost: $0)
        }
        gate.apply(settings.retry)
        owners.credit = settings.activeTasks
        groups.credit = settings.activeTasks
        invalidate()
    }

    /// Returns the hosts of which no task of an owner may start now.
    func blockedHosts(for owner: UInt32, now: Milliseconds) -> Set<Int64> {
        slots.blockedHosts.union(gate.hostsOnHold(for: owner, now: now))
    }

    /// Returns a forecast of the order in which ready tasks start, without any ready task yet.
    ///
    /// - Parameter running: the places of the running tasks, the earliest start first.
    func forecast(running: [Place]) -> StartForecast {
        StartForecast(
            owners: owners, groups: groups, activeTasks: settings.activeTasks,
            activeTasksPerOwner: settings.activeTasksPerOwner, running: running)
    }

    // MARK: Choosing

    /// Returns the tasks that start now, with the places that they have taken.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of tasks.
    ///   - busy: the tasks that are stored as ready but must not be started.
    ///   - now: the monotonic time.
    mutating func choose(
        limit: Int, busy: some BusyTasks, now: Milliseconds
    ) throws(StoreError) -> [(work: TaskWork, place: Place)] {
        var chosen: [(task: ReadyTask, place: Place)] = []
        if !behindProxies.isEmpty {
            let count = behindProxies.count
            behindProxies = behindProxies.filter { gate.isClosed($0.value, now: now) }
            // The window was read without those whose proxy works again.
            if behindProxies.count < count { isStale = true }
        }
        do throws(StoreError) {
            while chosen.count < min(limit, Self.recordsTogether), slots.hasRoom || slots.hasRoomBeyond {
                guard let choice = try next(busy: busy, chosen: chosen, now: now) else { break }
                let place = Place(
                    group: choice.group.key, hostFingerprint: choice.task.hostFingerprint, isBeyond: !slots.hasRoom,
                    isUrgent: Self.isUrgent(choice.task, choice.group, slots))
                occupy(place, now: now)
                chosen.append((choice.task, place))
            }
            try readRecords(of: chosen.map(\.task.id))
        } catch {
            for choice in chosen { withdraw(choice.place, now: now) }
            isStale = true
            throw error
        }
        if chosen.isEmpty { return [] }
        var started: [(work: TaskWork, place: Place)] = []
        for choice in chosen {
            // The task's state may have changed since the window was read.
            guard let work = works.removeValue(forKey: choice.task.id) else {
                withdraw(choice.place, now: now)
                continue
            }
            if let proxy = work.ownProxy.map({ Fingerprint.ofHost($0) }) {
                if gate.isClosed(proxy, now: now), behindProxies.count < Self.behindProxiesLimit {
                    behindProxies[choice.task.id] = proxy
                    withdraw(choice.place, now: now)
                    continue
                }
                gate.admit(proxy, now: now)
            }
            setHost(of: work)
            started.append((work, choice.place))
        }
        // The withdrawn tasks have made room for others.
        return started.isEmpty ? try choose(limit: limit, busy: busy, now: now) : started
    }

    private static func isUrgent(_ task: ReadyTask, _ group: FairShareGroup, _ slots: SlotTable) -> Bool {
        task.priority == TaskPriority.now.rank && slots.mayBeUrgent(of: group.owner)
    }

    private mutating func next(
        busy: some BusyTasks, chosen: [(task: ReadyTask, place: Place)], now: Milliseconds
    ) throws(StoreError) -> ReadyWindow.Choice? {
        if isStale { try readGroups() }
        for turn in 0..<Self.turnsPerChoice {
            if turn > 0 {
                guard hasMoreGroups else { return nil }
                try readGroups()
            }
            let (slots, gate, unreadable, hasRoom) = (slots, gate, unreadable, slots.hasRoom)
            let behindProxies = behindProxies
            let isUrgent = { (task: ReadyTask, group: FairShareGroup) in Self.isUrgent(task, group, slots) }
            let mayStart = { (task: ReadyTask, group: FairShareGroup) in
                slots.hasRoom(for: group.owner)
                    && (hasRoom || (isUrgent(task, group) && slots.hasRoomBeyond(of: group.owner)))
                    && !busy.isResting(group.owner) && !busy.isBusy(task.id, of: group.owner)
                    && !unreadable.contains(task.id) && slots.mayStart(task.hostFingerprint)
                    && !gate.isOnHold(task.hostFingerprint, owner: group.owner, now: now)
                    && behindProxies[task.id] == nil
            }
            try readTasks(busy: busy, chosen: chosen, now: now, mayStart)
            let choice = window.removeNext(owners: owners, groups: groups, isUrgent: isUrgent, mayStart)
            if let choice { return choice }
            if !hasRoom { return nil }
        }
        return nil
    }

    private mutating func readGroups() throws(StoreError) {
        var found = try store.readyOwners(after: nextOwner, limit: Self.ownersTogether)
        hasMoreGroups = found.count == Self.ownersTogether || nextOwner != nil
        let last = found.count == Self.ownersTogether ? found.last : nil
        if found.count < Self.ownersTogether, let before = nextOwner {
            found += try store.readyOwners(limit: Self.ownersTogether - found.count).filter { $0 <= before }
        }
        nextOwner = last
        var together: [FairShareGroup] = []
        ownersAtLimit = Set(found.filter { !slots.hasRoom(for: $0) })
        for owner in found where !ownersAtLimit.contains(owner) {
            let after = nextGroup[owner] ?? 0
            var own = try store.readyGroups(of: owner, after: after, limit: Self.groupsTogether)
            let isFull = own.count == Self.groupsTogether
            let last = isFull ? own.last?.id : nil
            if isFull || after > 0 { hasMoreGroups = true }
            if !isFull, after > 0 {
                let rest = Self.groupsTogether - own.count
                own += try store.readyGroups(of: owner, limit: rest).filter { $0.id <= after }
            }
            nextGroup[owner] = last
            together += own
        }
        if nextGroup.count > Self.ownersTogether { nextGroup = nextGroup.filter { found.contains($0.key) } }
        window.set(together)
        owners.forgetIdle(but: window.owners)
        groups.forgetIdle(but: window.groups)
        isStale = false
    }

    private mutating func readTasks(
        busy: some BusyTasks, chosen: [(task: ReadyTask, place: Place)], now: Milliseconds,
        _ mayStart: (ReadyTask, FairShareGroup) -> Bool
    ) throws(StoreError) {
        var known: [UInt32: Set<Int64>] = [:]
        func blocked(_ owner: UInt32) -> Set<Int64> {
            let blocked = known[owner] ?? blockedHosts(for: owner, now: now)
            known[owner] = blocked
            return blocked
        }
        let lacking = window.lacking(blocked: blocked, isUrgentOnly: !slots.hasRoom, mayStart)
            .filter { slots.hasRoom(for: $0.owner) && !busy.isResting($0.owner) }
        guard !lacking.isEmpty else { return }
        var excluded: [UInt32: Set<TaskID>] = [:]
        let limit =
            !slots.hasRoom ? Self.urgentReadLimit : window.count > 8 ? Self.shortReadLimit : Self.readLimit
        for group in lacking {
            let blocked = blocked(group.owner)
            let others =
                excluded[group.owner]
                ?? busy.busy(of: group.owner).union(chosen.lazy.map(\.task.id)).union(behindProxies.keys)
            excluded[group.owner] = others
            let tasks = try store.readyTasks(
                of: group.id, limit: limit, excludingHosts: blocked, excluding: others.union(window.ids(of: group.id)))
            window.add(tasks, to: group.id, limit: limit, excludingHosts: blocked)
        }
    }

    private mutating func readRecords(of ids: [TaskID]) throws(StoreError) {
        let missing = ids.filter { works[$0] == nil }
        guard !missing.isEmpty else { return }
        let ahead = window.upcoming(Self.recordsTogether - missing.count).filter { works[$0] == nil }
        do throws(StoreError) {
            for work in try store.work(for: missing + ahead) { works[work.record.id] = work }
        } catch {
            guard case .corrupt = error else { throw error }
            for id in missing {
                do throws(StoreError) {
                    works[id] = try store.work(for: [id]).first
                } catch {
                    guard case .corrupt = error else { throw error }
                    unreadable.insert(id)
                }
            }
        }
    }

    // MARK: Places

    /// Takes a place for a task that continues, ahead of all other tasks.
    ///
    /// - Returns: `nil` where there is no slot, or the task's host is blocked.
    mutating func place(of work: TaskWork, now: Milliseconds) -> Place? {
        guard slots.hasRoom, slots.hasRoom(for: work.record.owner), slots.mayStart(work.hostFingerprint),
            !gate.isOnHold(work.hostFingerprint, owner: work.record.owner, now: now)
        else {
            return nil
        }
        let place = Place(group: .init(work.record), hostFingerprint: work.hostFingerprint, isBeyond: false)
        occupy(place, now: now)
        setHost(of: work)
        return place
    }

    /// Counts the place as taken by a task that is about to contact the host.
    private mutating func occupy(_ place: Place, now: Milliseconds) {
        reserve(place)
        gate.admit(place.hostFingerprint, now: now)
    }

    /// Counts the place as taken without contacting the host.
    mutating func reserve(_ place: Place) {
        slots.start(
            place.hostFingerprint, of: place.group.owner, beyond: place.isBeyond, isUrgent: place.isUrgent)
        owners.start(place.group.owner)
        groups.start(place.group)
    }

    /// Reverts ``occupy(_:now:)`` where the task does not start after all. Another task may then probe the host.
    private mutating func withdraw(_ place: Place, now: Milliseconds) {
        release(place)
        gate.withdraw(place.hostFingerprint, now: now)
    }

    mutating func release(_ place: Place, wasSilent: Bool = false) {
        slots.end(
            place.hostFingerprint, of: place.group.owner, wasSilent: wasSilent, beyond: place.isBeyond,
            wasUrgent: place.isUrgent)
        if ownersAtLimit.contains(place.group.owner) { isStale = true }
        owners.end(place.group.owner)
        groups.end(place.group)
    }

    private mutating func setHost(of work: TaskWork) {
        slots.setHost(work.hostFingerprint, name: work.host) { [settings] in settings.connections(ofHost: $0) }
    }

    /// Records whether a task has been without data for a while.
    mutating func setSilent(_ isSilent: Bool, _ place: Place) {
        slots.setSilent(isSilent, place.hostFingerprint)
    }

    mutating func networkChanged() { gate.networkChanged() }

    /// Opens the hosts of tasks that a user wants to start now, and the proxies that the tasks' owners chose.
    ///
    /// - Parameter places: the hosts of the tasks, each with the owner.
    /// - Returns: the names of the hosts and proxies that were on hold, and the tasks whose answers were the cause.
    mutating func endHolds(
        of ids: [TaskID], at places: Set<OwnedHost>, now: Milliseconds
    ) -> (hosts: [String], tasks: [TaskID]) {
        let proxies = Set(ids.compactMap { behindProxies[$0] })
        let owners = Set(places.map(\.owner))
        let all = places.union(owners.flatMap { owner in proxies.map { OwnedHost(owner: owner, fingerprint: $0) } })
        let ended = all.compactMap { gate.endHold($0.fingerprint, of: $0.owner, now: now) }
        if !ended.isEmpty { invalidate() }
        return (Set(ended.map(\.host)).sorted(), ended.flatMap(\.tasks))
    }

    /// Ends the delays that hosts requested in their answers to tasks; see ``HostAvailability/endDelays(causedBy:now:)``.
    mutating func endDelays(causedBy tasks: some Sequence<TaskID>, now: Milliseconds) -> [TaskID] {
        gate.endDelays(causedBy: tasks, now: now)
    }

    /// Restores the stored delays that hosts requested from an earlier daemon process.
    mutating func restore(_ holds: [StoredHold], offset: Milliseconds, now: Milliseconds) {
        for hold in holds { gate.restore(hold, offset: offset, now: now) }
    }

    /// Returns and clears the requested delays; see ``HostAvailability/drainUnsavedHolds(offset:)``.
    mutating func drainHolds(offset: Milliseconds) -> [HostHold] { gate.drainUnsavedHolds(offset: offset) }

    /// Records that the host sends data.
    mutating func recordResponse(of place: Place) {
        slots.set(place.hostFingerprint, isAnswering: true)
        gate.recordBytes(of: place.hostFingerprint)
    }

    /// Records how a run ended.
    mutating func record(_ error: TransferError?, of work: TaskWork, now: Milliseconds) {
        gate.record(error, of: work, now: now)
        guard work.responsibleHost(for: error) == .own else { return }
        switch HostCircuitBreakers.Outcome(error) {
        case .alive: slots.set(work.hostFingerprint, isAnswering: true)
        case .failed: slots.set(work.hostFingerprint, isAnswering: false)
        case .unknown: break
        }
    }
}
