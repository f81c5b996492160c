import Synchronization
import TaskModel

/// Judges places off the threads that serve clients.
///
/// A file system that hangs delays one call by ``limit``; while it hangs, places are not judged. A task that goes there
/// finds out by itself when it runs.
final class PlaceGuard: Sendable {
    /// Milliseconds that a call waits for the verdict.
    private static let limit: Milliseconds = 1_000

    private let work = BlockingWork(name: "places")
    private let clock: QueueClock
    /// Of a verdict that is outstanding for longer than ``limit``.
    private let isHanging = Mutex(false)

    init(clock: QueueClock) {
        self.clock = clock
    }

    /// - Returns: the first place, in order, that cannot be used; `nil` also where that is not known in time.
    func problem(
        in places: [Admission.PlacedTask], _ inspector: PlaceInspector
    ) async -> (index: Int, problem: PlaceProblem)? {
        let found = await judge { () -> (index: Int, problem: PlaceProblem)? in
            for placed in places {
                if let problem = placed.place.problem(inspector) { return (placed.index, problem) }
            }
            return nil
        }
        return found ?? nil
    }

    /// Runs `body`, which may block.
    ///
    /// - Returns: `nil` where it does not return in time, or one before it has not returned.
    func judge<Verdict: Sendable>(_ body: @escaping @Sendable () -> Verdict) async -> Verdict? {
        guard !isHanging.withLock({ $0 }) else { return nil }
        let verdict = await work.run(within: Self.limit, clock) { [self] in
            let verdict = body()
            isHanging.withLock { $0 = false }
            return verdict
        }
        if verdict == nil { isHanging.withLock { $0 = true } }
        return verdict
    }
}

extension DownloadPlace {
    /// Why nothing can be downloaded to it; `nil` where it can.
    func problem(_ inspector: PlaceInspector) -> PlaceProblem? {
        // What is missing beneath a root is made, the root itself only where it is the daemon's own.
        if !makesRoot, let problem = inspector.problem(with: root, for: .downloads(makes: false)) { return problem }
        return inspector.problem(with: path, for: .downloads(makes: true))
    }
}

extension TaskQueue {
    /// Looks whether the daemon can use directories, each as it is meant to be used.
    ///
    /// - Returns: what is wrong, in the order of the places; nothing where that is not known in time.
    package func problems(
        with places: [(path: String, use: PlaceUse)], _ inspector: PlaceInspector
    ) async -> [PlaceProblem?] {
        let places = places.map { ($0.path, $0.use) }
        return await placeGuard.judge { places.map { inspector.problem(with: $0.0, for: $0.1) } }
            ?? places.map { _ in nil }
    }
}
