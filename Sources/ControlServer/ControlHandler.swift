import ControlProtocol
import TaskModel
import TaskQueue

/// Carries out what clients ask.
package protocol ControlHandler: Sendable {
    /// Every command save `events.subscribe` and `source.receive`. A connection's commands come one after the other; those of several
    /// connections come at once. A client's leaving does not cancel a command that has begun.
    ///
    /// - Returns: a result, which is encoded as it is and keeps to ``MessageLimits/lineLength``, or what went wrong.
    func handle(_ command: Command, from peer: Peer) async -> Result<any Encodable & Sendable, RPCError>

    /// As ``handle(_:from:)``, in two steps: what can be done of it before the connection's commands before it have been
    /// carried out, and the rest, which is called once these have.
    func prepare(_ command: Command, from peer: Peer) -> PreparedCommand

    /// `source.receive`: makes room for open files.
    func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorShares.Reservation, RPCError>

    /// `events.subscribe`: begins a stream for one subscriber.
    ///
    /// - Parameter parameters: where it begins (`after`: first replay what came after this number; `nil`: only what
    ///   comes from now on) and which `types` of event it has (`nil`: all).
    func events(_ parameters: EventsSubscribeParameters, for peer: Peer) async -> Result<EventSubscription, RPCError>
}

/// Carries out what was prepared.
package typealias PreparedCommand = @Sendable () async -> Result<any Encodable & Sendable, RPCError>

extension ControlHandler {
    package func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorShares.Reservation, RPCError> {
        .failure(.invalidRequest("no files are received here"))
    }

    package func prepare(_ command: Command, from peer: Peer) -> PreparedCommand {
        { await handle(command, from: peer) }
    }
}

/// A stream of events for one subscriber.
package struct EventSubscription: Sendable {
    /// The newest event at the time of the subscription.
    package let last: Int64
    /// First those from the journal (a `gap` before them where some are gone), then live ones, in order, nothing
    /// lost or doubled in between. It must be bounded. Its end closes the connection, since the subscriber would
    /// otherwise take silence for peace; it can come back with the last number that it saw. The server pulls from
    /// it no faster than the subscriber reads, and cancels the pulling task when the subscriber is gone.
    ///
    /// In pages, none empty: events that come together go out together. A page is read when the room that is passed in
    /// has been taken, and holds it until it is sent.
    package let pages: @Sendable (EventRoom) -> any AsyncSequence<[TaskEvent], Never> & Sendable

    package init(
        last: Int64, pages: @escaping @Sendable (EventRoom) -> any AsyncSequence<[TaskEvent], Never> & Sendable
    ) {
        self.last = last
        self.pages = pages
    }
}
