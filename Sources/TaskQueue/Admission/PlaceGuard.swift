import Synchronization
import TaskModel
import Transfer

/// A check of places that runs off the threads that serve clients.
///
/// A hanging file system delays one call by ``limit``. While it hangs, places are not checked. A task that uses such a
/// place finds the error when it runs.
final class PlaceGuard: Sendable {
    /// The maximum time that a call waits for the result, in milliseconds.
    private static let limit: Milliseconds = 1_000

    private let work = BlockingWork(name: "places")
    private let clock: QueueClock
    /// The lifetime of a positive result, in milliseconds. It saves checks where many tasks are added one by one.
    private static let memory: Milliseconds = 100
    /// The last place found usable, its user, and the end of the result's validity on the monotonic clock.
    private let usable = Mutex<(place: DownloadPlace, user: UserIdentity, until: Milliseconds)?>(nil)
    /// The number of checks that have not returned, and whether one of them has exceeded ``limit``.
    private let checks = Mutex((outstanding: 0, isHanging: false))

    init(clock: QueueClock) {
        self.clock = clock
    }

    /// The reason why a task cannot use its place.
    struct Refusal: Sendable {
        /// The task's index in the list of tasks.
        var index: Int
        var code: ErrorCode
        var message: String
    }

    /// Checks places in order.
    ///
    /// - Returns: the error of the first unusable place; `nil` where all are usable or the result is not known in time.
    func refusal(of places: [Admission.PlacedTask], _ settings: QueueSettings) async -> Refusal? {
        let only = places.count == 1 ? places.first : nil
        let now = clock.monotonic()
        if let only, let known = usable.withLock({ $0 }), known.place == only.place, known.user == only.user,
            now < known.until
        {
            return nil
        }
        let found = await evaluate { () -> Refusal? in
            for placed in places {
                // The user's permissions are checked first, since they decide what the user may learn.
                if let error = placed.place.refusal(for: placed.user, settings: settings) {
                    let code = ErrorCode(rawValue: error.code.rawValue)
                    return Refusal(index: placed.index, code: code, message: error.message)
                }
                // What a link leads to is not for the user to know. The task is refused when it runs, whatever that is.
                if let problem = placed.place.problem(settings.inspector), !placed.place.hasLink {
                    return Refusal(index: placed.index, code: problem.code, message: problem.description)
                }
            }
            return nil
        }
        guard let found else { return nil }
        usable.withLock { usable in
            usable = found == nil ? only.map { ($0.place, $0.user, now + Self.memory) } : nil
        }
        return found
    }

    /// Runs `body`, which may block, on another thread.
    ///
    /// - Returns: `nil` where `body` does not return in time, or an earlier call still hangs.
    func evaluate<Verdict: Sendable>(_ body: @escaping @Sendable () -> Verdict) async -> Verdict? {
        let mayCheck = checks.withLock { checks in
            if !checks.isHanging { checks.outstanding += 1 }
            return !checks.isHanging
        }
        guard mayCheck else { return nil }
        let verdict = await work.run(within: Self.limit, clock) { [self] in
            let verdict = body()
            checks.withLock { checks in
                checks.outstanding -= 1
                if checks.outstanding == 0 { checks.isHanging = false }
            }
            return verdict
        }
        if verdict == nil { checks.withLock { $0.isHanging = $0.outstanding > 0 } }
        return verdict
    }
}

extension DownloadPlace {
    /// Returns the reason why nothing can be downloaded to the place; `nil` where there is none.
    func problem(_ inspector: PlaceInspector) -> PlaceProblem? {
        // Missing directories beneath a root are created. A missing root is created only where it is the daemon's own.
        if !makesRoot, !followsLinks, let problem = inspector.problem(with: root, for: .downloads(makes: false)) {
            return problem
        }
        return inspector.problem(with: path, for: .downloads(makes: true))
    }
}
