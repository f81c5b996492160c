import Curl

/// The event monitors of a session, each with a thread of its own.
final class EventMonitorGroup: Sendable {
    private struct Member {
        let monitor: any EventMonitor
        /// A single thread, so that events keep their order.
        let thread = WorkerThreads(name: "dld-monitor", limit: 1, stack: SystemThread.largeStack)
    }

    private let members: [Member]

    /// - Returns: `nil` for an empty list, so that an event without monitors costs a comparison.
    init?(_ monitors: [any EventMonitor]) {
        guard !monitors.isEmpty else { return nil }
        members = monitors.map { Member(monitor: $0) }
    }

    deinit {
        for member in members { member.thread.stop() }
    }

    /// Calls each monitor soon.
    func notify(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
        for member in members {
            let monitor = member.monitor
            member.thread.perform { event(monitor) }
        }
    }
}
