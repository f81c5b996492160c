import ArgumentParser

struct Pause: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pauses tasks and keeps their progress.",
        discussion: """
            When the command returns, the tasks have stopped and their byte counts no longer change. A task that needs \
            a login or a new URL can be paused too: it then starts only with dlctl resume, and not when it gets what \
            it needs.

            A server that does not offer ranges (Accept-Ranges) cannot continue a file: resume then begins again from 0. \
            The command names such tasks.

            EXAMPLES:
              dlctl pause 7 8
              dlctl pause --all
            """)

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.pause, selection)
    }
}
