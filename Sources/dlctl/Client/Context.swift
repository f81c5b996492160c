import ControlClient
import Glibc

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
