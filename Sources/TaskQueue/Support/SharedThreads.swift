/// Runs `body` on the threads that all Swift tasks share, whatever threads the current task prefers.
///
/// A waiting actor job runs on the threads that its task prefers (SE-0417), and holds up every job behind it until
/// those threads are free. A request with preferred threads therefore calls the actors that all requests need through
/// this function.
func onSharedThreads<Value, Failure>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Value
) async throws(Failure) -> Value {
    let shared = UnownedTaskExecutor(globalConcurrentExecutor)
    let preferred = withUnsafeCurrentTask { $0?.unownedTaskExecutor }
    if preferred == nil || preferred == shared { return try await body() }
    return try await withTaskExecutorPreference(globalConcurrentExecutor, operation: body)
}
