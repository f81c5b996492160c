import ArgumentParser

struct Remove: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Removes tasks and deletes their partial files.",
        discussion: """
            A running task is stopped first. The finished file is kept unless --delete-file is given. On a \
            terminal, dlctl asks before it removes several tasks that a state or another filter selects.

            EXAMPLES:
              dlctl remove 7
              dlctl remove --state completed
              dlctl remove --all --dry-run       list the tasks without removing them
            """)

    @Flag(help: "Also delete the finished file.")
    var deleteFile = false

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.remove, selection, deleteFile: deleteFile ? true : nil)
    }
}
