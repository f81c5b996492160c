import Curl
import DequeModule

/// The result of a read.
struct StreamPiece: Sendable, Equatable {
    var data: [UInt8] = []
    var atEOF = false
}

/// The pending calls of a stream and its unread bytes: a state machine without I/O.
///
/// Reads complete in the order of the calls, and so do writes. An operation that concerns both sides, such as the start
/// of TLS, is a barrier: it stands in both queues and begins when it is at the front of both.
struct StreamOperationQueue {
    typealias Outcome = Result<StreamPiece, TransferError>

    enum Phase: Equatable {
        /// A connection is not established yet.
        case waiting
        case open
        /// The TLS handshake with this number is running.
        case securing(Int)
        /// The stream has ended: nothing more is received or sent.
        case ended(TransferError?)
    }

    enum Barrier { case secure, capture }

    /// Work for the event loop.
    enum Work {
        /// Send these bytes from that offset on, and report the number accepted with ``accepted(_:of:)``.
        case write(Int, [UInt8], from: Int)
        case closeRead, closeWrite
        /// Start TLS; ``secured(_:)`` or ``refused(_:_:)`` follows.
        case secure(Int)
        /// Announce that the streams are available; ``captured(_:)`` follows.
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

    /// The number of unread bytes at which receiving pauses. The bytes of one turn of the loop may come on top.
    let heldLimit: Int

    private(set) var phase = Phase.waiting
    private(set) var isSuspended = false
    /// Whether the task's own calls are refused, since the streams are captured.
    private(set) var isCaptured = false
    /// Whether there was ever a connection.
    private(set) var hasConnected = false
    private(set) var bytesReceived: Int64 = 0
    private(set) var bytesSent: Int64 = 0

    private var held = ByteQueue()
    private var reads: Deque<Read> = []
    private var writes: Deque<Write> = []
    private var barriers: [Int: Barrier] = [:]
    private var progress = WriteProgress()
    /// Whether the connection was asked to receive nothing for now.
    private var isReadingPaused = false
    private var peerHasClosed = false
    private var readClose = Closing.open
    private var writeClose = Closing.open
    private var times = StreamCallTimes()
    private var outcomes: [(id: Int, outcome: Outcome)] = []

    private enum Closing { case open, requested, done }

    /// The progress of the front write.
    private struct WriteProgress {
        /// The number of bytes that the connection has accepted.
        var accepted = 0
        var sent = 0
        /// Whether the connection has no room for more bytes. It notifies when it has: ``hasRoom()``.
        var isBlocked = false
    }

    init(heldLimit: Int) { self.heldLimit = heldLimit }

    /// Returns the outcomes since the last call, and removes them.
    mutating func removeOutcomes() -> [(id: Int, outcome: Outcome)] {
        guard !outcomes.isEmpty else { return [] }
        defer { outcomes = [] }
        return outcomes
    }

    var heldBytes: Int { held.count }

    // MARK: Calls

    /// - Parameter limit: the time limit in milliseconds.
    mutating func addRead(_ id: Int, least: Int, most: Int, limit: Int64?, captured: Bool = false) {
        if let refusal = refusal(captured) ?? (readClose == .open ? nil : .streamClosed("the read side is closed")) {
            return complete(id, .failure(refusal))
        }
        times.add(id, limit: limit)
        reads.append(.read(id, least: least, most: most))
        serveReads()
    }

    mutating func addWrite(_ id: Int, _ bytes: [UInt8], limit: Int64?, captured: Bool = false) {
        if let refusal = refusal(captured) ?? (writeClose == .open ? nil : .streamClosed("the write side is closed")) {
            return complete(id, .failure(refusal))
        }
        if case .ended(let error) = phase { return complete(id, .failure(error ?? .connectionEnded)) }
        times.add(id, limit: limit)
        writes.append(.write(id, bytes))
    }

