import Glibc
import Synchronization

/// A simulated line between a ``ScriptedServer`` and its clients. It has a round-trip time, a rate for each connection,
/// which a new connection reaches step by step as in TCP slow start, and optionally a total rate.
package final class NetworkLine: Sendable {
    /// The time from a request to the first byte of its response, in milliseconds; a new connection adds one more.
    package let roundTrip: Int
    /// The rate of one connection, in bytes per second.
    package let rate: Int
    /// The rate of all connections together, in bytes per second; `nil` for no limit.
    package let total: Int?
    /// The rates of slower connections, in bytes per second, by connection number from 0 in the order of creation.
    package let slow: [Int: Int]

    private let made = Atomic<Int>(0)
    /// The number of the current time slice, and the bytes sent in it over all connections.
    private let slice = Mutex<(number: Int, bytes: Int)>((0, 0))

    /// The length of a time slice, in microseconds.
    private static let sliceLength = 5_000
    /// The initial window: the bytes a server sends into a new connection before an acknowledgement (RFC 6928).
    private static let firstWindow = 14_600

    package init(roundTrip: Int, rate: Int, total: Int? = nil, slow: [Int: Int] = [:]) {
        self.roundTrip = roundTrip
        self.rate = rate
        self.total = total
        self.slow = slow
    }

    /// The number of connections created.
    package var connections: Int { made.load(ordering: .relaxed) }

    /// A connection over the line.
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

        /// Delays the response to a new request by the round-trip time.
        func begin() {
            usleep(UInt32(line.roundTrip * (requests == 0 ? 2 : 1) * 1000))
            requests += 1
        }

        /// Sends a body in slices at the rate of the line.
        ///
        /// - Parameter send: sends a number of bytes and returns whether it succeeded.
        func pass(_ count: Int64, _ send: (Int) -> Bool) -> Bool {
            var left = count
            var due = NetworkLine.now()
            while left > 0 {
                // One window is sent per round trip and doubles until the line is full.
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

    /// Waits until the total rate allows `count` more bytes.
    private func share(_ count: Int) {
        guard let total else { return }
        let allowed = max(1, total * Self.sliceLength / 1_000_000)
        while true {
            let number = Self.now() / Self.sliceLength
            let goes = slice.withLock { slice in
                if slice.number < number {
                    // Bytes above the total rate are charged to the following slices.
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
