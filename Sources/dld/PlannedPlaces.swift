import TaskFiles
import TaskQueue

/// The directories and files that a plan relies on, and the checks of them.
struct PlannedPlaces: Sendable {
    struct Place: Sendable {
        let path: String
        let use: PlaceUse
        /// The position in the configuration that names the place; `nil` for the default place and for one from the
        /// command line.
        let named: Configuration.Place?

        /// Returns the problem, after `FILE:LINE:COLUMN: ` if the configuration names the place.
        func text(_ problem: String) -> String { named.map { "\($0.error(problem))" } ?? problem }
    }

    private(set) var places: [Place]

    init(_ plan: DaemonPlan) {
        let downloads = plan.queueSettings.downloadDirectory
        var places = plan.configuration.places.map { named in
            let use: PlaceUse =
                switch named.use {
                case .downloadDirectory: .downloads(makes: true)
                case .downloadRoot: .downloads(makes: named.path == downloads)
                case .uploadRoot: .uploads
                case .watch: .watch
                case .certificates: .certificates
                case .metrics: .metrics
                }
            return Place(path: named.path, use: use, named: named)
        }
        if !places.contains(where: { $0.named?.use == .downloadDirectory }) {
            places.insert(Place(path: downloads, use: .downloads(makes: true), named: nil), at: 0)
        }
        self.places = places
    }

    /// Removes the default place and the places beneath the service's state directory.
    mutating func leaveOut(beneath stateDirectory: String) {
        places.removeAll { $0.named == nil || PlaceInspector.lies($0.path, beneath: [stateDirectory]) }
    }

    /// Checks all places. This blocks for as long as their file systems do.
    func problems(_ inspector: PlaceInspector) -> [(place: Place, problem: PlaceProblem)] {
        places.compactMap { place in inspector.problem(with: place.path, for: place.use).map { (place, $0) } }
    }

    /// Checks all places as ``problems(_:)`` does, but on another thread and for a limited time.
    func problems(
        on queue: TaskQueue, _ inspector: PlaceInspector
    ) async -> [(place: Place, problem: PlaceProblem)] {
        let found = await queue.problems(with: places.map { ($0.path, $0.use) }, inspector)
        return zip(places, found).compactMap { place, problem in problem.map { (place, $0) } }
    }
}
