public import ControlProtocol
import Glibc
public import TaskModel

/// A connection from which an ``EventFollower`` reads.
public protocol EventSource: AnyObject {
    /// Subscribes to the events after `after`, or since a time.
    func subscribe(
        after: Int64?, journal: String?, since: Milliseconds?, filter: EventFilter
    ) throws(ClientError) -> EventsSubscribeResult
    /// Returns the next event; `nil` where none comes until the deadline.
    func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent?
}

extension ControlClient: EventSource {}

/// A reader of events that continues across restarts of the daemon, with no event lost or read twice. An instance may be
/// used by only one thread at a time.
public final class EventFollower {
    /// The filter of the subscription.
    public let filter: EventFilter
    private let connect: () throws(ClientError) -> any EventSource
    private let sleep: (_ seconds: Double) -> Void
    private let report: () -> Void
    private var client: (any EventSource)?
    /// The sequence number of the last event read.
    public private(set) var position: Int64?
    /// The name of the journal in which `position` is.
    public private(set) var journal: String?
    /// The name of the journal whose events are being read.
    private var subscribedJournal: String?
    private var since: Milliseconds?
    private var isAway: Bool

    /// The time in seconds between two attempts to connect.
    private static let retryDelay = 0.5

    /// - Parameters:
    ///   - after: the last event already seen; `nil` for new events only, or those since `since`.
    ///   - journal: the name of the journal in which it was.
    ///   - since: the time of the first event, where `after` is `nil`.
    ///   - filter: selects events.
    ///   - waits: whether to wait for a daemon that is absent at first.
    ///   - connect: opens a connection to the daemon.
    ///   - sleep: waits between two attempts to connect.
    ///   - report: called when the daemon is away, once for each time.
    public init(
        after: Int64?, journal: String? = nil, since: Milliseconds? = nil, filter: EventFilter,
        waits: Bool = false, connect: @escaping () throws(ClientError) -> any EventSource,
        sleep: ((_ seconds: Double) -> Void)? = nil,
        report: @escaping () -> Void = {}
    ) {
        position = after
        self.journal = journal
        self.since = since
        isAway = waits
        self.filter = filter
        self.connect = connect
        // A signal that cuts the sleep short only causes an earlier attempt.
        self.sleep = sleep ?? { _ = usleep(UInt32($0 * 1_000_000)) }
        self.report = report
    }

    /// Returns the next event, for which it waits.
    ///
    /// - Parameter deadline: the time until which to wait.
    /// - Returns: `nil` where no event came until then.
    /// - Throws: ``ClientError`` where there is no daemon at first, or the request is refused.
    public func next(until deadline: Deadline) throws(ClientError) -> TaskEvent? {
        while true {
            do throws(ClientError) {
                let client = try connected()
                guard let event = try client.nextEvent(until: deadline) else { return nil }
                if event.type != .progress {
                    position = event.sequence
                    journal = subscribedJournal
                }
                return event
            } catch {
                try recover(from: error)
                if deadline.isOver { return nil }
            }
        }
    }

    /// Records that the caller knows that no selected event up to a number is still to come.
    public func skip(to sequence: Int64) {
        if let position, position < sequence { self.position = sequence }
    }

    private func connected() throws(ClientError) -> any EventSource {
        if let client { return client }
        let fresh = try connect()
        let result = try fresh.subscribe(after: position, journal: journal, since: since, filter: filter)
        // After a loss of the connection the events since now are read as well.
        if position == nil, since == nil {
            position = result.last
            journal = result.journal
        }
        // Until an event of it arrives, `position` is one of the earlier journal.
        subscribedJournal = result.journal
        client = fresh
        isAway = false
        return fresh
    }

    private func recover(from error: ClientError) throws(ClientError) {
        switch error {
        case .noDaemon where client != nil || isAway: break
        case .connectionLost: break
        case .rpc(let answer)
        where answer.code == RPCError.Number.unavailable && answer.data?.code != .cannotStart:
            break
        default: throw error
        }
        client = nil
        if !isAway { report() }
        isAway = true
        sleep(Self.retryDelay)
    }
}
