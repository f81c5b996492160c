import Glibc
import TaskFiles
import TaskQueue

/// A run of `dld --check-config`, which validates the configuration and the directories that it names.
///
/// Root checks the system's configuration on behalf of the service: as the service's user, and within the restrictions
/// of its unit. Root's own configuration is checked first, if there is one.
struct ConfigurationCheck {
    let planner: DaemonPlanner

    /// Returns the checks to make: that of root's own daemon and that of the service, as far as each has a configuration.
    static func all(_ planner: DaemonPlanner) -> [ConfigurationCheck] {
        let (own, service) = (planner.environment, planner.environment.ofService)
        var ofService = planner
        ofService.environment = service
        guard own.uid == 0, !own.isSystem, own.unit == nil, planner.stateDirectory == nil else {
            return [ConfigurationCheck(planner: planner)]
        }
        if planner.configurationFile != nil {
            return [ConfigurationCheck(planner: ofService.usesDefaultFile ? ofService : planner)]
        }
        let planners = [planner, ofService].filter { !SmallFile.isMissing($0.environment.configurationFile) }
        return (planners.isEmpty ? [planner] : planners).map { ConfigurationCheck(planner: $0) }
    }

    /// Whether the system's configuration is checked outside of its service.
    private var isOfService: Bool {
        planner.environment.isSystem && planner.environment.unit == nil && planner.usesDefaultFile
    }

    private static let serviceUser = "dld"

    /// Prints warnings to standard error and the verdict to standard output.
    ///
    /// - Throws: the errors in the file. Of unusable directories and files, all are printed.
    func run() throws(StartupFailure) {
        let plan: DaemonPlan
        var planner = planner
        // systemd passes the credentials to the service alone.
        planner.readsCredentials = !isOfService || planner.environment.systemCredentials != nil
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
        if !planner.readsCredentials, plan.configuration.hosts.values.contains(where: { $0.access.credential != nil }) {
            Dld.report("the credentials of hosts are checked when the service starts")
        }
        if !plan.readsFile { Dld.report("\(plan.configurationFile) does not exist; the defaults apply") }
        print("\(plan.readsFile ? "\(plan.configurationFile): " : "")the configuration is valid")
    }

    /// Prints the places that a daemon started with the same options uses.
    func showPaths() throws(StartupFailure) {
        do {
            print(try planner.plan(waits: true).paths)
        } catch {
            throw StartupFailure(error, exit: StartupFailure.Exit.configuration)
        }
    }

    private func problems(_ plan: DaemonPlan) -> [StartupFailure] {
        let unit = isOfService ? UnitSandbox(unit: planner.environment.serviceUnit) : nil
        var inspector = plan.queueSettings.inspector
        if isOfService, let uid = Self.become(Self.serviceUser) {
            inspector = PlaceInspector(uid: uid)
            let file = planner.environment.configurationFile
            if faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) != 0, case let error = errno, !SmallFile.isMissing(file) {
                let text =
                    "the user \(Self.serviceUser) cannot read \(file) (\(String(cString: strerror(error)))); give it "
                    + "permission to read the file and to search its parent directories"
                return [StartupFailure(text, exit: StartupFailure.Exit.configuration)]
            }
        }
        inspector.unit = plan.unit ?? unit?.unit
        var places = PlannedPlaces(plan)
        // systemd and the daemon create the default places. This shell's variables do not show where those are for the
        // service.
        if isOfService { places.leaveOut(beneath: unit?.stateDirectory ?? "/var/lib/\(planner.environment.directory)") }
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

    /// Sets the process's effective user, so that the kernel applies that user's permissions.
    ///
    /// - Returns: the uid; `nil` if the user does not exist, or this process may not change to it.
    private static func become(_ name: String) -> UInt32? {
        guard getuid() == 0, let account = getpwnam(name) else { return nil }
        let (uid, gid) = (account.pointee.pw_uid, account.pointee.pw_gid)
        guard initgroups(name, gid) == 0, setegid(gid) == 0, seteuid(uid) == 0 else { return nil }
        return uid
    }
}
