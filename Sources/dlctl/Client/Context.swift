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
    /// The end of the command by `--timeout`.
    let deadline: Deadline

    /// The seconds that the daemon has for an answer.
    private static let answerTimeout = 30.0

    /// - Parameter timeout: the value of `--timeout` in seconds.
    init(
        _ daemon: DaemonChoice, json: Bool, timeout: Double? = nil, isQuiet: Bool = false, isVerbose: Bool = false
    ) {
        self.daemon = daemon
        self.json = json
        self.isQuiet = isQuiet
        deadline = timeout.map { .after(seconds: $0) } ?? .never
        var trace: (@Sendable (String) -> Void)?
        if isVerbose { trace = { text in Output.note("dlctl: " + Escape.visible(text)) } }
        connector = DaemonConnector(socket: daemon.socket, instance: daemon.instance, trace: trace)
    }

    /// - Parameter waits: whether the connection is for waiting, which has no time limit of its own.
    func connect(waits: Bool = false) throws(ClientError) -> ControlClient {
        let client = try connector.connect()
        client.answerTimeout = Self.answerTimeout
        if !waits { client.deadline = deadline }
        return client
    }

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
