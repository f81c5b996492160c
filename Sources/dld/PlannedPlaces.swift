import TaskFiles
import TaskQueue

/// The directories and files that a plan relies on, and what is wrong with them.
struct PlannedPlaces: Sendable {
    struct Place: Sendable {
        let path: String
        let use: PlaceUse
        /// Where the configuration names it; `nil` for the default, and for one of the command line.
        let named: Configuration.Place?

        /// `FILE:LINE:COLUMN: ` first where the configuration names it.
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
                }
            return Place(path: named.path, use: use, named: named)
        }
        if !places.contains(where: { $0.named?.use == .downloadDirectory }) {
            places.insert(Place(path: downloads, use: .downloads(makes: true), named: nil), at: 0)
        }
        self.places = places
    }

    /// Forgets the default place, and those beneath the service's state directory.
    mutating func leaveOut(beneath stateDirectory: String) {
        places.removeAll { $0.named == nil || PlaceInspector.lies($0.path, beneath: [stateDirectory]) }
    }

    /// Looks at all of them, and blocks for as long as a file system does.
    func problems(_ inspector: PlaceInspector) -> [(place: Place, problem: PlaceProblem)] {
        places.compactMap { place in inspector.problem(with: place.path, for: place.use).map { (place, $0) } }
    }

    /// As ``problems(_:)``, off this thread, and for a moment only.
    func problems(
        on queue: TaskQueue, _ inspector: PlaceInspector
    ) async -> [(place: Place, problem: PlaceProblem)] {
        let found = await queue.problems(with: places.map { ($0.path, $0.use) }, inspector)
        return zip(places, found).compactMap { place, problem in problem.map { (place, $0) } }
    }
}
