import NIOCore

/// An event of one client's connection, for ``ConnectionStateMachine``.
enum ConnectionEvent {
    // MARK: The client

    case bytesReceived(ByteBuffer)
    /// The channel is ready to read.
    case readRequested
    /// The client has closed its sending side; it may still read.
    case inputClosed
    /// Whether the channel accepts more responses.
    case writabilityChanged(Bool)
    /// The kernel has accepted the oldest unfinished write, or the write has failed.
    case writeEnded
    /// The connection is closed. No other event of the client follows.
    case closed

    // MARK: Requests

    /// The line that waits may be carried out.
    case turnGranted(Workload.Ticket)
    /// The quick request in progress needs this many bytes and a ticket of its own.
    case costFound(Int, Workload.Ticket)
    /// The request that runs has its reply.
    case replied(RequestProcessor.Reply, Workload.Ticket)
    /// Whether the next line may be decoded now (`nil`: not now).
    case aheadAnswered(Workload.Ticket?)
    case longLineGranted
    case surplusChanged(to: Int)
    case surplusRefused

    // MARK: Open files

    case filesReceived
    /// The expected files did not arrive, with the message for the client.
    case filesFailed(String)
    /// The client repeatedly sends open files without a request for them.
    case filesRefused

    // MARK: Events for a subscriber

    case pageRequested
    case pageGranted(Workload.Ticket)
    /// The page that was granted turned out to be empty.
    case pageReturned
    /// A page of events, encoded.
    case pageRead(ByteBuffer)
    case subscriptionEnded

    // MARK: Time and shutdown

    /// The rest of a line did not arrive in time.
    case lineDeadlinePassed
    /// The time for reading what was written has passed.
    case stallDeadlinePassed
    /// The order to accept no further line.
    case drain
}

/// An action that ``ConnectionStateMachine`` wants performed. Its performer, ``ConnectionHandler``, decides nothing.
enum ConnectionAction {
    case none

    // MARK: The client

    case read
    /// Reads several times in a row, for a long line.
    case allowLongLine
    /// Sends the reply's response, after the link is set up for the files that follow, and starts the subscription.
    /// The ticket is released once the response is written.
    case respond(RequestProcessor.Reply, Workload.Ticket)
    /// Sends an error that belongs to no request.
    case refuse(String, releasing: Workload.Ticket? = nil)
    /// Reads from the client again after it has passed its files.
    case resumeInput
    case close

    // MARK: Requests

    /// Requests a turn; ``ConnectionEvent/turnGranted(_:)`` follows, even during the call. The ticket is released
    /// afterwards.
    case requestTurn(Workload.Lane, bytes: Int, releasing: Workload.Ticket? = nil)
    /// Decodes a line and carries it out; ``ConnectionEvent/replied(_:_:)`` or ``ConnectionEvent/costFound(_:_:)``
    /// follows.
    case execute(ByteBuffer, Workload.Lane, Workload.Ticket)
    /// Carries out the line that was decoded ahead; ``ConnectionEvent/replied(_:_:)`` follows.
    case executeAhead(Workload.Ticket)
    /// Requests memory for decoding the next line now; ``ConnectionEvent/aheadAnswered(_:)`` follows at once.
    case requestAhead(bytes: Int)
    case decodeAhead(ByteBuffer)
    /// Requests a turn for a long line; ``ConnectionEvent/longLineGranted`` follows, even during the call.
    case requestLongLine
    case releaseLongLine
    /// Changes the charge for surplus input; ``ConnectionEvent/surplusChanged(to:)`` or
    /// ``ConnectionEvent/surplusRefused`` follows at once.
    case changeSurplus(from: Int, to: Int)
    case release(Workload.Ticket)

    // MARK: Events for a subscriber

    /// Requests a turn for a page; ``ConnectionEvent/pageGranted(_:)`` follows, even during the call.
    case requestPage
    case grantPage
    case sendEvents(ByteBuffer, Workload.Ticket?)
    /// Ends the page that was requested or granted.
    case endPage(Workload.Ticket?)
    case endSubscription(Workload.Ticket?)

    // MARK: Time and shutdown

    case startLineDeadline
    case cancelLineDeadline
    case startStallDeadline
    case cancelStallDeadline
    /// Stops the subscription, and the receipt of open files.
    case cancelWaits
    /// Cancels the deadlines, the subscription, the receipt of open files and the requests that wait for a turn.
    case abandon
}
