import Curl
import FoundationEssentials

/// The execution of a data task that reads a file from a file server, into memory or to the caller as it arrives.
///
/// Used on the loop's thread only.
final class RemoteDataRun: RemoteRun, RemoteExchangeClient {
    private(set) lazy var exchange = RemoteExchange(file, task: task, client: self, core: core)
    private let task: DataTask
    private let file: RemoteFile
    private let session: Session
    private unowned let core: LoopCore

    private var collected = Data()
    private var received: Int64 = 0
    private var size: Int64?

    /// The largest capacity, in bytes, reserved in advance for a file of known size.
    private static let largestReserve: Int64 = 1 << 20

    init(task: DataTask, file: RemoteFile, core: LoopCore) {
        self.task = task
        self.file = file
        self.core = core
        session = task.session
    }

    func start() {
        if case .channel(let channel) = task.sink {
            let run = RunReference(self, of: task, on: core)
            channel.begin {
                run.perform { $0.exchange.resume(after: .full) }
            }
        }
        exchange.begin(RemoteStep(work: .fetch(from: 0), path: file.path))
    }

    func receive(_ bytes: UnsafeRawBufferPointer, of facts: RemoteFacts) -> RemoteBodyVerdict {
        do throws(TransferError) {
            if received == 0 { begin(facts) }
            let limit = task.originalRequest.maximumBodySize ?? .max
            guard max(size ?? 0, received + Int64(bytes.count)) <= limit else {
                throw TransferError(.tooLarge, "the file has more than the \(limit) bytes allowed")
            }
            guard try deliver(bytes) else { return .paused(.full) }
        } catch {
            return .refused(error)
        }
        if received == 0 { task.handOut() }
        received += Int64(bytes.count)
        task.progress.transferred(bytes.count)
        task.progress.setCompleted(received)
        return .accepted
    }

    private func begin(_ facts: RemoteFacts) {
        size = facts.size
        task.progress.setTotal(size)
        if case .collect = task.sink, let size {
            collected.reserveCapacity(Int(min(size, Self.largestReserve)))
        }
    }

    /// Delivers bytes to the task's destination.
    ///
    /// - Returns: whether there was room for them.
    private func deliver(_ bytes: UnsafeRawBufferPointer) throws(TransferError) -> Bool {
        if session.delegate.receivesData {
            session.delegate.dataTask(task, didReceive: Array(bytes))
            return true
        }
        switch task.sink {
        case .collect:
            let most = session.configuration.maximumCollectedBytes
            guard collected.count + bytes.count <= most else {
                throw TransferError(.tooLarge, "the file has more than the \(most) bytes that are kept in memory")
            }
            collected.append(contentsOf: bytes)
            return true
        case .hand(let receiver):
            receiver(Array(bytes))
            return true
        case .channel(let channel): return channel.put(Array(bytes))
        }
    }

    func didEnd(_ ending: RemoteEnding) {
        task.endRun(on: core)
        session.resources.networkEnded(task.core)
        task.setData(collected)
        var error = ending.error
        if error == nil, let size = size ?? ending.facts.size, received != size {
            error = TransferError(.truncated, "the file ended at \(received) of \(size) bytes")
        }
        session.complete(task, error)
    }
}
