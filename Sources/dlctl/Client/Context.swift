import ControlClient
import Glibc

/// The environment of a command: the daemon's socket, the output format and standard output.
struct Context {
    let socket: String?
    let json: Bool
    let output = Output(STDOUT_FILENO)
    let connector: DaemonConnector

    init(socket: String?, json: Bool) {
        self.socket = socket
        self.json = json
        connector = DaemonConnector(socket: socket)
    }

    func connect() throws(ClientError) -> ControlClient { try connector.connect() }

    /// Reports an error without ending the command.
    func report(_ failure: Failure) {
        output.flush()
        failure.report(json: json)
    }
}
