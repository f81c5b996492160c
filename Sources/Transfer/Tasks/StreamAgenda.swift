import Curl

/// What a read brings.
struct StreamPiece: Sendable, Equatable {
    var data: [UInt8] = []
    var atEOF = false
}

/// What a stream has been asked for and has not done yet, and the bytes that nobody has read yet: a machine without
/// I/O.
///
/// Reads are done in the order in which they were asked for, and so are writes. What concerns both sides, such as
/// TLS, stands in both lanes and begins when it is at the front of both.
struct StreamAgenda {
    typealias Outcome = Result<StreamPiece, TransferError>

    enum Phase: Equatable {
        /// No connection yet.
        case waiting
        case open
        /// The TLS handshake of this number runs.
        case securing(Int)
        /// Nothing more comes or goes.
        case ended(TransferError?)
    }

    enum Barrier { case secure, capture }

    /// Something for the loop to do.
    enum Work {
        /// Hand over these bytes from that offset on, and say how many were taken: ``handed(_:of:)``.
        case write(Int, [UInt8], from: Int)
        case closeRead, closeWrite
        /// Start TLS: ``secured(_:)`` or ``refused(_:_:)`` follows.
        case secure(Int)
        /// Tell that the streams are there: ``captured(_:)`` follows.
        case capture(Int)
        case resumeReading
    }

    fileprivate enum Read {
        case read(Int, least: Int, most: Int)
        case close
        case barrier(Int)
    }

    fileprivate enum Write {
        case write(Int, [UInt8])
        case close
        case barrier(Int)
    }

    /// Unread bytes from which on no more are taken from the connection; what one turn of the loop brings may come on
    /// top.
    let heldLimit: Int

    private(set) var phase = Phase.waiting
    private(set) var isSuspended = false
    /// The task's own calls are refused from now on.
    private(set) var isCaptured = false
    /// Whether there was ever a connection.
    private(set) var hasConnected = false
    private(set) var bytesReceived: Int64 = 0
    private(set) var bytesSent: Int64 = 0

    private var held = ByteQueue()
    private var reads = FIFO<Read>()
    private var writes = FIFO<Write>()
    private var barriers: [Int: Barrier] = [:]
    /// Of the write at the front.
    private var handed = 0
    private var sent = 0
    /// The connection has no room, and will say when it has.
    private var isBlocked = false
    /// The connection was told to bring nothing more for now.
    private var isReadingPaused = false
    private var peerHasClosed = false
    private var readClose = Closing.open
    private var writeClose = Closing.open
    /// Reads and writes without a time limit of their own.
    private var unlimited: Set<Int> = []
    /// Milliseconds of those whose time does not run.
    private var limits: [Int: Int64] = [:]
    private var deadlines: [Int: MonotonicTime] = [:]
    private var answers: [(id: Int, outcome: Outcome)] = []

    private enum Closing { case open, asked, done }

    init(heldLimit: Int) { self.heldLimit = heldLimit }

    /// What has been decided since this was last asked.
    mutating func takeAnswers() -> [(id: Int, outcome: Outcome)] {
        guard !answers.isEmpty else { return [] }
        defer { answers = [] }
        return answers
    }

    var heldBytes: Int { held.count }

    // MARK: What is asked for

    /// - Parameter limit: milliseconds.
    mutating func addRead(_ id: Int, least: Int, most: Int, limit: Int64?, captured: Bool = false) {
        if let refusal = refusal(captured) ?? (readClose == .open ? nil : .streamClosed("the read side is closed")) {
            return answer(id, .failure(refusal))
        }
        note(limit, of: id)
        reads.append(.read(id, least: least, most: most))
        serveReads()
    }

    mutating func addWrite(_ id: Int, _ bytes: [UInt8], limit: Int64?, captured: Bool = false) {
        if let refusal = refusal(captured) ?? (writeClose == .open ? nil : .streamClosed("the write side is closed")) {
            return answer(id, .failure(refusal))
        }
        if case .ended(let error) = phase { return answer(id, .failure(error ?? .connectionEnded)) }
        note(limit, of: id)
        writes.append(.write(id, bytes))
    }

    mutating func addBarrier(_ id: Int, _ kind: Barrier) {
        if let refusal = refusal(false) { return answer(id, .failure(refusal)) }
        if case .ended(let error) = phase { return answer(id, .failure(error ?? .connectionEnded)) }
        if kind == .capture { isCaptured = true }
        barriers[id] = kind
        reads.append(.barrier(id))
        writes.append(.barrier(id))
    }

