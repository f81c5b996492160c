import ArgumentParser
import ControlClient
import Glibc

/// The options that every command accepts, before or after its name.
struct GlobalOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
    var socket: String?

    @Flag(help: "Print JSON.")
    var json = false

    init() {}
}

/// A command that talks to the daemon.
protocol DaemonCommand: ParsableCommand {
    /// The options after the command's name.
    var global: GlobalOptions { get }
    /// The options before the command's name, outermost first.
    var outer: [GlobalOptions] { get }

    func perform(_ context: Context) throws
}

extension DaemonCommand {
    mutating func run() throws {
        let all = outer + [global]
        let context = Context(socket: all.compactMap(\.socket).last, json: all.contains(where: \.json))
        do {
            try perform(context)
        } catch let error as ClientError {
            throw Failure(error)
        }
        context.output.flush()
    }
}

/// The environment of a command: the daemon's socket, the output format and standard output.
struct Context {
    let socket: String?
    let json: Bool
    let output = Output(STDOUT_FILENO)

    init(socket: String?, json: Bool) {
        self.socket = socket
        self.json = json
    }

    func connect() throws(ClientError) -> ControlClient { try ControlClient(explicit: socket) }

    /// Reports an error without ending the command.
    func report(_ failure: Failure) {
        output.flush()
        failure.report(json: json)
    }
}
