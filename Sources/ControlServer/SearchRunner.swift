import ControlProtocol
import Synchronization
import TaskModel

/// A runner of a connection's requests that read much of the database. They take turns on a thread of their own, so
/// that neither short requests nor long ones of other kinds wait behind them, and end with the connection.
final class SearchRunner: Sendable {
    private enum State {
        case idle
        case running(Task<Result<any Encodable & Sendable, RPCError>, Never>)
        /// The client is gone.
        case ended
    }

    private let threads: HeavyThreads
    private let state = Mutex(State.idle)

    init(threads: HeavyThreads) { self.threads = threads }

    /// Carries out a command that reads as much as `search` tells.
    func run(
        _ command: @escaping PreparedCommand, _ search: Command.Search
    ) async -> Result<any Encodable & Sendable, RPCError> {
        switch search {
        case .none: return await command()
        case .forChanges: return await withTaskExecutorPreference(threads) { await command() }
        case .forResponse: break
        }
        let task = state.withLock { state -> Task<Result<any Encodable & Sendable, RPCError>, Never>? in
            if case .ended = state { return nil }
            let task = Task(executorPreference: threads) { await command() }
            state = .running(task)
            return task
        }
        guard let task else { return .failure(.refused(.internal, "the connection was closed")) }
        let result = await task.value
        state.withLock { if case .running = $0 { $0 = .idle } }
        return result
    }

    /// Ends the command in progress, and all further ones.
    func end() {
        let task = state.withLock { state -> Task<Result<any Encodable & Sendable, RPCError>, Never>? in
            defer { state = .ended }
            return if case .running(let task) = state { task } else { nil }
        }
        task?.cancel()
    }
}
