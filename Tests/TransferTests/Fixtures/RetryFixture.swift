import Curl
import Synchronization

@testable import Transfer

/// A clock that advances only on request.
final class ManualRetryClock: Sendable {
    private struct State {
        var milliseconds: Int64 = 1_000_000
        var sleepers: [Int: (end: Int64, wakes: AsyncStream<Void>.Continuation)] = [:]
        var last = 0
    }

    private let state = Mutex(State())

    var clock: RetryClock {
        RetryClock(now: { self.now }, sleep: { await self.sleep($0) })
    }

    var now: MonotonicTime { MonotonicTime(nanoseconds: UInt64(state.withLock { $0.milliseconds }) * 1_000_000) }
    /// The number of sleepers. A test waits for them before it advances the clock.
    var sleeping: Int { state.withLock { $0.sleepers.count } }

    private func sleep(_ milliseconds: Int64) async {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let number = state.withLock { state in
            state.last += 1
            state.sleepers[state.last] = (state.milliseconds + milliseconds, continuation)
            return state.last
        }
        // The stream ends when the clock reaches the time, or with the Swift task.
        for await _ in stream {}
        state.withLock { $0.sleepers[number] = nil }
    }

    func advance(milliseconds: Int64) {
        let due = state.withLock { state in
            state.milliseconds += milliseconds
            return state.sleepers.values.filter { $0.end <= state.milliseconds }
        }
        for sleeper in due { sleeper.wakes.finish() }
    }
}

extension MonotonicTime {
    /// Creates a time from milliseconds since an arbitrary origin.
    init(_ milliseconds: Int64) {
        self.init(nanoseconds: UInt64(milliseconds) * 1_000_000)
    }
}

extension NetworkWaiting {
    static let reachable = NetworkWaiting(isReachable: { true }, comesBack: { _ in true })
}

/// A generator that always returns the largest number, for maximum jitter.
struct LargestGenerator: RandomNumberGenerator, Sendable {
    mutating func next() -> UInt64 { .max }
}

/// A generator for no jitter, in ranges below 2³².
struct SmallestGenerator: RandomNumberGenerator, Sendable {
    /// Returns a number other than 0, which `random(in:using:)` would reject for ever.
    mutating func next() -> UInt64 { 1 << 32 }
}
