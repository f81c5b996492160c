import Synchronization

/// Work that has to end before the handlers of a complete request run.
final class PrecedingWork: Sendable {
    /// Starts the work, and calls the closure when it has ended.
    typealias Work = @Sendable (@escaping @Sendable () -> Void) -> Void

    /// `nil` once the request is complete.
    private let works = Mutex<[Work]?>([])

    /// Adds work.
    ///
    /// - Returns: `false` if the request is already complete.
    func add(_ work: @escaping Work) -> Bool {
        works.withLock { works in
            works?.append(work)
            return works != nil
        }
    }

    /// Accepts work again, since the request has another attempt.
    func reopen() { works.withLock { $0 = $0 ?? [] } }

    /// Starts all work, and calls `then` when the last of it has ended.
    func run(then: @escaping @Sendable () -> Void) {
        let works = works.withLock { works -> [Work] in
            defer { works = nil }
            return works ?? []
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