    mutating func closeRead(captured: Bool = false) {
        guard refusal(captured) == nil, readClose == .open else { return }
        readClose = .asked
        reads.append(.close)
    }

    mutating func closeWrite(captured: Bool = false) {
        guard refusal(captured) == nil, writeClose == .open else { return }
        writeClose = .asked
        writes.append(.close)
    }

    private func refusal(_ captured: Bool) -> TransferError? {
        isCaptured && !captured ? .streamClosed("the task has become a reader and a writer") : nil
    }

    private mutating func note(_ limit: Int64?, of id: Int) {
        if let limit { limits[id] = max(0, limit) } else { unlimited.insert(id) }
    }

    // MARK: What is taken back

    enum Withdrawal { case done, cannot }

    /// Whoever asked no longer wants it. What has begun to go out cannot be taken back.
    mutating func withdraw(_ id: Int, _ reason: TransferError) -> Withdrawal {
        guard isPending(id) else { return .done }
        if hasBegun(id) { return .cannot }
        reads.remove { if case .read(id, _, _) = $0 { true } else { $0.isBarrier(id) } }
        writes.remove { if case .write(id, _) = $0 { true } else { $0.isBarrier(id) } }
        if barriers.removeValue(forKey: id) == .capture { isCaptured = false }
        answer(id, .failure(reason))
        serveReads()
        return .done
    }

    private func isPending(_ id: Int) -> Bool {
        unlimited.contains(id) || limits[id] != nil || deadlines[id] != nil || barriers[id] != nil
    }

    private func hasBegun(_ id: Int) -> Bool {
        if phase == .securing(id) { return true }
        if case .write(id, _) = writes.first { return handed > 0 }
        return false
    }

    // MARK: Time

    /// Lets the time of what was asked for run, from `now` on.
    ///
    /// - Returns: when to call ``expire(at:)``, at the earliest.
    mutating func arm(_ now: MonotonicTime) -> MonotonicTime? {
        guard !isSuspended else { return nil }
        if !limits.isEmpty {
            for (id, limit) in limits { deadlines[id] = now.advanced(milliseconds: limit) }
            limits = [:]
        }
        return deadlines.isEmpty ? nil : deadlines.values.min()
    }

    /// - Returns: why the stream cannot go on: half of a write is out, and its time is up.
    mutating func expire(at now: MonotonicTime) -> TransferError? {
        var failure: TransferError?
        for id in deadlines.filter({ $0.value <= now }).keys.sorted() {
            let error = TransferError(.timedOut, "not done within its time")
            if case .cannot = withdraw(id, error) {
                failure = TransferError(.timedOut, "the peer did not take all of a write within its time")
            }
        }
        return failure
    }

    /// Whether somebody waits for bytes to come or go, and named no time for that.
    var isAwaited: Bool { phase == .open && !isSuspended && !unlimited.isEmpty }

    mutating func suspend(_ now: MonotonicTime) {
        isSuspended = true
        for (id, deadline) in deadlines { limits[id] = deadline.milliseconds(since: now) }
        deadlines = [:]
    }

    mutating func goOn() {
        isSuspended = false
        serveReads()
    }

    // MARK: What the connection tells

    /// A task begins to work for it.
    mutating func attach() { isSuspended = false }

    mutating func connected() {
        guard phase == .waiting else { return }
        phase = .open
        hasConnected = true
        serveReads()
    }

    mutating func received(_ bytes: UnsafeRawBufferPointer) {
        bytesReceived += Int64(bytes.count)
        guard readClose != .done else { return }
        held.append(bytes)
        serveReads()
    }

    /// Whether the connection is to bring more; otherwise ``Work/resumeReading`` will say so.
    mutating func wantsMore() -> Bool {
        isReadingPaused = isSuspended || held.count >= heldLimit && !readsWait
        return !isReadingPaused
    }

    /// The read at the front needs more than is held.
    private var readsWait: Bool { if case .read = reads.first { true } else { false } }

    mutating func peerClosed() {
        peerHasClosed = true
        serveReads()
    }

    /// - Parameter count: fewer than were offered: the connection will say when it has room.
    mutating func handed(_ count: Int, of offered: Int) {
        handed += count
        isBlocked = count < offered
    }

    mutating func hasRoom() { isBlocked = false }

    mutating func sent(_ count: Int) {
        sent += count
        bytesSent += Int64(count)
        finishWrite()
    }

    private mutating func finishWrite() {
        guard case .write(let id, let bytes) = writes.first, sent >= bytes.count else { return }
        writes.removeFirst()
        (handed, sent) = (0, 0)
        answer(id, .success(StreamPiece()))
    }

