import ArgumentParser
import ControlProtocol

// Every command states its name. Deriving one from the type's name would take a fifth of the time of each start.

extension RootCommand {
    static let configuration = CommandConfiguration(
        commandName: "dlctl",
        abstract: "Controls the download daemon dld and shows its tasks.",
        usage: "dlctl [<options>] <subcommand>",
        discussion: """
            Without a command, dlctl shows the state of the daemon and the tasks that run.

            EXAMPLES:
              dlctl add https://example.org/a.iso          queue it and print its id
              dlctl add --wait https://example.org/b.iso   queue it and wait for it
              dlctl list active                            list the running tasks
              dlctl wait 7 8                               wait until both tasks have ended

            dlctl uses the socket given with --socket, otherwise $DLD_SOCKET, otherwise the user's own daemon if it is \
            running, otherwise /run/dld/dld.sock. --instance chooses the daemon dld@NAME instead. These options and \
            --json may be given before or after the command.

            EXIT STATUS: 0 success; 1 a task failed, an id is unknown, or the request was refused; 64 wrong usage or a \
            rejected argument; 69 no daemon; 75 timeout; 77 permission denied; 130 interrupted with Ctrl-C (the tasks \
            continue).
            """,
        version: ProductVersion.version,
        groupedSubcommands: [
            CommandGroup(name: "Queueing", subcommands: [Add.self, Upload.self, Queue.self]),
            CommandGroup(
                name: "Monitoring", subcommands: [List.self, Show.self, Wait.self, Watch.self, Top.self, Events.self]),
            CommandGroup(
                name: "Control",
                subcommands: [
                    Pause.self, Resume.self, SetCommand.self, Move.self, Cancel.self, Retry.self, Remove.self,
                ]),
            CommandGroup(
                name: "Daemon",
                subcommands: [
                    Status.self, LimitCommand.self, Reload.self, Backup.self, Shutdown.self, RPC.self, Completion.self,
                ]),
        ])
}

extension Queue {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "Applies queue files and lists batches.",
        usage: "dlctl queue [<options>] <subcommand>",
        subcommands: [QueueApply.self, QueueList.self])
}
