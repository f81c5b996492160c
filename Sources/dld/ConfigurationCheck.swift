/// `dld --check-config`: says whether the configuration is right.
struct ConfigurationCheck {
    let planner: DaemonPlanner

    /// Prints warnings to standard error and the verdict to standard output.
    ///
    /// - Throws: the first mistake.
    func run() throws(StartupFailure) {
        let plan: DaemonPlan
        do {
            plan = try planner.plan(waits: true)
        } catch {
            throw StartupFailure(error, exit: StartupFailure.Exit.configuration)
        }
        for warning in plan.warnings { Dld.report("warning: \(warning)") }
        print("the configuration is right")
    }
}
