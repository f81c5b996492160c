import Glibc
import Synchronization

/// A line between server and client as ``ScriptedServer`` makes it felt: a way back and forth that takes time, a rate
/// for each connection, which a new one comes up to step by step as TCP does, and possibly one for all together.
package final class NetworkLine: Sendable {
    /// Milliseconds from a question to the first byte of its answer; a new connection costs as much once more.
    package let roundTrip: Int
    /// Bytes a second of one connection.
    package let rate: Int
    /// Bytes a second of all connections together.
    package let total: Int?
    /// Connections, in the order of their making from 0 on, that are slower: bytes a second.
    package let slow: [Int: Int]

    private let made = Atomic<Int>(0)
    /// Bytes that passed in the present slice of time, of all connections.
    private let slice = Mutex<(number: Int, bytes: Int)>((0, 0))

    /// Microseconds that bytes are counted over.
    private static let sliceLength = 5_000
    /// Bytes that a server sends into a new connection without having heard from the other end (RFC 6928).
    private static let firstWindow = 14_600

    package init(roundTrip: Int, rate: Int, total: Int? = nil, slow: [Int: Int] = [:]) {
        self.roundTrip = roundTrip
        self.rate = rate
        self.total = total
        self.slow = slow
    }

    /// Connections that were made.
    package var connections: Int { made.load(ordering: .relaxed) }

    /// One connection's share of the line.
    final class Connection {
        private let line: NetworkLine
        let number: Int
        private let rate: Int
        private var window: Int
        private var requests = 0

        init(_ line: NetworkLine) {
            self.line = line
            number = line.made.wrappingAdd(1, ordering: .relaxed).oldValue
            rate = line.slow[number] ?? line.rate
            window = NetworkLine.firstWindow
        }

        /// A request has come.
        func begin() {
            usleep(UInt32(line.roundTrip * (requests == 0 ? 2 : 1) * 1000))
            requests += 1
        }

        /// Hands out slices of a body in the time that they take.
        ///
        /// - Parameter send: is given a count of bytes to send; says whether it could.
        func pass(_ count: Int64, _ send: (Int) -> Bool) -> Bool {
            var left = count
            var due = NetworkLine.now()
            while left > 0 {
                // A window each round trip, doubled until the line is full.
                let full = max(1, rate * line.roundTrip / 1000)
                let limited = window < full && line.roundTrip > 0
                let piece: Int
                if limited {
                    piece = Int(min(left, Int64(window)))
                    window *= 2
                } else {
                    piece = Int(min(left, Int64(max(1, rate * NetworkLine.sliceLength / 1_000_000))))
                }
                line.share(piece)
                guard send(piece) else { return false }
                left -= Int64(piece)
                due += limited ? line.roundTrip * 1000 : piece * 1_000_000 / rate
                let wait = due - NetworkLine.now()
                if wait > 0 { usleep(UInt32(wait)) } else if wait < -200_000 { due = NetworkLine.now() }
            }
            return true
        }
    }

    /// Waits until all connections together may send so many bytes more.
    private func share(_ count: Int) {
        guard let total else { return }
        let allowed = max(1, total * Self.sliceLength / 1_000_000)
        while true {
            let number = Self.now() / Self.sliceLength
            let goes = slice.withLock { slice in
                if slice.number < number {
                    // What went over the line's rate is owed by the slices to come.
                    slice.bytes = max(0, slice.bytes - allowed * (number - slice.number))
                    slice.number = number
                }
                guard slice.bytes < allowed else { return false }
                slice.bytes += count
                return true
            }
            if goes { return }
            usleep(1_000)
        }
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}
