import ArgumentParser

/// The command `dlctl` itself, whose options every subcommand inherits. `Subcommands.swift` adds the subcommands.
struct RootCommand: ParsableCommand {
    @OptionGroup var global: GlobalOptions
}
