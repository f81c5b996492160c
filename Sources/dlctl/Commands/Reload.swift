import ArgumentParser
import ControlClient
import ControlProtocol
import Glibc

struct Reload: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Reloads the daemon's configuration.",
        usage: "dlctl reload [<options>]",
        discussion: """
            Running transfers are not interrupted. If the file contains an error, the daemon keeps the current \
            configuration. The queue files that the configuration names are applied again.

            EXAMPLES:
              dlctl reload
            """)

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func perform(_ context: Context) throws {
        let result = try context.connect().reload()
        if context.json { return context.output.json(result) }
        context.remark("the configuration was reloaded")
        for note in result.notes { context.note("note: " + Escape.visible(note)) }
    }
}
