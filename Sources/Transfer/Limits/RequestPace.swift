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
///
/// A request belongs to the loop on which it is looked at. A loop that does not look in time, because a disk holds it up,
/// is passed over until it looks again: the first request of another loop, the rival, has a timer too, and takes the turn
/// that the first one has not taken within ``patience``.
struct RequestPace {
    /// The next step of a request.
    enum Step: Equatable {
        /// The request is sent now.
        case send
        /// The request is the next one, or the rival of the next one, and is looked at again after these milliseconds.
        case wait(Int64)
        /// The request waits behind others.
        case queue
    }

    /// The rate in requests per second up to which requests are spaced evenly.
    static let evenLimit = 100.0
    /// The time in nanoseconds by which a request may be early to make up for a late one.
    private static let slack: UInt64 = 10_000_000
    private static let second = 1_000_000_000.0
    /// The time in nanoseconds within which a request has to take its turn while one of another loop waits.
    static let patience: UInt64 = 100_000_000
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
    /// The loops of the waiting requests.
    private var loops: [Int: Int] = [:]
    /// The number of waiting requests of each loop.
    private var waiting: [Int: Int] = [:]
    /// The loops that did not look in time.
    private var absent: Set<Int> = []
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
    var head: Int? { head { !absent.contains($0) } }

    /// The request whose turn it is if the loop of the next one does not look in time.
    var rival: Int? {
        guard waiting.count > 1, let head, let late = loops[head] else { return nil }
        return self.head { $0 != late && !absent.contains($0) }
    }

    /// Returns the next request of the loops that `isPresent` selects.
    private func head(_ isPresent: (Int) -> Bool) -> Int? {
        let isNext = { (id: Int) in loops[id].map(isPresent) ?? false }
        let (first, further) = (first.first(where: isNext), further.first(where: isNext))
        return passed >= Self.mostPassed ? further ?? first : first ?? further
    }

    var isEmpty: Bool { first.isEmpty && further.isEmpty }

    /// Whether nothing waits, and a request would be sent at once.
    func isFree(now: MonotonicTime) -> Bool { isEmpty && now >= next }

    /// Adds a request.
    ///
    /// - Parameters:
    ///   - id: a number of its own.
    ///   - isFurther: whether the request is for a further connection of a download.
    ///   - loop: the loop that looks at the request.
    mutating func enter(_ id: Int, isFurther: Bool, loop: Int = 0, now: MonotonicTime) -> Step {
        // The loop works.
        absent.remove(loop)
        if isFree(now: now) {
            recordSent(now)
            return .send
        }
        if isFurther { further.append(id) } else { first.append(id) }
        loops[id] = loop
        waiting[loop, default: 0] += 1
        return step(of: id, now: now)
    }

    private func step(of id: Int, now: MonotonicTime) -> Step {
        if head == id { return .wait(now.milliseconds(until: next)) }
        return rival == id ? .wait(now.milliseconds(until: Self.time(next, plus: Self.patience))) : .queue
    }

    /// Looks at a waiting request again. It leaves the order if it is sent.
    mutating func look(_ id: Int, now: MonotonicTime) -> Step {
        if let loop = loops[id] { absent.remove(loop) }
        if rival == id, now >= Self.time(next, plus: Self.patience), let late = head.flatMap({ loops[$0] }) {
            absent.insert(late)
        }
        guard head == id, now >= next else { return step(of: id, now: now) }
        if let index = further.firstIndex(of: id) {
            further.remove(at: index)
            passed = 0
        } else if let index = first.firstIndex(of: id) {
            first.remove(at: index)
            passed = further.isEmpty ? 0 : min(passed + 1, Self.mostPassed)
        }
        forget(id)
        recordSent(now)
        return .send
    }

    /// Removes a waiting request.
    mutating func leave(_ id: Int) {
        if let index = first.firstIndex(of: id) {
            first.remove(at: index)
        } else if let index = further.firstIndex(of: id) {
            further.remove(at: index)
        }
        forget(id)
    }

    private mutating func forget(_ id: Int) {
        guard let loop = loops.removeValue(forKey: id), let count = waiting[loop] else { return }
        waiting[loop] = count > 1 ? count - 1 : nil
        // A loop without a request that waits needs no mark.
        if count <= 1 { absent.remove(loop) }
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
