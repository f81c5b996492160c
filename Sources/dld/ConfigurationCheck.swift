import Glibc
import TaskFiles
import TaskQueue

/// `dld --check-config`: says whether the configuration is right, and whether the directories that it names can be used.
///
/// Root checks the system's configuration on behalf of the service: as its user, and within the restrictions of its
/// unit.
struct ConfigurationCheck {
    let planner: DaemonPlanner

    private static let serviceUser = "dld"

    /// Prints warnings to standard error and the verdict to standard output.
    ///
    /// - Throws: the first mistake of the file. Places that cannot be used are all printed.
    func run() throws(StartupFailure) {
        let plan: DaemonPlan
        do {
            plan = try planner.plan(waits: true)
        } catch {
            throw StartupFailure(error, exit: StartupFailure.Exit.configuration)
        }
        for warning in plan.warnings + LayoutWarning.texts(plan.queueSettings) { Dld.report("warning: \(warning)") }
        var problems = problems(plan)
        if let last = problems.popLast() {
            for problem in problems { Dld.report(problem) }
            throw last
        }
        let file = planner.surroundings.configurationFile
        if planner.configurationFile == nil, TextFile.isMissing(file) {
            Dld.report("there is no \(file): every default holds")
        }
        print("the configuration is right")
    }

    private func problems(_ plan: DaemonPlan) -> [StartupFailure] {
        let isOfService = planner.surroundings.isSystem && plan.unit == nil && planner.usesDefaultFile
        let unit = isOfService ? UnitSandbox(unit: "dld.service") : nil
        var inspector = plan.queueSettings.inspector
        if isOfService, let uid = Self.become(Self.serviceUser) {
            inspector = PlaceInspector(uid: uid)
            let file = planner.surroundings.configurationFile
            if faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) != 0, case let error = errno, !TextFile.isMissing(file) {
                let text =
                    "the user \(Self.serviceUser) cannot read \(file) (\(String(cString: strerror(error)))); let it "
                    + "read the file, and search the directories that lead there"
                return [StartupFailure(text, exit: StartupFailure.Exit.configuration)]
            }
        }
        inspector.unit = plan.unit ?? unit?.unit
        var places = PlannedPlaces(plan)
        // What lies there is systemd's and the daemon's to make, and is not where this shell's variables say.
        if isOfService { places.leaveOut(beneath: unit?.stateDirectory ?? "/var/lib/dld") }
        let found = places.problems(inspector)
        let known = Set(found.map(\.place.path))
        let hidden = places.places.compactMap { place -> StartupFailure? in
            guard !known.contains(place.path) else { return nil }
            return unit?.problem(with: place.path, for: place.use).map { Self.failure(place, $0) }
        }
        return found.map { Self.failure($0.place, $0.problem.description) } + hidden
    }

    private static func failure(_ place: PlannedPlaces.Place, _ text: String) -> StartupFailure {
        if let named = place.named {
            return StartupFailure(named.error(text), exit: StartupFailure.Exit.configuration)
        }
        return StartupFailure(text, exit: StartupFailure.Exit.configuration)
    }

    /// Has the process act as another user: the kernel then judges what that user may do.
    ///
    /// - Returns: the user's number; `nil` where there is no such user, or this process may not become it.
    private static func become(_ name: String) -> UInt32? {
        guard getuid() == 0, let account = getpwnam(name) else { return nil }
        let (uid, gid) = (account.pointee.pw_uid, account.pointee.pw_gid)
        guard initgroups(name, gid) == 0, setegid(gid) == 0, seteuid(uid) == 0 else { return nil }
        return uid
    }
}
