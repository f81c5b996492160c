import Curl
import DequeModule

/// The pace of the requests to one host: who sends the next request, and when. A value without I/O and clock.
///
/// Requests are spaced evenly, so that no more than the rate begin within any second; a burst is one request. Above
/// ``evenLimit`` requests a second the spacing may be made up for by ``slack``, because timers have a resolution of a
/// millisecond.
///
/// Waiting requests are served in the order of their arrival. Further connections of a download come after the requests
/// without which a transfer cannot begin, but every fourth turn is theirs. Only the first one in the order needs a timer.
struct RequestPace {
    /// The next step of a request.
    enum Step: Equatable {
        /// The request is sent now.
        case send
        /// The request is the next one, and may be sent after these milliseconds.
        case wait(Int64)
        /// The request waits behind others.
        case queue
    }

    /// The rate in requests per second up to which requests are spaced evenly.
    static let evenLimit = 100.0
    /// The time in nanoseconds by which a request may be early to make up for a late one.
    private static let slack: UInt64 = 10_000_000
    private static let second = 1_000_000_000.0
    /// The longest distance between two requests in nanoseconds: a day.
    private static let longestInterval = 86_400 * second

    /// The distance between two requests in nanoseconds; 0 for no limit.
    private var interval: UInt64 = 0
    private var mayCatchUp = false
    /// The time from which the next request may be sent.
    private var next = MonotonicTime(nanoseconds: 0)
    /// The scheduled time of the last request; `nil` before the first.
    private var last: MonotonicTime?
    private var first: Deque<Int> = []
    private var further: Deque<Int> = []
    /// The number of requests that came before those of further connections since the last one of these.
    private var passed = 0
    private static let mostPassed = 3

    /// - Parameter rate: the requests per second; `nil` for no limit.
    init(rate: Double?) { setRate(rate) }

    /// Changes the rate.
    mutating func setRate(_ rate: Double?) {
        guard let rate, rate > 0 else {
            (interval, mayCatchUp, next) = (0, false, MonotonicTime(nanoseconds: 0))
            return
        }
        mayCatchUp = rate > Self.evenLimit
        let early = mayCatchUp ? Double(Self.slack) : 0
        interval = UInt64(min(Self.longestInterval, ((Self.second + early) / rate).rounded(.up)))
        next = last.map { Self.time($0, plus: interval) } ?? MonotonicTime(nanoseconds: 0)
    }

    /// The request whose turn is next.
    var head: Int? { isTurnOfFurther ? further.first : first.first }

    private var isTurnOfFurther: Bool { first.isEmpty || (passed >= Self.mostPassed && !further.isEmpty) }

    var isEmpty: Bool { first.isEmpty && further.isEmpty }

    /// Whether nothing waits, and a request would be sent at once.
    func isFree(now: MonotonicTime) -> Bool { isEmpty && now >= next }

    /// Adds a request.
    ///
    /// - Parameters:
    ///   - id: a number of its own.
    ///   - isFurther: whether the request is for a further connection of a download.
    mutating func enter(_ id: Int, isFurther: Bool, now: MonotonicTime) -> Step {
        if isFree(now: now) {
            recordSent(now)
            return .send
        }
        if isFurther { further.append(id) } else { first.append(id) }
        return head == id ? .wait(now.milliseconds(until: next)) : .queue
    }

    /// Looks at a waiting request again. It leaves the order if it is sent.
    mutating func look(_ id: Int, now: MonotonicTime) -> Step {
        guard head == id else { return .queue }
        guard now >= next else { return .wait(now.milliseconds(until: next)) }
        if isTurnOfFurther {
            further.removeFirst()
            passed = 0
        } else {
            first.removeFirst()
            passed = further.isEmpty ? 0 : passed + 1
        }
        recordSent(now)
        return .send
    }

    /// Removes a waiting request.
    ///
    /// - Returns: whether it was the next one.
    mutating func leave(_ id: Int) -> Bool {
        let wasHead = head == id
        if let index = first.firstIndex(of: id) {
            first.remove(at: index)
        } else if let index = further.firstIndex(of: id) {
            further.remove(at: index)
        }
        return wasHead
    }

    private mutating func recordSent(_ now: MonotonicTime) {
        guard interval > 0 else { return }
        var scheduled = now
        if mayCatchUp {
            let earliest = MonotonicTime(nanoseconds: now.nanoseconds > Self.slack ? now.nanoseconds - Self.slack : 0)
            scheduled = max(next, earliest)
        }
        last = scheduled
        next = Self.time(scheduled, plus: interval)
    }

    private static func time(_ time: MonotonicTime, plus nanoseconds: UInt64) -> MonotonicTime {
        let (sum, isBeyond) = time.nanoseconds.addingReportingOverflow(nanoseconds)
        return MonotonicTime(nanoseconds: isBeyond ? .max : sum)
    }
}
