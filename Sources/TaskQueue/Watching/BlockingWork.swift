@preconcurrency import Dispatch

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
