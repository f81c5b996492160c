import CSystemd
import Glibc

/// What systemd and a service it started tell each other (sd_notify(3), sd_listen_fds(3)); nothing where it did not.
enum ServiceManager {
    /// What systemd passed to this process.
    struct Inherited: Sendable {
        /// Sockets that it listens on for us.
        var sockets: [Int32] = []
        /// What ``DescriptorStore`` had it keep.
        var kept: [(label: String, descriptor: Int32)] = []
    }

    static func inherited() -> Inherited {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        // 1: the variables are not handed on to children.
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

    /// The configuration is being read again (sd_notify(3), `RELOADING=1`).
    static func notifyReloading() {
        var time = timespec()
        _ = clock_gettime(CLOCK_MONOTONIC, &time)  // fails for an unknown clock alone
        notify("RELOADING=1\nMONOTONIC_USEC=\(time.tv_sec * 1_000_000 + time.tv_nsec / 1_000)")
    }

    /// The status of a daemon that runs.
    ///
    /// - Parameter problems: what needs an administrator, a line for each.
    static func status(_ problems: [String]) -> String {
        guard let first = problems.first else { return "Ready" }
        let others = problems.count > 1 ? " (and \(problems.count - 1) more)" : ""
        return "Ready, but \(LogText.printable(first))\(others)"
    }

    static func notify(_ state: String) {
        _ = sd_notify(0, state)  // there need be no manager who listens
    }
}
