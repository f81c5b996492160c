import ArgumentParser

struct Remove: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forgets tasks and deletes their partial files.",
        discussion: """
            A task that runs is stopped first. The finished file stays unless --delete-file is given.

            EXAMPLES:
              dlctl remove 7
              dlctl remove --state completed
              dlctl remove --all --dry-run       names them, and removes none
            """)

    @Flag(help: "Delete the finished file too.")
    var deleteFile = false

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.remove, selection, deleteFile: deleteFile ? true : nil)
    }
}
