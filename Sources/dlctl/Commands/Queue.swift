import ArgumentParser

/// The command `dlctl queue`. `Subcommands.swift` adds the subcommands.
struct Queue: ParsableCommand {
    @OptionGroup var global: GlobalOptions
}
