/// Checks that the session's threads work, for a supervisor such as systemd's watchdog.
extension Session {
    /// Returns once each event loop has finished its present turn and begun another. If a loop hangs, this does not
    /// return.
    ///
    /// The loops of FTP and SFTP transfers are not waited for: they may wait within libcurl for a slow server's reply.
    public func eventLoopsTurn() async { await resources.loops.turn() }
}
