import ArgumentParser
import TaskModel

/// The options that every command accepts, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The path of the daemon's socket.", valueName: "path"))
    var socket: String?

    @Option(help: ArgumentHelp("The instance of the daemon, dld@NAME.", valueName: "name"))
    var instance: String?

    @Flag(help: "Print the output as JSON.")
    var json = false

    @Option(
        help: ArgumentHelp(
            """
            Give up after this time, such as 5s or 10m, with exit status 75. Without it the daemon has 30s for each \
            answer, and waiting for tasks has no limit. watch without ids, top and events --follow go on until Ctrl-C.
            """, valueName: "time"))
    var timeout: SecondsArgument?

    @Flag(name: .shortAndLong, help: "Print only errors, and what was asked for.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Tell on standard error which calls the daemon answers.")
    var verbose = false

    /// The names of those options that take a value.
    static let valueOptions: Set<String> = ["--socket", "--instance", "--timeout"]

    init() {}
}
