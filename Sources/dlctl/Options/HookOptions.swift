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

    @Option(help: ArgumentHelp("Run up to N commands at once.", valueName: "n"))
    var jobs = 1

    @Option(
        help: ArgumentHelp(
            "Run a failed command up to N times more; after that its event goes to a file that is named.",
            valueName: "n"))
    var retries = 3

    init() {}

    func validate() throws {
        guard let command else {
            if cursor != nil { throw ValidationError("--cursor: needs --exec.") }
            return
        }
        if command.isEmpty { throw ValidationError("--exec: is empty; give a command.") }
        if let cursor, !HookCursor.isName(cursor) {
            throw ValidationError(
                "--cursor: '\(cursor)' is not a name: up to 64 letters, digits, '-', '_' and '.', not beginning with '.', "
                    + "and not ending in .failed, .jobs, .lock or .new.")
        }
        guard (1...64).contains(jobs) else { throw ValidationError("--jobs: '\(jobs)' is not between 1 and 64.") }
        guard (0...1_000).contains(retries) else {
            throw ValidationError("--retries: '\(retries)' is not between 0 and 1000.")
        }
    }
}
