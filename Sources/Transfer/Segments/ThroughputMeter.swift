/// A connection's rate as an exponential mean. The last second has the most weight, or the last few seconds if its
/// bytes arrive in bursts.
struct ThroughputMeter {
    /// The rate in bytes per second; 0 if unknown.
    private(set) var rate: Double = 0
    private var last: (time: Int64, bytes: Int64)?
    private var recent = 0.0
    private var long = 0.0
    /// Milliseconds observed.
    private var watched = 0.0
    /// Milliseconds since the last byte.
    private var silence = 0.0
    /// Whether bytes were received after a silence.
    private var isBursty = false

    /// The time constant of the mean in milliseconds, after which an old rate has a weight of a third, for even
    /// traffic.
    private static let memory = 700.0
    /// The time constant in milliseconds for bursty traffic.
    private static let longMemory = 3_000.0
    /// Milliseconds after which it is known whether a server sends a burst each second.
    private static let beginning = 1_300.0
    /// Milliseconds without a byte after which further bytes count as a burst.
    private static let gap = 200.0
    /// Milliseconds without a byte that are longer than a pause between two bursts.
    private static let stall = 2_000.0

    /// Records the received bytes.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes received so far.
    ///   - now: The current time in milliseconds on the monotonic clock.
    mutating func record(_ bytes: Int64, at now: Int64) {
        guard let last else { return self.last = (now, bytes) }
        let elapsed = Double(now - last.time)
        guard elapsed >= 20 else { return }
        let present = Double(bytes - last.bytes) / elapsed * 1000
        watched += elapsed
        if present > 0 {
            if silence >= Self.gap { isBursty = true }
            silence = 0
        } else {
            silence += elapsed
        }
        recent = recent == 0 ? present : recent + (present - recent) * min(1, elapsed / Self.memory)
        long += (present - long) * min(1, max(elapsed / Self.longMemory, elapsed / watched))
        let isEven = watched >= Self.beginning && (!isBursty || silence >= Self.stall)
        rate = isEven ? recent : long
        self.last = (now, bytes)
    }

    /// Excludes the time until the next ``record(_:at:)``, such as the wait for a response.
    mutating func pause() { last = nil }
}
