import NIOCore

/// A monitor that returns memory to the system soon after much of it was freed; the allocator would keep it. Belongs to
/// the event loop. Nothing is scheduled unless memory was freed.
final class HeapTrimmer {
    /// The number of bytes that a long line counts for while it is being received.
    static let longLine = 1 << 20
    /// The number of bytes that a connection counts for.
    static let connection = 8 << 10
    /// The peak below which returning memory is not worthwhile, in bytes.
    private static let least = 4 << 20
    /// The delay after much memory was freed, since more is freed along with it.
    private static let delay = TimeAmount.milliseconds(500)

    private let eventLoop: any EventLoop
    private let returnMemory: @Sendable () -> Void
    private var requests = 0
    private var connections = 0
    private var peak = 0
    private var isScheduled = false

    /// - Parameter returnMemory: called on the event loop, so it must not block.
    init(eventLoop: any EventLoop, returnMemory: @escaping @Sendable () -> Void) {
        self.eventLoop = eventLoop
        self.returnMemory = returnMemory
    }

    private var level: Int { requests + connections }

    /// - Parameter bytes: the number of bytes that requests, their responses and long lines hold now.
    func record(_ bytes: Int) {
        requests = bytes
        check()
    }

    func record(connections count: Int) {
        connections = count * Self.connection
        check()
    }

    private func check() {
        peak = max(peak, level)
        guard !isScheduled, peak >= Self.least, level <= peak / 2 else { return }
        isScheduled = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.delay) {
            self.isScheduled = false
            self.peak = self.level
            self.returnMemory()
        }
    }
}
