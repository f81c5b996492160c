import ArgumentParser
import ControlClient
import Glibc
import TaskModel
import TerminalScreen

struct Top: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Shows the tasks on the full screen, with keys to change them.",
        usage: "dlctl top [<options>]",
        discussion: """
            The screen shows the rates, a graph of the last minutes and the tasks: those that run, then those that \
            wait, then the queue in its order. h shows the keys; q ends the program, and the tasks go on. If the daemon \
            goes away, the screen says so and waits for it.

            EXAMPLES:
              dlctl top
              dlctl top --batch nightly
            """)

    @Option(help: ArgumentHelp("Show the tasks of this batch.", valueName: "name"), completion: .batches)
    var batch: String?

    @Option(
        help: ArgumentHelp("Show tasks with this text in the URL or path, ignoring case.", valueName: "text"))
    var search: String?

    @OptionGroup var global: GlobalOptions
    @ParentCommand var root: RootCommand
    var outer: [GlobalOptions] { [root.global] }

    func validate() throws {
        if batch?.isEmpty == true { throw ValidationError("--batch: is empty; give the name of a batch.") }
        if search?.isEmpty == true { throw ValidationError("--search: is empty; give a text to search for.") }
        if let search, search.utf8.count > TaskFilter.maximumSearch {
            throw ValidationError("--search: is longer than \(TaskFilter.maximumSearch) bytes.")
        }
    }

    func perform(_ context: Context) throws {
        let instead = "use \"dlctl list\" and \"dlctl status\" instead"
        if context.json { throw Failure.usage("--json: top draws a screen; \(instead)", field: "--json") }
        let environment = Environment.variables
        guard Terminal.isTerminal(STDIN_FILENO), Terminal.isTerminal(STDOUT_FILENO) else {
            throw Failure.usage("top: standard input and output must be a terminal; \(instead)", field: "top")
        }
        guard Terminal.movesCursor(environment) else {
            let kind = environment["TERM"].map { $0.isEmpty ? "is empty" : "is \($0)" } ?? "is not set"
            throw Failure.usage("top: the terminal cannot move its cursor (TERM \(kind)); \(instead)", field: "top")
        }
        // A daemon that is absent from the start is an error; one that goes away later is waited for.
        _ = try context.connect().status()
        let query = TopQuery(batch: batch, search: search)
        let status: Int32
        do throws(ScreenError) {
            var driver = try TopDriver(connector: context.connector, query: query, style: Terminal.style(environment))
            status = driver.run()
        } catch .noTerminal {
            throw Failure.usage("top: standard input and output must be a terminal; \(instead)", field: "top")
        } catch .unusable(let code) {
            throw Failure(.failed, code: .io, "cannot use the terminal: \(SystemText.error(code))")
        }
        guard status == ExitStatus.done.rawValue else { Glibc.exit(status) }
    }
}
