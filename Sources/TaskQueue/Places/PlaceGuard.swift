import Synchronization
import TaskModel
import Transfer

/// Judges places off the threads that serve clients.
///
/// A file system that hangs delays one call by ``limit``; while it hangs, places are not judged. A task that goes there
/// finds out by itself when it runs.
final class PlaceGuard: Sendable {
    /// Milliseconds that a call waits for the verdict.
    private static let limit: Milliseconds = 1_000

    private let work = BlockingWork(name: "places")
    private let clock: QueueClock
    /// Milliseconds for which a place that could be used is not looked at again: many tasks come one by one.
    private static let memory: Milliseconds = 100
    /// The place that was last found usable, by whom, and until when that counts, of a clock that no one sets.
    private let usable = Mutex<(place: DownloadPlace, user: UserIdentity, until: Milliseconds)?>(nil)
    /// Looks that have not returned, and whether one of them takes longer than ``limit``.
    private let looks = Mutex((outstanding: 0, isHanging: false))

    init(clock: QueueClock) {
        self.clock = clock
    }

    /// Why a task cannot go where it is to go.
    struct Refusal: Sendable {
        /// The task's position in its list.
        var index: Int
        var code: ErrorCode
        var message: String
    }

    /// - Returns: of the first place, in order, that cannot be used; `nil` also where that is not known in time.
    func refusal(of places: [Admission.PlacedTask], _ settings: QueueSettings) async -> Refusal? {
        let only = places.count == 1 ? places.first : nil
        let now = clock.monotonic()
        if let only, let known = usable.withLock({ $0 }), known.place == only.place, known.user == only.user,
            now < known.until
        {
            return nil
        }
        let found = await judge { () -> Refusal? in
            for placed in places {
                // First what she may know at all.
                if let error = placed.place.refusal(for: placed.user, settings: settings) {
                    let code = ErrorCode(rawValue: error.code.rawValue)
                    return Refusal(index: placed.index, code: code, message: error.message)
                }
                if let problem = placed.place.problem(settings.inspector) {
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

    /// Runs `body`, which may block.
    ///
    /// - Returns: `nil` where it does not return in time, or one before it has not returned.
    func judge<Verdict: Sendable>(_ body: @escaping @Sendable () -> Verdict) async -> Verdict? {
        let mayLook = looks.withLock { looks in
            if !looks.isHanging { looks.outstanding += 1 }
            return !looks.isHanging
        }
        guard mayLook else { return nil }
        let verdict = await work.run(within: Self.limit, clock) { [self] in
            let verdict = body()
            looks.withLock { looks in
                looks.outstanding -= 1
                if looks.outstanding == 0 { looks.isHanging = false }
            }
            return verdict
        }
        if verdict == nil { looks.withLock { $0.isHanging = $0.outstanding > 0 } }
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
