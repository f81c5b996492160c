import ArgumentParser

struct Resume: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lets paused tasks go on, and waiting ones start now.",
        discussion: """
            Nothing that was fetched is fetched again, as long as the server's file has not changed.

            EXAMPLES:
              dlctl resume 7
              dlctl resume --batch nightly
            """)

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.resume, selection)
    }
}
