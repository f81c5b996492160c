import Curl

/// An action that ``RemoteExchangeStateMachine`` wants performed. Its performer, ``RemoteExchange``, does nothing else.
enum RemoteExchangeAction {
    case none
    /// Reads the files of the host key policy; ``RemoteExchangeStateMachine/hostKeysRead(_:)`` or
    /// ``RemoteExchangeStateMachine/failed(_:)`` follows.
    case readHostKeys
    /// Resolves the names on the way to the server; ``RemoteExchangeStateMachine/routeResolved(_:)`` or
    /// ``RemoteExchangeStateMachine/failed(_:)`` follows.
    case resolve(RemoteAttempt)
    /// Starts an exchange; ``RemoteExchangeStateMachine/ended(_:)`` follows, or
    /// ``RemoteExchangeStateMachine/failed(_:)`` if there is none.
    case start(RemoteAttempt)
    /// Aborts the exchange; ``RemoteExchangeStateMachine/ended(_:)`` follows.
    case abort
    /// Ends the pause of the exchange.
    case unpause
    /// Calls ``RemoteExchangeStateMachine/delayEnded(_:)`` after so many milliseconds.
    case rest(Int, milliseconds: Int64)
    /// Determines how long the rate limits still delay bytes; ``RemoteExchangeStateMachine/limitsChecked(_:)`` follows.
    case checkLimits
    /// Calls ``RemoteExchangeStateMachine/nudgeDue(_:now:)`` after so many milliseconds.
    case scheduleNudge(Int, milliseconds: Int64)
    /// Wakes libcurl up, and does so again after so many milliseconds.
    case nudge(Int, again: Int64)
    /// Has the client judge the size that the server reports for the stored file;
    /// ``RemoteExchangeStateMachine/clientFailed(_:)`` follows if it is wrong.
    case evaluateStoredSize(Int64)
    /// Reports the end of the step to the client, which may begin another.
    ///
    /// - Parameter forgetsAddresses: whether the names are to be resolved again before the next attempt.
    case finish(RemoteEnding, forgetsAddresses: Bool)
}

/// A connection to the server for a step.
struct RemoteAttempt {
    /// The number of the connection within the exchange, by which late events of others are recognised.
    let number: Int
    let step: RemoteStep
    /// The type of host key that an SFTP server is requested to present; `nil` for any.
    var hostKeyType: String?
    /// Whether an FTP server has refused logins without TLS.
    var requiresTLS = false
}

/// The decision on bytes that libcurl wants to deliver or to send.
enum RemoteBytesAction: Equatable {
    /// Pass them.
    ///
    /// - Parameter begins: whether they are the first of the connection.
    case pass(begins: Bool)
    /// Pause the exchange.
    case pause(begins: Bool)
    /// Drop them: they do not belong to the file.
    case ignore
}

/// The client's decision on bytes that were received.
enum RemoteBodyVerdict {
    case accepted
    /// The same bytes are delivered again after the pause.
    case paused(RemotePause)
    case refused(TransferError)
}

/// The client's decision on bytes to be sent.
enum RemoteFillVerdict {
    /// The number of bytes written; 0 at the end of the file.
    case filled(Int)
    case paused(RemotePause)
    case failed(TransferError)
}

/// The end of an exchange, as libcurl and the performer see it.
struct RemoteExchangeEnd {
    /// The way in which it ended, with libcurl's own message in the place of the general one.
    var ending: ExchangeEnding
    /// The number of bytes that libcurl expected, and the file's modification time.
    var stated = RemoteFacts()
    /// The time since the connection was begun, in milliseconds.
    var duration: Int64 = 0
    /// Whether the time for a call in which libcurl waits had passed.
    var hasExpired = false
    /// The error if every address lies in a denied network.
    var addressError: TransferError?
    /// The error of a connection that was not established.
    var connectError: TransferError?
}
