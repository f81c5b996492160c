import ControlClient
import ArgumentParser
import ControlProtocol

struct Shutdown: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Ends the daemon in good order; its tasks go on when it comes back.",
        discussion: """
            EXAMPLES:
              dlctl shutdown
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: Dlctl
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        try context.connect().shutdown()
        if context.json {
            context.output.json(Acknowledgement())
        } else {
            context.output.line("the daemon is shutting down")
        }
    }
}
