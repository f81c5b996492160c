import Synchronization

/// Work that has to end before the handlers of a complete request run.
final class PrecedingWork: Sendable {
    /// Starts the work, and calls the closure when it has ended.
    typealias Work = @Sendable (@escaping @Sendable () -> Void) -> Void

    private struct Entry {
        let work: Work
        /// Called if the request has another attempt after its end. The work then ends again before its handlers run.
        let restart: (@Sendable () -> Void)?
    }

    private struct State {
        var entries: [Entry] = []
        var isComplete = false
    }

    private let state = Mutex(State())

    /// Adds work.
    ///
    /// - Parameters:
    ///   - restart: called for another attempt of the complete request; `nil` for work that is done only once.
    ///   - work: the work.
    /// - Returns: `false` if the request is already complete.
    func add(restart: (@Sendable () -> Void)? = nil, _ work: @escaping Work) -> Bool {
        state.withLock { state in
            guard !state.isComplete else { return false }
            state.entries.append(Entry(work: work, restart: restart))
            return true
        }
    }

    /// Accepts work again, and restarts that of earlier attempts, since the request has another attempt.
    func reopen() {
        let entries = state.withLock { state in
            state.isComplete = false
            return state.entries
        }
        for entry in entries { entry.restart?() }
    }

    /// Starts all work, and calls `then` when the last of it has ended.
    func run(then: @escaping @Sendable () -> Void) {
        let works = state.withLock { state in
            defer { state.entries.removeAll { $0.restart == nil } }
            state.isComplete = true
            return state.entries.map(\.work)
        }
        if works.isEmpty { return then() }
        let remaining = Countdown(works.count, then)
        for work in works { work { remaining.count() } }
    }

    /// A counter that calls a closure when it reaches 0.
    private final class Countdown: Sendable {
        private let left: Atomic<Int>
        private let then: @Sendable () -> Void

        init(_ count: Int, _ then: @escaping @Sendable () -> Void) {
            left = Atomic(count)
            self.then = then
        }

        func count() {
            if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { then() }
        }
    }
}
