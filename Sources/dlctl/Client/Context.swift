import ControlClient
import Glibc

/// The environment of a command: the daemon, the output format and standard output.
struct Context {
    let daemon: DaemonChoice
    let json: Bool
    let output = Output(STDOUT_FILENO)
    let connector: DaemonConnector

    init(_ daemon: DaemonChoice, json: Bool) {
        self.daemon = daemon
        self.json = json
        connector = DaemonConnector(socket: daemon.socket, instance: daemon.instance)
    }

    func connect() throws(ClientError) -> ControlClient { try connector.connect() }

    /// Reports an error without ending the command.
    func report(_ failure: Failure) {
        output.flush()
        failure.report(json: json)
    }
}