    mutating func addBarrier(_ id: Int, _ kind: Barrier) {
        if let refusal = refusal(false) { return complete(id, .failure(refusal)) }
        if case .ended(let error) = phase { return complete(id, .failure(error ?? .connectionEnded)) }
        if kind == .capture { isCaptured = true }
        barriers[id] = kind
        reads.append(.barrier(id))
        writes.append(.barrier(id))
    }

    mutating func closeRead(captured: Bool = false) {
        guard refusal(captured) == nil, readClose == .open else { return }
        readClose = .requested
        reads.append(.close)
    }

    mutating func closeWrite(captured: Bool = false) {
        guard refusal(captured) == nil, writeClose == .open else { return }
        writeClose = .requested
        writes.append(.close)
    }

    private func refusal(_ captured: Bool) -> TransferError? {
        isCaptured && !captured ? .streamClosed("the task has become a reader and a writer") : nil
    }

    // MARK: Withdrawal

    enum Withdrawal { case done, cannot }

    /// Withdraws a call. A write that has begun and a running handshake cannot be withdrawn.
    mutating func withdraw(_ id: Int, _ reason: TransferError) -> Withdrawal {
        guard isPending(id) else { return .done }
        if hasBegun(id) { return .cannot }
        reads.removeAll { if case .read(id, _, _) = $0 { true } else { $0.isBarrier(id) } }
        writes.removeAll { if case .write(id, _) = $0 { true } else { $0.isBarrier(id) } }
        if barriers.removeValue(forKey: id) == .capture { isCaptured = false }
        complete(id, .failure(reason))
        serveReads()
        return .done
    }

    private func isPending(_ id: Int) -> Bool { times.contains(id) || barriers[id] != nil }

    private func hasBegun(_ id: Int) -> Bool {
        if phase == .securing(id) { return true }
        if case .write(id, _) = writes.first { return progress.accepted > 0 }
        return false
    }

    // MARK: Time

    /// Starts the time limits of calls at `now`, unless the stream is suspended.
    ///
    /// - Returns: the earliest time to call ``expire(at:)``; `nil` if there is none.
    mutating func startTimeouts(at now: MonotonicTime) -> MonotonicTime? {
        isSuspended ? nil : times.start(now)
    }

    /// Fails the calls whose time is up.
    ///
    /// - Returns: an error if the stream cannot continue, since half of a write was sent when its time was up.
    mutating func expire(at now: MonotonicTime) -> TransferError? {
        var failure: TransferError?
        for id in times.expired(at: now) {
            let error = TransferError(.timedOut, "the operation timed out")
            if case .cannot = withdraw(id, error) {
                failure = TransferError(.timedOut, "the peer did not accept a whole write within its timeout")
            }
        }
        return failure
    }

    /// Whether a call without a time limit of its own is waiting for bytes to be received or sent.
    var isAwaited: Bool { phase == .open && !isSuspended && times.hasUnlimited }

    mutating func suspend(_ now: MonotonicTime) {
        isSuspended = true
        times.stop(now)
    }

    mutating func resume() {
        isSuspended = false
        serveReads()
    }

    // MARK: Events of the connection

    /// Called when a task begins to work for the stream.
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

    /// Returns whether the connection is to receive more; if not, ``Work/resumeReading`` follows later.
    mutating func wantsMore() -> Bool {
        isReadingPaused = isSuspended || held.count >= heldLimit && !readsWait
        return !isReadingPaused
    }

    /// Whether the read at the front needs more bytes than are buffered.
    private var readsWait: Bool { if case .read = reads.first { true } else { false } }

    mutating func peerClosed() {
        peerHasClosed = true
        serveReads()
    }

    /// - Parameter count: the number accepted. If it is less than `offered`, the connection notifies when it has room.
    mutating func accepted(_ count: Int, of offered: Int) {
        progress.accepted += count
        progress.isBlocked = count < offered
    }

    mutating func hasRoom() { progress.isBlocked = false }

    mutating func sent(_ count: Int) {
        progress.sent += count
        bytesSent += Int64(count)
        finishWrite()
    }

