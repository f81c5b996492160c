@preconcurrency import Dispatch
import TaskModel

/// Calls that a file system may keep waiting for as long as it likes: on a thread of their own, one after the other.
struct BlockingWork: Sendable {
    private let queue: DispatchQueue

    init(name: String) {
        queue = DispatchQueue(label: name)
    }

    func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: body()) }
        }
    }

    /// As ``run(_:)``, for callers that cannot wait for as long as it takes.
    ///
    /// - Returns: `nil` where it takes longer than `limit` milliseconds; it goes on all the same.
    func run<Value: Sendable>(
        within limit: Milliseconds, _ clock: QueueClock, _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let (results, result) = AsyncStream<Value?>.makeStream(bufferingPolicy: .bufferingOldest(1))
        queue.async { result.yield(body()) }
        let timeout = Task {
            await clock.sleep(limit)
            if !Task.isCancelled { result.yield(nil) }
        }
        defer { timeout.cancel() }
        for await result in results { return result }
        return nil
    }

    /// As ``run(_:)``, for what may fail.
    func attempt<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await run {
            do throws(Failure) {
                return .success(try body())
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
