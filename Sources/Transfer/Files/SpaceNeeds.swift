import Synchronization

/// The bytes that running downloads have yet to write, by file system. Space reserved for one is not available to
/// others.
final class SpaceNeeds: Sendable {
    private struct Need {
        /// The device number of the file system.
        var device: UInt64
        /// The task's number.
        var task: Int
        var bytes: Int64
    }

    private let needs = Mutex<[Need]>([])

    /// Records the bytes that a task has yet to write.
    ///
    /// - Returns: the bytes that the other tasks have yet to write to this file system.
    func record(_ bytes: Int64, of task: Int, on device: UInt64) -> Int64 {
        needs.withLock { needs in
            var others: Int64 = 0
            var isNew = true
            for index in needs.indices where needs[index].device == device {
                if needs[index].task == task {
                    needs[index].bytes = bytes
                    isNew = false
                } else {
                    let sum = others.addingReportingOverflow(needs[index].bytes)
                    others = sum.overflow ? .max : sum.partialValue
                }
            }
            if isNew { needs.append(Need(device: device, task: task, bytes: bytes)) }
            return others
        }
    }

    func forget(_ task: Int, on device: UInt64) {
        needs.withLock { needs in
            guard let index = needs.firstIndex(where: { $0.task == task && $0.device == device }) else { return }
            needs.swapAt(index, needs.count - 1)
            needs.removeLast()
        }
    }
}
