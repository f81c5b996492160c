import ArgumentParser

/// The options of a command that runs for each event.
struct HookOptions: ParsableArguments {
    @Option(
        name: .customLong("exec"),
        help: ArgumentHelp("Run this command for each event, and go on with new events.", valueName: "command"))
    var command: String?

    @Option(
        help: ArgumentHelp(
            "Remember under this name which events are done. The first run starts with new events.", valueName: "name"))
    var cursor: String?

    @Option(help: ArgumentHelp("Run up to N commands at once; the default is 1.", valueName: "n"))
    var jobs: Int?

    @Option(
        help: ArgumentHelp(
            "Run a failed command up to N times more (3); after that its event goes to a file that is named.",
            valueName: "n"))
    var retries: Int?

    @Option(
        name: .customLong("exec-timeout"),
        help: ArgumentHelp(
            "End a command that takes longer: 30s, 10m. It counts as failed.", valueName: "time"))
    var timeout: SpanArgument?

    init() {}

    func validate() throws {
        guard let command else {
            let given = [
                ("--cursor", cursor != nil), ("--jobs", jobs != nil), ("--retries", retries != nil),
                ("--exec-timeout", timeout != nil),
            ]
            if let option = given.first(where: { $0.1 })?.0 { throw ValidationError("\(option): needs --exec.") }
            return
        }
        if command.isEmpty { throw ValidationError("--exec: is empty; give a command.") }
        if let cursor, !HookCursor.isName(cursor) {
            throw ValidationError(
                "--cursor: \"\(cursor)\" is not a name: up to 64 letters, digits, \"-\", \"_\" and \".\", not beginning with "
                    + "\".\", and not ending in .failed, .jobs, .lock, .new or .running.")
        }
        if let jobs, !(1...64).contains(jobs) { throw ValidationError("--jobs: \"\(jobs)\" is not between 1 and 64.") }
        if let retries, !(0...1_000).contains(retries) {
            throw ValidationError("--retries: \"\(retries)\" is not between 0 and 1000.")
        }
    }
}
