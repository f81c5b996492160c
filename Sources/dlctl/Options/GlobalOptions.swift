import ArgumentParser

/// The options that every command accepts, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The path of the daemon's socket.", valueName: "path"))
    var socket: String?

    @Flag(help: "Print the output as JSON.")
    var json = false

    init() {}
}
