import ArgumentParser

struct Cancel: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancels tasks; a later retry continues them.",
        discussion: """
            A cancelled task stays in the list. Use retry to queue it again, or remove to delete it.

            EXAMPLES:
              dlctl cancel 7
              dlctl cancel --state waiting
            """)

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.cancel, selection)
    }
}
