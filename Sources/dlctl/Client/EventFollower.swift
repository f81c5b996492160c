import ControlClient
import ControlProtocol
import Glibc
import TaskModel

/// A reader of new events that continues across restarts of the daemon, with no event lost or read twice.
final class EventFollower {
    private let filter: EventFilter
    private let connect: () throws(ClientError) -> any TaskSource
    private let sleep: (_ seconds: Double) -> Void
    private let report: (Failure) -> Void
    private var client: (any TaskSource)?
    /// The sequence number of the last event read.
    private var position: Int64?
    /// The name of the journal in which `position` is.
    private(set) var journal: String?
    /// The name of the journal whose events are being read.
    private var subscribedJournal: String?
    private var since: Milliseconds?
    private var isAway = false

    /// The time in seconds between two attempts to connect.
    private static let retryDelay = 0.5

    /// - Parameters:
    ///   - after: the last event already seen; `nil` for new events only, or those since `since`.
    ///   - journal: the name of the journal in which it was.
    ///   - report: told that the daemon is away, once for each time.
    init(
        after: Int64?, journal: String? = nil, since: Milliseconds?, filter: EventFilter,
        connect: @escaping () throws(ClientError) -> any TaskSource,
        sleep: @escaping (_ seconds: Double) -> Void = {
            _ = usleep(UInt32($0 * 1_000_000))  // a signal that cuts the sleep short only causes an earlier attempt
        },
        report: @escaping (Failure) -> Void
    ) {
        position = after
        self.journal = journal
        self.since = since
        self.filter = filter
        self.connect = connect
        self.sleep = sleep
        self.report = report
    }

    /// Returns the next event, for which it waits.
    ///
    /// - Parameter deadline: the time until which to wait.
    /// - Returns: `nil` where no event came until then.
    /// - Throws: ``Failure`` where there is no daemon at first, or the request is refused.
    func next(until deadline: Deadline) throws(Failure) -> TaskEvent? {
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
            }
        }
    }

    private func connected() throws(ClientError) -> any TaskSource {
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

    private func recover(from error: ClientError) throws(Failure) {
        switch error {
        case .noDaemon where client != nil || isAway: break
        case .connectionLost: break
        case .rpc(let answer)
        where answer.code == RPCError.Number.unavailable && answer.data?.code != .cannotStart:
            break
        default: throw Failure(error)
        }
        client = nil
        if !isAway { report(.daemonAway) }
        isAway = true
        sleep(Self.retryDelay)
    }
}
