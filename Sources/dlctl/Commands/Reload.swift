import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc

struct Reload: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has the daemon read its configuration again.",
        discussion: """
            Transfers go on undisturbed. A file that is wrong is refused whole, and what counted before still does. \
            The queue files that the configuration names are applied again.

            EXAMPLES:
              dlctl reload
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let result = try context.connect().reload()
        if context.json { return context.output.json(result) }
        context.output.line("the daemon goes by the configuration as it is now")
        let errors = Output(STDERR_FILENO)
        for note in result.notes { errors.line("note: " + Escape.visible(note)) }
        errors.flush()
    }
}
