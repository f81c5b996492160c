import CSystemd
import Glibc
import Synchronization
import TaskQueue

/// A store that keeps descriptors with systemd while the service restarts, also after a crash
/// (`FileDescriptorStoreMax=`, systemd.service(5)). Without systemd they are closed with the process.
final class DescriptorStore: DescriptorKeeper {
    /// The prefix that distinguishes them from listening sockets.
    static let prefix = "dld-"

    private let kept: Mutex<[(label: String, descriptor: Int32)]>

    init(_ inherited: ServiceManager.Inherited) {
        kept = Mutex(inherited.kept)
    }

    func adoptInheritedDescriptors() -> [(label: String, descriptor: Int32)] {
        kept.withLock { kept in
            defer { kept = [] }
            return kept
        }
    }

    func store(_ descriptor: Int32, as label: String) {
        let state = "FDSTORE=1\nFDNAME=\(Self.prefix)\(label)"
        // A failure is ignored, since there may be no service manager.
        withUnsafePointer(to: descriptor) { _ = sd_pid_notify_with_fds(0, 0, state, $0, 1) }
    }

    func release(_ label: String) {
        ServiceManager.notify("FDSTOREREMOVE=1\nFDNAME=\(Self.prefix)\(label)")
    }
}
