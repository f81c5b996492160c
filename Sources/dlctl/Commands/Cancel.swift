import ArgumentParser

struct Cancel: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ends tasks; their bytes stay for a later retry.",
        discussion: """
            A cancelled task stays in the list. See retry, which takes it back, and remove, which forgets it.

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
