import ArgumentParser

struct Pause: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stops tasks and keeps their bytes.",
        discussion: """
            After the reply not one more byte is counted. A task that waits for a login or for a fresh URL is held \
            too: what it gets then starts it no more, and dlctl resume does.

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
