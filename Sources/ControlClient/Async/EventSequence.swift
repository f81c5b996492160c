import Dispatch
public import TaskModel

/// An event with its place in the journal.
@dynamicMemberLookup
public struct QueueEvent: Sendable, Equatable {
    /// The event.
    public let event: TaskEvent
    /// The place of the event; `nil` from a daemon whose journal has no name. Reading goes on after it.
    public let cursor: EventCursor?

    /// Creates an event with its place.
    public init(_ event: TaskEvent, cursor: EventCursor?) {
        self.event = event
        self.cursor = cursor
    }

    /// Returns a field of the event.
    public subscript<Value>(dynamicMember member: KeyPath<TaskEvent, Value>) -> Value { event[keyPath: member] }
}

/// The events of the daemon's journal, first the past ones after a cursor, then new ones as they happen.
///
/// The sequence continues over restarts of the daemon, with no event lost or doubled, and never ends by itself. An event
/// of type ``TaskEvent/Kind/gap`` says that earlier events are no longer in the journal. Each iteration has a
/// connection of its own, which it closes at its end. It ends when the Swift task is cancelled.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = QueueEvent

    let connect: @Sendable () throws(ClientError) -> ControlClient
    let cursor: EventCursor?
    let filter: EventFilter

    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: EventSequenceReader(connect: connect, after: cursor, filter: filter))
    }

    /// An iterator over the events, with a connection of its own.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: EventSequenceReader

        /// Returns the next event, for which it waits; `nil` once the Swift task is cancelled.
        ///
        /// - Throws: ``ClientError`` where the daemon refuses the subscription.
        public func next() async throws -> QueueEvent? { try await reader.next() }
    }
}

/// A reader of events on a thread of its own.
///
/// `@unchecked`: only the serial queue uses the follower.
final class EventSequenceReader: @unchecked Sendable {
    private let queue = DispatchQueue(label: "dld-client-events")
    private let interruption = Interruption()
    private let follower: EventFollower

    init(
        connect: @escaping @Sendable () throws(ClientError) -> ControlClient, after cursor: EventCursor?,
        filter: EventFilter
    ) {
        follower = EventFollower(
            after: cursor?.sequence, journal: cursor?.journal, filter: filter, waits: true,
            connect: { [interruption] () throws(ClientError) in
                if interruption.isInterrupted { throw .timedOut }
                let client = try connect()
                try interruption.watch(client)
                return client
            })
    }

    deinit { interruption.interrupt() }

    func next() async throws -> QueueEvent? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Result { try self.read() }) }
            }
        } onCancel: {
            interruption.interrupt()
        }
    }

    private func read() throws(ClientError) -> QueueEvent? {
        if interruption.isInterrupted { return nil }
        do throws(ClientError) {
            guard let event = try follower.next(until: .never) else { return nil }
            return QueueEvent(
                event,
                cursor: follower.journal.flatMap { journal in
                    follower.position.map { EventCursor(journal: journal, sequence: $0) }
                })
        } catch {
            // The interruption makes the follower connect anew, which is refused.
            if interruption.isInterrupted { return nil }
            throw error
        }
    }
}
