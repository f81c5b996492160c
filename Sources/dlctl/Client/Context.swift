import ControlClient
import Glibc

/// The environment of a command: the daemon, the output format and standard output.
struct Context {
    let daemon: DaemonChoice
    let json: Bool
    /// Whether only errors and what was asked for are printed.
    let isQuiet: Bool
    let output = Output(STDOUT_FILENO)
    let connector: DaemonConnector

    init(_ daemon: DaemonChoice, json: Bool, isQuiet: Bool = false, isVerbose: Bool = false) {
        self.daemon = daemon
        self.json = json
        self.isQuiet = isQuiet
        var trace: (@Sendable (String) -> Void)?
        if isVerbose { trace = { text in Output.note("dlctl: " + Escape.visible(text)) } }
        connector = DaemonConnector(socket: daemon.socket, instance: daemon.instance, trace: trace)
    }

    func connect() throws(ClientError) -> ControlClient { try connector.connect() }

    /// Prints what a command has done.
    func remark(_ text: String) {
        if !isQuiet { output.line(text) }
    }

    /// Writes a line that is not an error to standard error.
    func note(_ text: String) {
        if !isQuiet { Output.note(text) }
    }

    /// Reports an error without ending the command.
    func report(_ failure: Failure) {
        output.flush()
        failure.report(json: json)
    }
}
