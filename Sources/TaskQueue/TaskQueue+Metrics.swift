import TaskModel
import TaskStore

/// The present values among the metrics. They are determined only when someone reads the metrics.
extension TaskQueue {
    /// Records the present values.
    package func recordPresentValues() async throws(QueueError) {
        let present = await onSharedThreads { await scheduler.presentValues() }
        var counts = try stored { () throws(StoreError) in try store.countsByKind() }
        for (kind, running) in present.running {
            // A running task is stored as queued.
            var ofKind = counts[kind] ?? [:]
            ofKind[.active] = running
            ofKind[.queued] = max(0, (ofKind[.queued] ?? 0) - running)
            counts[kind] = ofKind
        }
        let metrics = scheduler.metrics
        metrics.record(tasks: counts, downloadRate: present.rates.download, uploadRate: present.rates.upload)
        metrics.record(hostsOnHold: present.hostsOnHold, logSize: store.logSize)
    }
}
