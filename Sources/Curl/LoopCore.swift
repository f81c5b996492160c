import CCurl
import CLinux
import SystemPackage

/// The state of a ``TransferLoop``'s thread. Not `Sendable`: it never leaves that thread.
package final class LoopCore {
    /// The loop, which outlives its core.
    package unowned let loop: TransferLoop
    var multi: MultiHandle
    private let poll: EventPoll
    private let wakeUp: WakeUp
    private(set) var exchanges: [Int: Exchange] = [:]
    /// The exchanges that libcurl failed within a call of this program; they end before the loop sleeps again.
    private var failing: [(id: Int, error: CurlError)] = []
    let faults: LoopFaults
    let streams = StreamTable()
    var connections = ConnectionSockets()
    var pausedStreams = PausedStreams()
    /// The mark of whether the thread is inside libcurl.
    let mark = CallMark()
    private var nextID = 0
    /// The time of the latest wake-up, read once for each. The hot path uses it as the current time.
    package var now: MonotonicTime { clock.now }
    package let clock = LoopClock()

    var deadlines = LoopDeadlines()
    private var timers = TimerQueue()

    /// The epoll registration of a descriptor. Events carry the generation, so that an event reported for a closed
    /// descriptor is not taken for one of a new descriptor with the same number.
    private struct Registration {
        var generation: UInt32 = 0
        var mask: UInt32 = 0
        var isRegistered = false
        /// Whether its events are ignored until ``LoopCore/unmute(_:)``.
        var isMuted = false
        /// The receiver of its events; `nil` if the socket belongs to libcurl.
        var watcher: (any DescriptorWatcher)?
    }

    /// The registrations by descriptor.
    private struct Sockets {
        var registrations: [Registration] = []
        /// The descriptors that epoll refused, for example because the user has reached the limit of
        /// `fs.epoll.max_user_watches`.
        var unwatched: Set<Int32> = []
    }

    private var sockets = Sockets()
    var idleness: LoopIdleness
    /// A failure of libcurl that affects all transfers, until they have been ended because of it.
    var fault: CurlError?
    /// The handles that libcurl could not release within a callback, each with its owner.
    var leftBehind: [(easy: UnsafeMutableRawPointer, owner: AnyObject)] = []
    private static let wakeUpTag = UInt64.max
    /// The number of idle connections kept for the next request.
    static let idleConnections = 128

    init(_ loop: TransferLoop, wakeUp: WakeUp, faults: LoopFaults, idleTimeout: Int64) throws {
        self.loop = loop
        idleness = LoopIdleness(timeout: idleTimeout)
        self.wakeUp = wakeUp
        self.faults = faults
        multi = try MultiHandle()
        poll = try EventPoll()
        Watchman.shared?.watch(mark)
        guard poll.add(wakeUp.descriptor, mask: LINUX_EPOLLIN, tag: Self.wakeUpTag) else {
            throw Errno.noMemory
        }
        try attach(multi)
    }

    /// The buffers for the bodies received on this loop.
    package let buffers = BufferPool()
    /// The large blocks for those of them that arrive fast.
    package let blocks = BlockPool()

    package let urls = ParsedURLs()

    // MARK: Exchanges

    package var exchangeCount: Int { exchanges.count }

    /// Starts an exchange; `configure` sets its options.
    ///
    /// - Returns: its number, for ``cancel(_:)`` and ``exchange(_:)``.
    package func start(
        handler: any ExchangeHandler, configure: (Exchange) throws(CurlError) -> Void
    ) throws(CurlError) -> Int {
        let exchange = try Exchange(id: makeID(), handler: handler, loop: self)
        try configure(exchange)
        try multi.add(exchange.easy.raw)
        exchanges[exchange.id] = exchange
        if exchange.activity.stallTimeout > 0 { scheduleStallCheck(within: exchange.activity.stallTimeout) }
        scheduleWatch()
        return exchange.id
    }

    package func exchange(_ id: Int) -> Exchange? { exchanges[id] }

    /// Removes an exchange from the loop; its handler is notified before this returns.
    package func cancel(_ id: Int) {
        guard let exchange = exchanges[id] else { return }
        end(exchange, .cancelled)
    }

    /// Ends an exchange with an error at the end of this turn, because callers on the stack may still use it.
    func willFail(_ exchange: Exchange, _ error: CurlError) { failing.append((exchange.id, error)) }

    /// Ends the exchanges that failed within calls of this program. libcurl must not continue with them and omit the
    /// data that was refused.
    private func endFailing() {
        while !failing.isEmpty {
            let taken = failing
            failing = []
            for (id, error) in taken {
                if let exchange = exchanges[id] { end(exchange, .failed(error)) }
            }
        }
    }

    func makeID() -> Int {
        nextID += 1
        return nextID
    }

    func end(_ exchange: Exchange, _ ending: ExchangeEnding) {
        exchanges[exchange.id] = nil
        pausedStreams.end(exchange.id)
        if exchanges.isEmpty {
            deadlines.watch = nil
            recordIdle()
        }
        exchange.hasEnded = true
        remove(exchange.easy.raw, of: exchange)
        exchange.handler.exchangeDidEnd(exchange, ending)
    }

    // MARK: Timers

    /// Runs `action` on this thread after the given number of milliseconds.
    ///
    /// - Returns: a number for ``cancelTimer(_:)``.
    package func after(milliseconds: Int64, _ action: @escaping () -> Void) -> Int {
        let id = makeID()
        timers.add(id, at: MonotonicTime.now().advanced(milliseconds: milliseconds), action)
        return id
    }

    package func cancelTimer(_ id: Int) {
        timers.cancel(id)
    }

    // MARK: The loop

    /// The number of pieces of posted work whose memory is kept for the next ones.
    private static let keptCapacity = 1024

    /// Runs until the loop is stopped.
    ///
    /// - Parameter take: moves the posted work into an empty array, and returns whether the loop has been stopped.
    func run(_ take: (inout [TransferLoop.Work]) -> Bool) {
        var work: [TransferLoop.Work] = []
        withUnsafeTemporaryAllocation(of: linux_event.self, capacity: 128) { events in
            events.initialize(repeating: linux_event())
            var isStopped = false
            while !isStopped {
                let count = poll.wait(into: events, timeout: timeout())
                clock.now = MonotonicTime.now()
                // If the wake-up is far too late, the process was frozen, and data that arrived meanwhile was not read
                // yet.
                if let waitEnd = deadlines.waitEnd { excludeFromStalls(waitEnd.milliseconds(until: now)) }
                var isWoken = false
                // Indices are used because an iterator of the slice allocates on the heap when the optimiser does not
                // prevent it.
                for index in 0..<count {
                    let event = events[index]
                    if event.tag == Self.wakeUpTag {
                        isWoken = true
                    } else {
                        dispatch(event)
                    }
                }
                drainFinished()
                if isWoken {
                    wakeUp.wait()
                    isStopped = take(&work)
                    for job in work { job.run(self) }
                    work.removeAll(keepingCapacity: work.capacity <= Self.keptCapacity)
                }
                // After the work, whose exchanges libcurl starts here.
                if let deadline = deadlines.curl, deadline <= now {
                    deadlines.curl = nil
                    record(mark.inside { multi.actOnTimeout() })
                    drainFinished()
                }
                fireTimers()
                checkStalls()
                watchExchanges()
                runWokenStreams()
                runDeferredWork()
                // This comes last, since libcurl must not continue with failed exchanges.
                endFailing()
                weighPausedStreams()
            }
        }
        for exchange in Array(exchanges.values) { end(exchange, .cancelled) }
        cancelStreams()
        runDeferredWork()
        // Callbacks that libcurl makes while it closes its sockets must not reach the loop.
        _ = ccurl_multi_set_socket_callback(multi.raw, nil, nil)  // fails only within a callback
        _ = ccurl_multi_set_timer_callback(multi.raw, nil, nil)  // as above
    }

    /// Returns the timeout for epoll in milliseconds, −1 if nothing is due. libcurl's deadline thus needs no timer of
    /// its own.
    private func timeout() -> Int32 {
        deadlines.waitEnd = nil
        if streams.hasWork { return 0 }
        guard let earliest = deadlines.earliest(timer: timers.next()) else { return -1 }
        let end = MonotonicTime.now()
        excludeFromStalls(now.milliseconds(until: end))
        deadlines.waitEnd = max(end, earliest)
        return Int32(clamping: end.milliseconds(until: earliest))
    }

    private func dispatch(_ event: linux_event) {
        let fd = Int(truncatingIfNeeded: event.tag & 0xFFFF_FFFF)
        let generation = UInt32(truncatingIfNeeded: event.tag >> 32)
        guard fd < sockets.registrations.count, sockets.registrations[fd].isRegistered,
            sockets.registrations[fd].generation & 0x7FFF_FFFF == generation
        else { return }
        look(at: Int32(fd), event.mask)
    }

    private func look(at socket: Int32, _ mask: UInt32) {
        if let watcher = sockets.registrations[Int(socket)].watcher { return watcher.descriptorIsReady(mask) }
        let code = mark.inside {
            multi.act(
                on: socket,
                readable: mask & (LINUX_EPOLLIN | LINUX_EPOLLHUP) != 0,
                writable: mask & LINUX_EPOLLOUT != 0,
                failed: mask & LINUX_EPOLLERR != 0)
        }
        record(code)
    }

    private func drainFinished() {
        let wasCut = mark.drainEnd()
        while let (easy, result) = multi.nextDone() {
            if let stream = streams[easy] {
                stream.handleDidFinish(easy, result)
                continue
            }
            guard let exchange = exchange(of: easy), !exchange.hasEnded else { continue }
            let error = CurlError(result)
            end(exchange, result == CURLE_OK ? .finished : .failed(wasCut ? CurlError(ofFlood: error) : error))
        }
    }

    private func fireTimers() {
        // The actions are taken one by one, since each may add and cancel others.
        while let action = timers.popDue(at: now) { action() }
    }

    // MARK: Stalls

    /// The duration of a turn from which on it is excluded from stall detection, in milliseconds.
    private static let longTurn: Int64 = 100

    /// Excludes the duration of a long turn from the stall detection of all exchanges, since none was handled
    /// meanwhile.
    private func excludeFromStalls(_ milliseconds: Int64) {
        guard milliseconds > Self.longTurn else { return }
        for exchange in exchanges.values { exchange.activity.exclude(milliseconds) }
    }

    /// Schedules the next check so that a stall is noticed within an eighth of its time-out, and no more often than
    /// that.
    private func scheduleStallCheck(within timeout: Int64) {
        let next = now.advanced(milliseconds: max(50, timeout / 8))
        deadlines.stallCheck = min(deadlines.stallCheck ?? next, next)
    }

    private func checkStalls() {
        guard let due = deadlines.stallCheck, due <= now else { return }
        deadlines.stallCheck = nil
        var shortest = Int64.max
        var stalled: [Exchange] = []
        for exchange in exchanges.values where exchange.activity.stallTimeout > 0 {
            if exchange.isStalled() {
                stalled.append(exchange)
            } else {
                shortest = min(shortest, exchange.activity.stallTimeout)
            }
        }
        for exchange in stalled where exchanges[exchange.id] === exchange { end(exchange, .stalled) }
        if shortest < Int64.max { scheduleStallCheck(within: shortest) }
    }

    // MARK: libcurl's callbacks

    static let socketChanged: curl_socket_callback = { easy, socket, what, context, _ in
        guard let context else { return 0 }
        Unmanaged<LoopCore>.fromOpaque(context)._withUnsafeGuaranteedRef { core in
            core.register(socket, what)
            guard what != CURL_POLL_REMOVE else { return core.mark.remove(socket) }
            // The descriptor may be that of a closed connection and belong to another one now.
            let identity = SocketIdentity(socket)
            core.mark.add(identity)
            if let easy { core.record(identity, of: easy) }
        }
        return 0
    }

    /// Records the socket that an exchange uses, for the watchdog.
    private func record(_ socket: SocketIdentity, of easy: UnsafeMutableRawPointer) {
        guard streams[easy] == nil, let exchange = exchange(of: easy) else { return }
        let isNew = exchange.socket != socket
        if isNew { exchange.socket = socket }
        guard exchange.limitsReceipts else { return }
        // libcurl removes a socket, for example during a pause, and adds it again. The connection's limit stays the
        // same.
        exchange.receipts = mark.limitReceipts(of: socket.descriptor, by: isNew ? nil : exchange.receipts)
        if isNew { exchange.receipts?.recordBeginning() }
    }

    private func exchange(of easy: UnsafeMutableRawPointer) -> Exchange? {
        var context: UnsafeMutableRawPointer?
        guard ccurl_get_pointer(easy, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { return nil }
        return Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
    }

    /// Whether epoll reports when the socket is readable.
    func isWatched(_ socket: Int32) -> Bool {
        let index = Int(socket)
        guard sockets.registrations.indices.contains(index) else { return false }
        return sockets.registrations[index].isRegistered && sockets.registrations[index].mask & LINUX_EPOLLIN != 0
    }

    static let timerChanged: curl_multi_timer_callback = { _, milliseconds, context in
        guard let context else { return 0 }
        Unmanaged<LoopCore>.fromOpaque(context)._withUnsafeGuaranteedRef { core in
            // 0 means at the next turn: acting here would recurse.
            core.deadlines.curl =
                milliseconds < 0 ? nil : MonotonicTime.now().advanced(milliseconds: Int64(milliseconds))
        }
        return 0
    }

    private func register(_ socket: Int32, _ what: Int32) {
        var mask: UInt32 = 0
        if what != CURL_POLL_REMOVE {
            if what & CURL_POLL_IN != 0 { mask |= LINUX_EPOLLIN }
            if what & CURL_POLL_OUT != 0 { mask |= LINUX_EPOLLOUT }
        }
        register(socket, mask: what == CURL_POLL_REMOVE ? nil : mask, watcher: nil)
    }

    /// - Parameter mask: the events to watch for besides errors and hang-ups; `nil` to stop watching.
    func register(_ socket: Int32, mask: UInt32?, watcher: (any DescriptorWatcher)?) {
        let index = Int(socket)
        guard index >= 0 else { return }
        while sockets.registrations.count <= index { sockets.registrations.append(Registration()) }
        sockets.registrations[index].watcher = watcher
        guard let mask else {
            sockets.registrations[index].isMuted = false
            return stopWatching(socket)
        }
        guard !sockets.registrations[index].isMuted else {
            sockets.registrations[index].mask = mask
            return
        }
        if sockets.registrations[index].isRegistered {
            guard sockets.registrations[index].mask != mask else { return }
            if poll.change(socket, mask: mask, tag: tag(index)) {
                sockets.registrations[index].mask = mask
                return
            }
            // The descriptor was closed without the loop's knowledge and is now used by a new socket.
        }
        sockets.registrations[index].generation &+= 1
        sockets.registrations[index].mask = mask
        sockets.registrations[index].isRegistered =
            poll.add(socket, mask: mask, tag: tag(index)) || poll.change(socket, mask: mask, tag: tag(index))
        if !sockets.registrations[index].isRegistered { watchLater(socket) }
    }

    /// Removes a socket from epoll.
    private func stopWatching(_ socket: Int32) {
        let index = Int(socket)
        if sockets.registrations[index].isRegistered {
            poll.remove(socket)
            sockets.registrations[index].isRegistered = false
        }
        sockets.unwatched.remove(socket)
    }

    /// Ignores the events of one of libcurl's sockets until ``unmute(_:)``, whatever libcurl requests in the meantime.
    func mute(_ socket: Int32) {
        let index = Int(socket)
        guard sockets.registrations.indices.contains(index), sockets.registrations[index].isRegistered,
            sockets.registrations[index].watcher == nil
        else { return }
        sockets.registrations[index].isMuted = true
        stopWatching(socket)
    }

    /// Watches the socket again for the events that libcurl requested last.
    func unmute(_ socket: Int32) {
        let index = Int(socket)
        guard sockets.registrations.indices.contains(index), sockets.registrations[index].isMuted else { return }
        sockets.registrations[index].isMuted = false
        register(socket, mask: sockets.registrations[index].mask, watcher: nil)
    }

    // MARK: Descriptors that epoll refuses

    /// The interval between two checks of such descriptors, in milliseconds.
    private static let unwatchedInterval: Int64 = 50

    private func watchLater(_ socket: Int32) {
        if sockets.unwatched.isEmpty { scheduleUnwatched() }
        sockets.unwatched.insert(socket)
    }

    private func scheduleUnwatched() {
        _ = after(milliseconds: Self.unwatchedInterval) { [unowned self] in lookAtUnwatched() }
    }

    /// Offers the descriptors to epoll again. One that epoll still refuses is treated as ready: its operations do not
    /// block, so its owner finds out whether it is.
    private func lookAtUnwatched() {
        for socket in Array(sockets.unwatched) {
            let index = Int(socket)
            guard sockets.unwatched.contains(socket), !sockets.registrations[index].isRegistered else { continue }
            let mask = sockets.registrations[index].mask
            sockets.registrations[index].isRegistered = poll.add(socket, mask: mask, tag: tag(index))
            if !sockets.registrations[index].isRegistered { look(at: socket, mask) }
        }
        sockets.unwatched = sockets.unwatched.filter { !sockets.registrations[Int($0)].isRegistered }
        if !sockets.unwatched.isEmpty { scheduleUnwatched() }
    }

    private func tag(_ index: Int) -> UInt64 {
        // The highest generation is reserved for the wake-up's tag.
        UInt64(sockets.registrations[index].generation & 0x7FFF_FFFF) << 32 | UInt64(index)
    }
}
