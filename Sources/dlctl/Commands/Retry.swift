import ArgumentParser

struct Retry: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Queues failed or cancelled tasks again.",
        discussion: """
            Downloaded bytes that are still valid are kept.

            EXAMPLES:
              dlctl retry 7
              dlctl retry --state failed --batch nightly
            """)

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.retry, selection)
    }
}
