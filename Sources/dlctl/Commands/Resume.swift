import ArgumentParser

struct Resume: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Returns paused tasks to what they waited for, and tries those that wait for a retry now.",
        discussion: """
            A task with a start time or an --after-task keeps waiting for it. --now starts it, and every other selected \
            task, as soon as there is room. A task that was paused by itself before a wider selection was paused, such as \
            --all, stays paused when that selection is resumed; its id resumes it.

            A task that waits for a retry, or for its host while that is on hold, is tried at once. If that ends the hold \
            of the host, the command says so.

            Bytes that were downloaded are not fetched again unless the file on the server has changed.

            EXAMPLES:
              dlctl resume 7
              dlctl resume --batch nightly
              dlctl resume 7 --now
            """)

    @Flag(help: "Start the tasks now, whatever they wait for.")
    var now = false

    @OptionGroup var selection: SelectionOptions
    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.carryOut(.resume, selection, now: now ? true : nil)
    }
}