    mutating func secured(_ id: Int) {
        phase = .open
        pass(id)
    }

    mutating func captured(_ id: Int) { pass(id) }

    private mutating func pass(_ id: Int) {
        barriers[id] = nil
        if case .barrier(id) = reads.first { reads.removeFirst() }
        if case .barrier(id) = writes.first { writes.removeFirst() }
        answer(id, .success(StreamPiece()))
        serveReads()
    }

    /// TLS was not started. What was asked for after it was meant for TLS: it must not travel without.
    mutating func refused(_ id: Int, _ error: TransferError) {
        if phase == .securing(id) { phase = .open }
        isCaptured = isCaptured && barriers.values.contains(.capture) == false
        failAll(error)
    }

    /// The first end counts.
    mutating func ended(_ error: TransferError?) {
        if case .ended = phase { return }
        // What came under TLS before its peer was found trustworthy is nobody's.
        if case .securing = phase { held.removeAll() }
        phase = .ended(error)
        if error?.code == .cancelled { held.removeAll() }
        serveReads()
        failAll(error ?? .connectionEnded)
    }

    /// Closings stay where they are: they send nothing that anybody could read.
    private mutating func failAll(_ error: TransferError) {
        var ids = Set(barriers.keys)
        for read in reads.elements { if case .read(let id, _, _) = read { ids.insert(id) } }
        for write in writes.elements { if case .write(let id, _) = write { ids.insert(id) } }
        reads.remove { if case .close = $0 { false } else { true } }
        writes.remove { if case .close = $0 { false } else { true } }
        barriers = [:]
        (handed, sent) = (0, 0)
        for id in ids.sorted() { answer(id, .failure(error)) }
    }

    // MARK: What follows

    private mutating func answer(_ id: Int, _ outcome: Outcome) {
        unlimited.remove(id)
        limits[id] = nil
        deadlines[id] = nil
        answers.append((id, outcome))
    }

    private mutating func serveReads() {
        while case .read(let id, let least, let most) = reads.first, let outcome = outcome(least, most) {
            reads.removeFirst()
            answer(id, outcome)
        }
    }

    /// - Returns: `nil` where a read has to wait.
    private mutating func outcome(_ least: Int, _ most: Int) -> Outcome? {
        let end: TransferError?
        switch phase {
        case .waiting, .securing: return nil
        case .open:
            guard !isSuspended else { return nil }
            end = nil
        case .ended(let error): end = error
        }
        let isOver = peerHasClosed && end?.code != .cancelled || phase == .ended(nil)
        guard held.count >= least || isOver else { return end.map { .failure($0) } }
        // An error outranks an empty answer.
        if held.count == 0, !isOver, let end { return .failure(end) }
        let data = held.take(atMost: most)
        return .success(StreamPiece(data: data, atEOF: isOver && held.count == 0))
    }

    /// The next thing for the loop to do; `nil` where there is none for now.
    mutating func nextWork() -> Work? {
        guard phase == .open, !isSuspended else { return nil }
        if isReadingPaused, readClose != .done, held.count <= heldLimit / 2 || readsWait {
            isReadingPaused = false
            return .resumeReading
        }
        if case .close = reads.first {
            reads.removeFirst()
            readClose = .done
            held.removeAll()
            return .closeRead
        }
        if case .write(let id, let bytes) = writes.first {
            if handed < bytes.count { return isBlocked ? nil : .write(id, bytes, from: handed) }
            guard bytes.isEmpty else { return nil }
            finishWrite()
            return nextWork()
        }
        if case .close = writes.first {
            writes.removeFirst()
            writeClose = .done
            return .closeWrite
        }
        guard case .barrier(let id) = writes.first, case .barrier(id) = reads.first, let kind = barriers[id] else {
            return nil
        }
        switch kind {
        case .capture: return .capture(id)
        case .secure:
            guard held.count == 0 else {
                refused(id, .unreadPlaintext)
                return nextWork()
            }
            phase = .securing(id)
            return .secure(id)
        }
    }

    /// Whether the loop may find something to do that it has not been told of.
    var wantsLoop: Bool {
        !reads.isEmpty || !writes.isEmpty || isReadingPaused && held.count <= heldLimit / 2
    }
}

extension StreamAgenda.Read {
    fileprivate func isBarrier(_ id: Int) -> Bool { if case .barrier(id) = self { true } else { false } }
}

extension StreamAgenda.Write {
    fileprivate func isBarrier(_ id: Int) -> Bool { if case .barrier(id) = self { true } else { false } }
}
