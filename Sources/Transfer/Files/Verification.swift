import Curl
import Synchronization

/// A verification of a part file against its required digest. It proceeds from the start of the file while the rest is
/// still being received.
///
/// The event loop reports how many leading bytes are present. They are read and hashed on another thread, in one job at
/// a time. Hashed data may be dropped from the page cache.
final class Verification: Sendable {
    let part: PartFile
    let digest: FileDigest
    private let threads: WorkerThreads

    private struct State {
        /// The digest state; `nil` while a thread uses it.
        var running: RunningDigest?
        /// The number of bytes hashed.
        var hashed: Int64 = 0
        /// The number of leading bytes present.
        var front: Int64 = 0
        /// The file's size, once the file is complete, and the callback for the result.
        var end: (size: Int64, then: @Sendable (TransferError?) -> Void)?
        var isAtWork = false
        var isAbandoned = false
    }

    private let state: Mutex<State>
    /// The progress in bytes that justifies waking a thread.
    static let step: Int64 = 4 << 20

    init(of part: PartFile, against digest: FileDigest, on threads: WorkerThreads) {
        self.part = part
        self.digest = digest
        self.threads = threads
        state = Mutex(State(running: RunningDigest(digest.algorithm)))
        part.setRead(upTo: 0)
    }

    /// Records that the bytes up to `front` are present.
    func advance(to front: Int64) {
        let begins = state.withLock { state in
            state.front = max(state.front, front)
            guard !state.isAtWork, state.end == nil else { return false }
            state.isAtWork = true
            return true
        }
        if begins { threads.perform { [self] in work() } }
    }

    /// Records that all `size` bytes are present. `then` receives the result, on the thread that read the file.
    func finish(size: Int64, _ then: @escaping @Sendable (TransferError?) -> Void) {
        let begins = state.withLock { state in
            state.end = (size, then)
            state.front = size
            defer { state.isAtWork = true }
            return !state.isAtWork
        }
        if begins { threads.perform { [self] in work() } }
    }

    /// Abandons the verification, since the part file is no longer needed.
    func abandon() { state.withLock { $0.isAbandoned = true } }

    private func work() {
        // A buffer of this size stays in a core's own cache between the read and the hash.
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
        defer { space.deallocate() }
        var (digest, offset) = state.withLock { state in
            defer { state.running = nil }
            return (state.running ?? RunningDigest(self.digest.algorithm), state.hashed)
        }
        while true {
            enum Next {
                case read(Int)
                case rest
                case end(then: @Sendable (TransferError?) -> Void)
            }
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
            case .end(let then): return then(evaluate(digest))
            case .read(let count):
                do throws(TransferError) {
                    let piece = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                    let read = try part.descriptor.read(into: piece, at: offset)
                    guard read > 0 else {
                        throw TransferError(.remoteChanged, "another process truncated the part file")
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

    private func evaluate(_ digest: RunningDigest) -> TransferError? {
        do throws(TransferError) {
            try self.digest.evaluate(digest)
            return nil
        } catch {
            return error
        }
    }

    /// Ends the work after a read error. If the file is complete, its callback receives the error.
    private func stop(_ error: TransferError) {
        part.setRead(upTo: 0)  // a later attempt reads from the start, for which the data must stay cached
        let then = state.withLock { state in
            state.isAtWork = false
            state.running = nil
            state.hashed = 0
            return state.end?.then
        }
        then?(error)
    }
}
