import Synchronization
package import Transfer

/// The open files that a client passed with its last `source.receive`, for the tasks that it adds next.
package final class ReceivedFiles: Sendable, Hashable {
    /// A file, or the reason why it was refused.
    package typealias Entry = Result<PassedFile, PassedFile.Unfitness>

    private let files = Mutex<[Entry]>([])

    package init() {}

    package func replace(with files: [Entry]) { self.files.withLock { $0 = files } }

    func file(at index: Int) -> Entry? {
        files.withLock { $0.indices.contains(index) ? $0[index] : nil }
    }

    package static func == (one: ReceivedFiles, other: ReceivedFiles) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
