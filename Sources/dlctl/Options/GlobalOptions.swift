import ArgumentParser

/// The options that every command accepts, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
    var socket: String?

    @Flag(help: "Print JSON.")
    var json = false

    init() {}
}
