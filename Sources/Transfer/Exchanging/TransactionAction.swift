import Curl

/// An action that ``TransactionStateMachine`` wants performed. Its performer, ``Transaction``, does nothing else.
indirect enum TransactionAction {
    /// Lets the exchange go on; nothing is to be done.
    case proceed
    /// Refuses the exchange as the result of libcurl's callback;
    /// ``TransactionStateMachine/exchangeEnded(_:)`` follows. Outside of a callback nothing is to be done.
    case refuse
    /// Cancels the exchange; ``TransactionStateMachine/exchangeEnded(_:)`` follows, or
    /// ``TransactionStateMachine/exchangeWasAbsent()`` if there is none.
    case cancelExchange
    /// Ends the pause of the exchange, or delivers the rest of a stored response.
    case resume
    /// Prepares the request and sends it to the URL. ``TransactionStateMachine/storedResponseFound(_:)`` or
    /// ``TransactionStateMachine/sendingFailed(_:)`` may follow.
    case send(TransferRequest, CurlURL)
    /// Remembers that HTTP/2 does not work at an origin, and performs the other action then.
    case avoidHTTP2(origin: String, then: TransactionAction)
    /// Remembers that an origin refuses `Expect: 100-continue`, and refuses the exchange as ``refuse`` does.
    case omitExpectation(origin: String)
    /// Asks the delegate; ``TransactionStateMachine/answered(_:_:)`` or ``TransactionStateMachine/answerDelayed(_:)``
    /// follows.
    case ask(PendingQuestion)
    /// Evaluates the server's certificates by the policy; ``TransactionStateMachine/trustEvaluated(_:isTrusted:)``
    /// follows.
    case evaluate(ServerTrust)
    /// Delivers the head of the final response to the client; ``TransactionStateMachine/headHandled(_:)`` follows.
    case deliverHead(ResponseHead, CurlURL)
    /// Delivers a delegate's decision about the final response to the client;
    /// ``TransactionStateMachine/headHandled(_:)`` follows.
    case deliverDecision(ResponseDisposition, ResponseHead, CurlURL)
    /// Notifies the client of the end.
    case end(TransferError?)
}

/// The use of body bytes, in the direction in which they are to move. Decided for every chunk, so it has no payload.
enum BodyStep {
    /// Passes the bytes to or from the client.
    case pass
    /// Discards received bytes.
    case discard
    /// Moves no bytes until ``TransactionAction/resume``.
    case pause
    /// Ends the exchange.
    case refuse
}
