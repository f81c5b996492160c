import Glibc
import Synchronization
import Transfer

/// Limits on the files that users have the daemon keep open for their uploads: for each user and in all.
package final class DescriptorShares: Sendable {
    /// Files of one user.
    package static let perUser = 256
    /// Files in all: the rest of the process's descriptors is for connections and transfers.
    private let total: Int
    private let used = Mutex<[UInt32: Int]>([:])

    /// - Parameter total: files in all; `nil`: a quarter of what the process may open.
    package init(total: Int? = nil) {
        self.total = total ?? Self.quarterOfLimit()
    }

    private static func quarterOfLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return perUser }
        return Int(min(limit.rlim_cur, 16_384)) / 4
    }

    /// Room for files that are about to be passed. What is not taken of it is given back with the last reference.
    package final class Reservation: Sendable {
        package let count: Int
        package let user: UInt32
        private let shares: DescriptorShares
        private let left: Mutex<Int>

        fileprivate init(_ count: Int, _ user: UInt32, _ shares: DescriptorShares) {
            self.count = count
            self.user = user
            self.shares = shares
            left = Mutex(count)
        }

        deinit { shares.giveBack(left.withLock { $0 }, user) }

        /// Whether the user may keep the daemon waiting: root, and the daemon's own.
        package var isTrusted: Bool { user == 0 || user == geteuid() }

        /// - Parameter descriptors: they belong to the files from now on. More than ``count`` are counted too.
        package func take(_ descriptors: [Int32]) -> [PassedFile] {
            let excess = left.withLock { left -> Int in
                defer { left = max(0, left - descriptors.count) }
                return max(0, descriptors.count - left)
            }
            if excess > 0 { shares.used.withLock { $0[user, default: 0] += excess } }
            return descriptors.map { PassedFile(taking: $0) { [shares, user] in shares.giveBack(1, user) } }
        }
    }

    /// - Returns: `nil` where `user`, or all together, would have too many.
    package func reserve(_ count: Int, for user: UInt32) -> Reservation? {
        let isGranted = used.withLock { used in
            let own = used[user] ?? 0
            guard count <= Self.perUser - own, count <= total - used.values.reduce(0, +) else { return false }
            used[user] = own + count
            return true
        }
        return isGranted ? Reservation(count, user, self) : nil
    }

    /// Counts a file that is open already, whatever the limits say.
    func keep(_ descriptor: Int32, of user: UInt32) -> PassedFile {
        used.withLock { $0[user, default: 0] += 1 }
        return PassedFile(taking: descriptor) { [self] in giveBack(1, user) }
    }

    private func giveBack(_ count: Int, _ user: UInt32) {
        used.withLock { used in
            let left = (used[user] ?? 0) - count
            used[user] = left > 0 ? left : nil
        }
    }
}
