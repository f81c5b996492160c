import ArgumentParser
import ControlClient
import ControlProtocol

struct Shutdown: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "shutdown",
        abstract: "Stops the daemon; tasks continue at its next start.",
        usage: "dlctl shutdown [<options>]",
        discussion: """
            A systemd service stays stopped until someone starts it or a client connects to its socket. To keep it \
            stopped: systemctl stop dld.socket dld.service.

            EXAMPLES:
              dlctl shutdown
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let client = try context.connect()
        // A failure is ignored: an older or a busy daemon still shuts down.
        let isActivated = (try? client.status())?.socket == DaemonStatus.inheritedSocket
        try client.shutdown()
        if context.json {
            context.output.json(Acknowledgement())
        } else {
            context.remark(
                "the daemon is shutting down"
                    + (isActivated ? "; systemd starts it again when a client connects to its socket" : ""))
        }
    }
}
