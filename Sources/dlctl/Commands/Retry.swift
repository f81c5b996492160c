import ArgumentParser

struct Retry: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Takes failed or cancelled tasks back into the queue.",
        discussion: """
            Bytes that still count are kept.

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
