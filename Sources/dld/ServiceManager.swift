import CSystemd
import Dispatch
import Glibc
import Synchronization

/// The communication with systemd as the service manager (sd_notify(3), sd_listen_fds(3)). Without systemd it has no
/// effect.
enum ServiceManager {
    /// The file descriptors that systemd passed to this process.
    struct Inherited: Sendable {
        /// The sockets on which systemd listens for the daemon.
        var sockets: [Int32] = []
        /// The descriptors that ``DescriptorStore`` has stored.
        var kept: [(label: String, descriptor: Int32)] = []
    }

    static func inherited() -> Inherited {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        // With 1, the variables are removed from the environment and are not passed on to children.
        let count = sd_listen_fds_with_names(1, &names)
        var inherited = Inherited()
        guard count > 0 else { return inherited }
        for index in 0..<count {
            let descriptor = 3 + index  // SD_LISTEN_FDS_START
            let name = names?[Int(index)]
            let label = name.map { String(cString: $0) } ?? ""
            free(name)
            if label.hasPrefix(DescriptorStore.prefix) {
                inherited.kept.append((String(label.dropFirst(DescriptorStore.prefix.count)), descriptor))
            } else {
                inherited.sockets.append(descriptor)
            }
        }
        free(names)
        return inherited
    }

    /// Notifies systemd that the configuration is being reloaded (sd_notify(3), `RELOADING=1`).
    static func notifyReloading() {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails only for an unknown clock
        notify("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)")
    }

    /// Whether a service manager receives the notifications.
    static var isPresent: Bool { getenv("NOTIFY_SOCKET") != nil }

    /// The thread that sends notifications. A service manager that does not read holds up only this thread.
    private static let sender = DispatchQueue(label: "dld.notify")
    private static let waiting = Atomic<Int>(0)
    /// The most notifications that wait. Further ones are lost.
    private static let mostWaiting = 64

    /// Sends assignments to the service manager, in the order of the calls, and returns at once.
    static func notify(_ state: String) {
        guard isPresent else { return }
        guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= mostWaiting else {
            waiting.wrappingSubtract(1, ordering: .relaxed)
            return
        }
        sender.async {
            _ = sd_notify(0, state)  // the service manager may have gone
            waiting.wrappingSubtract(1, ordering: .relaxed)
        }
    }
}
