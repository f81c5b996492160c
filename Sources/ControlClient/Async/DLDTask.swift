import ControlProtocol
import Synchronization
public import TaskModel

/// A task of the daemon, as a handle for an app. The task lives on when the handle is gone.
public struct DLDTask: Sendable, Identifiable {
    /// The id, which stays the same over restarts of the daemon.
    public let id: TaskID
    let client: DLDClient

    /// The finished file of a task.
    public struct File: Sendable, Equatable {
        /// The absolute path: of the downloaded file, or of the source of an upload.
        public let path: String
        /// The size in bytes.
        public let bytes: Int64
        /// Whether a checksum of the file was compared.
        public let isVerified: Bool
    }

    /// The fate of the transfer when the Swift task that waits for it is cancelled.
    public enum CancellationPolicy: Sendable {
        /// Lets the transfer go on.
        case leave
        /// Cancels the transfer too.
        case cancelTransfer
    }

    /// The finished file, for which the property waits. Cancelling the Swift task leaves the transfer alone.
    ///
    /// - Throws: ``DLDTaskError``, ``ClientError`` or `CancellationError`.
    public var value: File {
        get async throws { try await value() }
    }

    /// Waits for the finished file.
    ///
    /// - Throws: ``DLDTaskError`` where the task fails, is cancelled or removed, or is paused until a person acts;
    ///   ``ClientError``; `CancellationError` where the Swift task is cancelled.
    public func value(whenCancelled policy: CancellationPolicy = .leave) async throws -> File {
        for try await status in client.ends.statuses(of: id, client) where status.isSettled {
            guard status.state == .completed, let path = status.path else { throw DLDTaskError(status) }
            return File(path: path, bytes: status.bytesDone, isVerified: status.verified)
        }
        if Task.isCancelled {
            if policy == .cancelTransfer { try await cancelInNewTask() }
            throw CancellationError()
        }
        throw DLDTaskError.removed(id)
    }

    /// A cancelled Swift task cannot wait for the daemon, so another one does.
    private func cancelInNewTask() async throws {
        let cancellation = Task { try await cancel() }
        try await cancellation.value
    }

    /// The progress: the present one, and each change until the task is completed, has failed, or waits for a person.
    public var progress: DLDProgressSequence { DLDProgressSequence(task: self) }

    /// The task as it is now.
    ///
    /// - Throws: ``DLDTaskError/removed(_:)`` where it does not exist any more, or ``ClientError``.
    public var status: TaskStatus {
        get async throws {
            guard let status = try await client.status(of: id) else { throw DLDTaskError.removed(id) }
            return status
        }
    }

    // MARK: Commands

    /// Pauses the task. It keeps its bytes.
    ///
    /// - Throws: ``DLDTaskError/refused(_:_:)`` or ``ClientError``, as the other commands do.
    public func pause() async throws { try await act(.taskPause) }
    /// Returns a paused task to what it waited for, such as its start time; one that waits for a retry is attempted now.
    public func resume() async throws { try await act(.taskResume) }
    /// Cancels the task. A download keeps its part, so that ``retry()`` continues there.
    public func cancel() async throws { try await act(.taskCancel) }
    /// Queues a task again that has ended or needs a person, such as a failed one. A completed one is fetched again.
    public func retry() async throws { try await act(.taskRetry) }
    /// Removes the record, and the part of a download that is not complete.
    public func remove() async throws { try await act(.taskRemove) }

    private func act(_ method: MethodName) async throws {
        let calls = Mutex(0)
        let result = try await client.calls.run { [id] client throws(ClientError) in
            calls.withLock { $0 += 1 }
            return try client.change(method, TaskSelectionParameters(ids: [id]))
        }
        guard let error = result.errors.first else { return }
        // A call that was repeated after a loss of the connection may have been carried out the first time.
        let expected: ErrorCode = method == .taskRemove ? .unknownTask : .wrongState
        if calls.withLock({ $0 }) > 1, error.code == expected { return }
        throw DLDTaskError.refused(id, error.message)
    }
}

/// A reason why a task has no file.
public enum DLDTaskError: Error, Sendable, Equatable {
    /// The task failed, was cancelled, or is paused until a person acts. `status` tells why.
    case ended(TaskStatus)
    /// The task was removed.
    case removed(TaskID)
    /// A command was refused, with the daemon's message.
    case refused(TaskID, String)

    init(_ status: TaskStatus) { self = .ended(status) }
}

extension DLDTaskError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .ended(let status):
            "task \(status.id) is \(status.state.rawValue)"
                + (status.error.map { ": \($0.message)" } ?? status.reason.map { ": \($0.rawValue)" } ?? "")
        case .removed(let id): "task \(id) was removed"
        case .refused(let id, let message): "task \(id): \(message)"
        }
    }
}

/// The progress of a task.
public struct DLDProgress: Sendable, Equatable {
    /// The state of the task.
    public let state: TaskState
    /// The reason of the state `waiting` or `paused`.
    public let reason: TaskReason?
    /// The number of bytes on disk, or sent.
    public let bytesDone: Int64
    /// The size in bytes; `nil` if it is unknown.
    public let bytesTotal: Int64?
    /// The throughput in bytes per second.
    public let rate: Int64?
    /// The estimated remaining time in seconds.
    public let eta: Int64?

    /// The share of the bytes that is done, from 0 to 1; `nil` if the size is unknown.
    public var fraction: Double? {
        bytesTotal.map { $0 > 0 ? min(1, Double(bytesDone) / Double($0)) : state == .completed ? 1 : 0 }
    }

    init(_ status: TaskStatus) {
        state = status.state
        reason = status.reason
        bytesDone = status.bytesDone
        bytesTotal = status.bytesTotal
        rate = status.rate
        eta = status.eta
    }
}

/// The progress of a task as a sequence. It ends when the task is completed, has failed, was cancelled or removed, or is
/// paused until a person acts, and when the daemon refuses to tell.
public struct DLDProgressSequence: AsyncSequence, Sendable {
    public typealias Element = DLDProgress

    let task: DLDTask

    public func makeAsyncIterator() -> Iterator {
        Iterator(
            statuses: task.client.progress.statuses(of: task.id, task.client).makeAsyncIterator(), task: task)
    }

    /// An iterator over the progress.
    public struct Iterator: AsyncIteratorProtocol {
        var statuses: AsyncThrowingStream<TaskStatus, any Error>.Iterator
        /// The task, whose client has to live as long as someone waits.
        private let task: DLDTask
        private var last: DLDProgress?

        init(statuses: AsyncThrowingStream<TaskStatus, any Error>.Iterator, task: DLDTask) {
            self.statuses = statuses
            self.task = task
        }

        public mutating func next() async -> DLDProgress? {
            while let status = try? await statuses.next() {
                let progress = DLDProgress(status)
                if progress == last { continue }
                last = progress
                return progress
            }
            return nil
        }
    }
}