    private mutating func finishWrite() {
        guard case .write(let id, let bytes) = writes.first, progress.sent >= bytes.count else { return }
        writes.removeFirst()
        (progress.accepted, progress.sent) = (0, 0)
        complete(id, .success(StreamPiece()))
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
        complete(id, .success(StreamPiece()))
        serveReads()
    }

    /// Called when TLS was not started. Calls made after it were meant for TLS, so they fail instead of being sent in
    /// plain text.
    mutating func refused(_ id: Int, _ error: TransferError) {
        if phase == .securing(id) { phase = .open }
        isCaptured = isCaptured && barriers.values.contains(.capture) == false
        failAll(error)
    }

    /// Ends the stream. Only the first end has an effect.
    mutating func ended(_ error: TransferError?) {
        if case .ended = phase { return }
        // Bytes received during an unfinished TLS handshake come from an unverified peer.
        if case .securing = phase { held.removeAll() }
        phase = .ended(error)
        if error?.code == .cancelled { held.removeAll() }
        serveReads()
        failAll(error ?? .connectionEnded)
    }

    /// Fails all pending calls. Pending closes stay queued: they send no data that a peer could read.
    private mutating func failAll(_ error: TransferError) {
        var ids = Set(barriers.keys)
        for read in reads { if case .read(let id, _, _) = read { ids.insert(id) } }
        for write in writes { if case .write(let id, _) = write { ids.insert(id) } }
        reads.removeAll { if case .close = $0 { false } else { true } }
        writes.removeAll { if case .close = $0 { false } else { true } }
        barriers = [:]
        (progress.accepted, progress.sent) = (0, 0)
        for id in ids.sorted() { complete(id, .failure(error)) }
    }

    // MARK: Outcomes and work

    private mutating func complete(_ id: Int, _ outcome: Outcome) {
        times.remove(id)
        outcomes.append((id, outcome))
    }

    private mutating func serveReads() {
        while case .read(let id, let least, let most) = reads.first, let outcome = outcome(least, most) {
            reads.removeFirst()
            complete(id, outcome)
        }
    }

    /// - Returns: the outcome of a read; `nil` if it has to wait.
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
        // An error takes precedence over an empty result.
        if held.count == 0, !isOver, let end { return .failure(end) }
        let data = held.removeFirst(atMost: most)
        return .success(StreamPiece(data: data, atEOF: isOver && held.count == 0))
    }

    /// Returns the next work for the event loop; `nil` if there is none for now.
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
            if progress.accepted < bytes.count {
                return progress.isBlocked ? nil : .write(id, bytes, from: progress.accepted)
            }
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

    /// Whether the loop may find work that it has not been notified of.
    var wantsLoop: Bool {
        !reads.isEmpty || !writes.isEmpty || isReadingPaused && held.count <= heldLimit / 2
    }
}

extension StreamOperationQueue.Read {
    fileprivate func isBarrier(_ id: Int) -> Bool { if case .barrier(id) = self { true } else { false } }
}

extension StreamOperationQueue.Write {
    fileprivate func isBarrier(_ id: Int) -> Bool { if case .barrier(id) = self { true } else { false } }
}

/// A queue of bytes in one contiguous buffer, however small the appended pieces are. Unlike a `Deque`, it can give all
/// of its bytes away without copying them.
struct ByteQueue {
    private var storage: [UInt8] = []
    private var head = 0

    var count: Int { storage.count - head }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if head > 0, head >= storage.count / 2 {
            storage.removeFirst(head)
            head = 0
        }
        storage += bytes
    }

    mutating func removeFirst(atMost most: Int) -> [UInt8] {
        let size = min(most, count)
        guard size > 0 else { return [] }
        if size == count {
            defer { removeAll() }
            return head == 0 ? storage : Array(storage[head...])
        }
        defer { head += size }
        return Array(storage[head..<head + size])
    }

    mutating func removeAll() {
        storage = []
        head = 0
    }
}
