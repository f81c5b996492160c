import Curl
import Synchronization

/// Holds a part file against the digest that it must have, from its front on while the rest still arrives.
///
/// The loop says how far the front has come; reading and hashing are done on a thread for that, one piece of work at a
/// time. What has been hashed may leave the page cache.
final class Verification: Sendable {
    let part: PartFile
    let digest: FileDigest
    private let threads: WorkerThreads

    private struct State {
        /// Absent while a thread is at work with it.
        var running: RunningDigest?
        /// Bytes that have been hashed.
        var hashed: Int64 = 0
        /// Bytes at the front that are there.
        var front: Int64 = 0
        /// The file's size, once all of it is there, and who wants to know.
        var end: (size: Int64, then: @Sendable (TransferError?) -> Void)?
        var isAtWork = false
        var isAbandoned = false
    }

    private let state: Mutex<State>
    /// Bytes of progress that are worth waking a thread for.
    static let step: Int64 = 4 << 20

    init(of part: PartFile, against digest: FileDigest, on threads: WorkerThreads) {
        self.part = part
        self.digest = digest
        self.threads = threads
        state = Mutex(State(running: RunningDigest(digest.algorithm)))
        part.setRead(upTo: 0)
    }

    /// The bytes up to `front` are there.
    func advance(to front: Int64) {
        let begins = state.withLock { state in
            state.front = max(state.front, front)
            guard !state.isAtWork, state.end == nil else { return false }
            state.isAtWork = true
            return true
        }
        if begins { threads.perform { [self] in work() } }
    }

    /// All `size` bytes are there: `then` is told whether they are right, on a thread for reading.
    func finish(size: Int64, _ then: @escaping @Sendable (TransferError?) -> Void) {
        let begins = state.withLock { state in
            state.end = (size, then)
            state.front = size
            defer { state.isAtWork = true }
            return !state.isAtWork
        }
        if begins { threads.perform { [self] in work() } }
    }

    /// What is there of the file is of no use any more.
    func abandon() { state.withLock { $0.isAbandoned = true } }

    private func work() {
        // So much stays in a core's own cache between reading and hashing.
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
        defer { space.deallocate() }
        var (digest, offset) = state.withLock { state in
            defer { state.running = nil }
            return (state.running ?? RunningDigest(self.digest.algorithm), state.hashed)
        }
        while true {
            enum Next { case read(Int), rest, end(then: @Sendable (TransferError?) -> Void) }
            let next: Next = state.withLock { state in
                if state.isAbandoned { return .rest }
                if offset < state.front { return .read(Int(min(Int64(space.count), state.front - offset))) }
                if let end = state.end { return .end(then: end.then) }
                state.running = digest
                state.hashed = offset
                state.isAtWork = false
                return .rest
            }
            switch next {
            case .rest: return
            case .end(let then): return then(judge(digest))
            case .read(let count):
                do throws(TransferError) {
                    let piece = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                    let read = try part.descriptor.read(into: piece, at: offset)
                    guard read > 0 else {
                        throw TransferError(.remoteChanged, "someone cut the part file short")
                    }
                    digest.update(UnsafeRawBufferPointer(rebasing: piece[..<read]))
                    offset += Int64(read)
                    part.setRead(upTo: offset)
                } catch {
                    return stop(error)
                }
            }
        }
    }

    private func judge(_ digest: RunningDigest) -> TransferError? {
        do throws(TransferError) {
            try self.digest.judge(digest)
            return nil
        } catch {
            return error
        }
    }

    /// The file cannot be read: whoever wants to know in the end is told.
    private func stop(_ error: TransferError) {
        let then = state.withLock { state in
            state.isAtWork = false
            state.running = nil
            state.hashed = 0
            return state.end?.then
        }
        then?(error)
    }
}
