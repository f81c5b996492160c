import ArgumentParser

struct Resume: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes paused tasks and starts waiting tasks now.",
        discussion: """
            Bytes that were downloaded are not fetched again unless the file on the server has changed.

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
