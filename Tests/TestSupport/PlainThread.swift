import Glibc

/// Runs `body` on a new thread. Use it for blocking calls, which must not occupy the thread pool that runs the tests.
package func startThread(_ body: @escaping @Sendable () -> Void) throws {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let box = Unmanaged.passRetained(Box(body))
    var thread = pthread_t()
    let result = pthread_create(
        &thread, nil,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        }, box.toOpaque())
    guard result == 0 else {
        box.release()
        throw SystemError("pthread_create", number: result)
    }
    pthread_detach(thread)
}

/// Runs `body` on a new thread and returns what it returns; the thread pool that runs the tests stays free meanwhile.
package func onThread<Answer: Sendable>(_ body: @escaping @Sendable () throws -> Answer) async throws -> Answer {
    try await withCheckedThrowingContinuation { continuation in
        do {
            try startThread { continuation.resume(with: Result(catching: body)) }
        } catch {
            continuation.resume(throwing: error)
        }
    }
}
