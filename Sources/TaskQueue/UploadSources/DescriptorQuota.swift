import Glibc
import Synchronization
package import Transfer

/// Limits on the number of files that the daemon keeps open for users' uploads, per user and in total.
package final class DescriptorQuota: Sendable {
    /// The maximum number of files per user.
    package static let perUser = 256
    /// The maximum number of files in total. The process needs its remaining file descriptors for connections and
    /// transfers.
    private let total: Int
    private let used = Mutex<[UInt32: Int]>([:])

    /// Creates the limits.
    ///
    /// - Parameter total: the maximum number of files in total; `nil` for a quarter of the process's limit on open
    ///   files.
    package init(total: Int? = nil) {
        self.total = total ?? Self.quarterOfLimit()
    }

    private static func quarterOfLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return perUser }
        return Int(min(limit.rlim_cur, 16_384)) / 4
    }

    /// A reservation for files that are about to be passed. The unused part is released with the last reference.
    package final class Reservation: Sendable {
        package let count: Int
        package let user: UInt32
        private let quota: DescriptorQuota
        private let left: Mutex<Int>

        fileprivate init(_ count: Int, _ user: UInt32, _ quota: DescriptorQuota) {
            self.count = count
            self.user = user
            self.quota = quota
            left = Mutex(count)
        }

        deinit { quota.release(left.withLock { $0 }, user) }

        /// Whether the user may block the daemon: root and the daemon's own user.
        package var isTrusted: Bool { user == 0 || user == geteuid() }

        /// Takes ownership of received file descriptors.
        ///
        /// - Parameter descriptors: the file descriptors. Any in excess of ``count`` are counted as well.
        package func adopt(_ descriptors: [Int32]) -> [PassedFile] {
            let excess = left.withLock { left -> Int in
                defer { left = max(0, left - descriptors.count) }
                return max(0, descriptors.count - left)
            }
            if excess > 0 { quota.used.withLock { $0[user, default: 0] += excess } }
            return descriptors.map { PassedFile(taking: $0) { [quota, user] in quota.release(1, user) } }
        }
    }

    /// Reserves room for a number of files.
    ///
    /// - Returns: `nil` where the user's limit or the total limit would be exceeded.
    package func reserve(_ count: Int, for user: UInt32) -> Reservation? {
        let isGranted = used.withLock { used in
            let own = used[user] ?? 0
            guard count <= Self.perUser - own, count <= total - used.values.reduce(0, +) else { return false }
            used[user] = own + count
            return true
        }
        return isGranted ? Reservation(count, user, self) : nil
    }

    /// Counts a file that is already open, regardless of the limits.
    func keep(_ descriptor: Int32, of user: UInt32) -> PassedFile {
        used.withLock { $0[user, default: 0] += 1 }
        return PassedFile(taking: descriptor) { [self] in release(1, user) }
    }

    private func release(_ count: Int, _ user: UInt32) {
        used.withLock { used in
            let left = (used[user] ?? 0) - count
            used[user] = left > 0 ? left : nil
        }
    }
}
