import Synchronization

/// What downloads under way have yet to write, by file system: room that one of them is promised is none for the next.
final class SpaceNeeds: Sendable {
    private struct Need {
        /// Of the file system.
        var device: UInt64
        /// The task's number.
        var task: Int
        var bytes: Int64
    }

    private let needs = Mutex<[Need]>([])

    /// Notes what a task has yet to write.
    ///
    /// - Returns: what the others have.
    func note(_ bytes: Int64, of task: Int, on device: UInt64) -> Int64 {
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
