@preconcurrency import Dispatch
import TaskModel

/// A serial queue for calls that the file system may block for any length of time. They run on a separate thread, one
/// after the other.
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

    /// Runs `body` like ``run(_:)``, but with a time limit.
    ///
    /// - Returns: `nil` where `body` takes longer than `limit` milliseconds. It continues nevertheless.
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

    /// Runs `body` like ``run(_:)``, where `body` may throw.
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
