import Logging
import Synchronization
import TaskModel
import TaskStore
import Transfer

/// The open files that clients passed for uploads. Each is kept until its task ends, under a unique name that the
/// task's record contains.
package final class PassedSources: Sendable {
    private struct Entry {
        var file: PassedFile
        var owner: UInt32
        /// The task that the file belongs to; `nil` until the task is stored.
        var task: TaskID?
    }

    private let entries: Mutex<[String: Entry]>
    private let keeper: any DescriptorKeeper
    private let quota: DescriptorQuota

    init(quota: DescriptorQuota = .init(), keeper: any DescriptorKeeper = NoDescriptorKeeper()) {
        self.quota = quota
        self.keeper = keeper
        var entries: [String: Entry] = [:]
        for (label, descriptor) in keeper.adoptInheritedDescriptors() {
            guard let label = Label(text: label) else {
                PassedFile.close(descriptor)
                continue
            }
            let file = quota.keep(descriptor, of: label.owner)
            entries[label.name] = Entry(file: file, owner: label.owner, task: label.task)
        }
        self.entries = Mutex(entries)
    }

    /// The label of a file in the descriptor keeper.
    private struct Label {
        var name: String
        var task: TaskID
        var owner: UInt32

        init(name: String, task: TaskID, owner: UInt32) {
            (self.name, self.task, self.owner) = (name, task, owner)
        }

        init?(text: String) {
            let parts = text.split(separator: "-", omittingEmptySubsequences: false)
            guard parts.count == 4, parts[0] == "source", let task = Int64(parts[2]), let owner = UInt32(parts[3])
            else { return nil }
            self.init(name: String(parts[1]), task: TaskID(task), owner: owner)
        }

        var text: String { "source-\(name)-\(task)-\(owner)" }
    }

    /// Returns a new random name.
    static func makeName() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }

    var isEmpty: Bool { entries.withLock { $0.isEmpty } }

    /// Keeps `file` for a task that is about to be stored.
    func insert(_ file: PassedFile, named name: String, owner: UInt32) {
        entries.withLock { $0[name] = Entry(file: file, owner: owner) }
    }

    /// Assigns the file to `task`. Where there is a descriptor keeper, the file then also survives the end of this
    /// process.
    func settle(_ name: String, for task: TaskID) {
        let entry: Entry? = entries.withLock { entries in
            entries[name]?.task = task
            return entries[name]
        }
        guard let entry else { return }
        let label = Label(name: name, task: task, owner: entry.owner)
        entry.file.withDescriptor { keeper.store($0, as: label.text) }
    }

    /// Returns the file with this name; `nil` where it was closed, possibly by an earlier daemon process.
    func file(named name: String) -> PassedFile? { entries.withLock { $0[name]?.file } }

    func remove(_ name: String) {
        let entry = entries.withLock { $0.removeValue(forKey: name) }
        guard let entry, let task = entry.task else { return }
        keeper.release(Label(name: name, task: task, owner: entry.owner).text)
    }

    /// Closes the files of tasks that completed, were cancelled or were removed. The file of a failed task is kept for
    /// a retry.
    func removeEnded(in store: TaskStore, _ logger: Logger) {
        let settled = entries.withLock { entries in
            entries.compactMap { name, entry in entry.task.map { (name: name, task: $0) } }
        }
        guard !settled.isEmpty else { return }
        do throws(StoreError) {
            let alive = try store.unfinished(settled.map(\.task))
            for (name, task) in settled where !alive.contains(task) { remove(name) }
        } catch {
            // The files are closed by a later call.
            logger.debug("cannot look for uploads that ended", metadata: ["error": "\(error)"])
        }
    }
}

/// A service that keeps file descriptors open across a restart of this process, such as systemd's file descriptor
/// store.
package protocol DescriptorKeeper: Sendable {
    /// Returns the file descriptors that were kept when this process started, with their labels. The caller becomes
    /// their owner.
    func adoptInheritedDescriptors() -> [(label: String, descriptor: Int32)]
    /// Keeps a duplicate of `descriptor`.
    func store(_ descriptor: Int32, as label: String)
    /// Closes the duplicate.
    func release(_ label: String)
}

/// A keeper that keeps nothing: no file descriptor outlives the process.
struct NoDescriptorKeeper: DescriptorKeeper {
    func adoptInheritedDescriptors() -> [(label: String, descriptor: Int32)] { [] }
    func store(_ descriptor: Int32, as label: String) {}
    func release(_ label: String) {}
}
