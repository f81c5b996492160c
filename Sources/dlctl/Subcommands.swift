import ArgumentParser
import ControlProtocol

extension RootCommand {
    static let configuration = CommandConfiguration(
        commandName: "dlctl",
        abstract: "Tells the download daemon what to do, and shows what it does.",
        discussion: """
            EXAMPLES:
              dlctl add https://example.org/a.iso          queue a download, print its id
              dlctl add --wait https://example.org/b.iso   queue it and watch it arrive
              dlctl list --state active                    what runs
              dlctl wait 7 8                               block until both have ended

            The socket is --socket, else $DLD_SOCKET, else the user's own daemon if it answers, else \
            /run/dld/dld.sock. --socket and --json may stand before or after the command.

            EXIT STATUS: 0 done; 1 a task failed, an id is unknown, or the request was refused; 64 usage or a \
            rejected argument; 69 no daemon; 75 timed out; 77 not permitted; 130 Ctrl-C, which ends the waiting \
            and never the task.
            """,
        version: ProductVersion.version,
        groupedSubcommands: [
            CommandGroup(name: "Adding", subcommands: [Add.self, Upload.self, Queue.self]),
            CommandGroup(name: "Looking", subcommands: [List.self, Show.self, Wait.self]),
            CommandGroup(
                name: "Steering",
                subcommands: [
                    Pause.self, Resume.self, SetCommand.self, Move.self, Cancel.self, Retry.self, Remove.self,
                ]),
            CommandGroup(
                name: "The daemon",
                subcommands: [
                    Status.self, LimitCommand.self, Reload.self, Shutdown.self, RPC.self, Completion.self,
                ]),
        ])
}

extension Queue {
    static let configuration = CommandConfiguration(
        abstract: "Applies queue files, and lists batches.",
        subcommands: [QueueApply.self, QueueList.self])
}
