import ArgumentParser
import ControlClient
import ControlProtocol

struct Shutdown: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ends the daemon in good order; its tasks go on when it comes back.",
        discussion: """
            A service of systemd stays down until someone starts it or uses its socket. To keep it down in any case: \
            systemctl stop dld.socket dld.service.

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
            context.output.line(
                "the daemon is shutting down"
                    + (isActivated ? "; systemd starts it again for the next client of its socket" : ""))
        }
    }
}
