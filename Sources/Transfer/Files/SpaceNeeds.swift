import Synchronization

/// What downloads under way have yet to write, by file system: room that one of them is promised is none for the next.
final class SpaceNeeds: Sendable {
    /// By the file system's device and the task's number; in bytes.
    private let needs = Mutex<[UInt64: [Int: Int64]]>([:])

    /// Notes what a task has yet to write.
    ///
    /// - Returns: what the others have.
    func note(_ bytes: Int64, of task: Int, on device: UInt64) -> Int64 {
        needs.withLock { needs in
            needs[device, default: [:]][task] = bytes
            var others: Int64 = 0
            for (other, bytes) in needs[device] ?? [:] where other != task {
                let sum = others.addingReportingOverflow(bytes)
                others = sum.overflow ? .max : sum.partialValue
            }
            return others
        }
    }

    func forget(_ task: Int, on device: UInt64) {
        needs.withLock { needs in
            needs[device]?[task] = nil
            if needs[device]?.isEmpty ?? false { needs[device] = nil }
        }
    }
}
