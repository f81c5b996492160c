import Synchronization
import Transfer

/// The open files that a client passed last, for the tasks that it adds next.
package final class ReceivedFiles: Sendable, Hashable {
    private let files = Mutex<[PassedFile]>([])

    package init() {}

    package func replace(with files: [PassedFile]) { self.files.withLock { $0 = files } }

    func file(at index: Int) -> PassedFile? {
        files.withLock { $0.indices.contains(index) ? $0[index] : nil }
    }

    package static func == (one: ReceivedFiles, other: ReceivedFiles) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
