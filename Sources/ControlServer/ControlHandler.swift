package import ControlProtocol
package import TaskModel
package import TaskQueue

/// An implementation of the clients' commands.
package protocol ControlHandler: Sendable {
    /// Carries out a command other than `events.subscribe` and `source.receive`. The commands of one connection run one
    /// after the other; those of several connections run concurrently. A command that has started is not cancelled when
    /// its client disconnects, except for one that only reads much (``Command/Search/forResponse``).
    ///
    /// - Returns: a result, which is encoded as it is and must not exceed ``MessageLimits/lineLength``, or an error.
    func handle(_ command: Command, from peer: Peer) async -> Result<any Encodable & Sendable, RPCError>

    /// Carries out a command as ``handle(_:from:)`` does, in two steps. This call does what is possible before the
    /// connection's earlier commands have completed. The returned function does the rest, and is called after they
    /// have.
    func prepare(_ command: Command, from peer: Peer) -> PreparedCommand

    /// Returns the result of a command if that is at hand. The call must return at once: it is made on the event loop.
    func resultAtHand(of command: Command, for peer: Peer) -> EncodedResult?

    /// Carries out `source.receive`: reserves room for open files.
    func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorQuota.Reservation, RPCError>

    /// Carries out `events.subscribe`: starts a stream for one subscriber.
    ///
    /// - Parameter parameters: the start of the stream (`after`: first replay the events after this number; `nil`: only
    ///   new events) and the filter of its events.
    func events(_ parameters: EventsSubscribeParameters, for peer: Peer) async -> Result<EventSubscription, RPCError>
}

/// The second step of a prepared command.
package typealias PreparedCommand = @Sendable () async -> Result<any Encodable & Sendable, RPCError>

extension ControlHandler {
    package func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorQuota.Reservation, RPCError> {
        .failure(.invalidRequest("files cannot be passed on this connection"))
    }

    package func resultAtHand(of command: Command, for peer: Peer) -> EncodedResult? { nil }

    package func prepare(_ command: Command, from peer: Peer) -> PreparedCommand {
        { await handle(command, from: peer) }
    }
}

/// A stream of events for one subscriber.
package struct EventSubscription: Sendable {
    /// The number of the newest event at the time of the subscription.
    package let last: Int64
    /// The name of the journal.
    package let journal: String
    /// The events: first those from the journal, after a `gap` event if some have been removed, then live ones. They
    /// are in order, and none is lost or duplicated in between. The stream must be bounded. Its end closes the
    /// connection, because the subscriber would otherwise take silence for the absence of events; it can reconnect with
    /// the last number that it received. The server pulls from the stream no faster than the subscriber reads, and
    /// cancels the pulling task when the subscriber disconnects.
    ///
    /// The stream consists of non-empty pages, so that events that occur together are sent together. A page is read
    /// once the given room has been taken, and holds it until the page is sent.
    package let pages: @Sendable (EventRoom) -> any AsyncSequence<[TaskEvent], Never> & Sendable

    package init(
        last: Int64, journal: String,
        pages: @escaping @Sendable (EventRoom) -> any AsyncSequence<[TaskEvent], Never> & Sendable
    ) {
        self.last = last
        self.journal = journal
        self.pages = pages
    }
}
