import ArgumentParser

struct Retry: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Queues tasks again that failed, were cancelled or need you.",
        discussion: """
            Downloaded bytes that are still valid are kept. With --all or a filter without states, retry takes failed and \
            cancelled tasks, and those that are paused because they need a login, a new URL or a new source.

            A completed task is fetched or sent again from the beginning if its id or its state is given. Its file stays \
            until the new one is complete and replaces it. Headers and logins were deleted when it completed; a \
            task whose URL had secrets waits for dlctl set --url.

            resume continues what is paused or waits, retry takes back what has ended or needs you, set --url starts \
            a task with a new URL, and move changes the order alone.

            EXAMPLES:
              dlctl retry 7
              dlctl retry failed
              dlctl retry completed --batch nightly
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
