import Glibc
import Synchronization
import TaskModel

/// Names of the system's accounts (getpwuid(3)), each looked up once in the daemon's life: the answer may come from
/// another machine.
enum AccountNames {
    /// Names that are remembered.
    private static let limit = 4_096
    private static let known = Mutex<[UInt32: String?]>([:])

    /// - Returns: `nil` where the system has no account of this number.
    static func name(of uid: UInt32) -> String? {
        if let name = known.withLock({ $0[uid] }) { return name }
        let name = look(up: uid)
        known.withLock { known in
            if known.count >= limit { known.removeAll() }
            known[uid] = .some(name)
        }
        return name
    }

    /// The name of the directory that holds a user's downloads: the account's where it can be a directory's, otherwise
    /// the number.
    static func directoryName(of uid: UInt32) -> String {
        guard let name = name(of: uid), name.utf8.first != UInt8(ascii: "."), name.utf8.first != UInt8(ascii: "~"),
            (try? FileName.check(name)) != nil
        else { return "\(uid)" }
        return name
    }

    /// The groups that the account is in, its primary one first (getgrouplist(3)).
    static func groups(of uid: UInt32) -> [UInt32] {
        guard let account = account(of: uid) else { return [] }
        var count: Int32 = 64
        while count <= 65_536 {
            var groups = [gid_t](repeating: 0, count: Int(count))
            let space = count
            if getgrouplist(account.name, account.gid, &groups, &count) >= 0 {
                return Array(groups.prefix(Int(max(0, count))))
            }
            count = max(count, space * 2)
        }
        return [account.gid]
    }

    private static func look(up uid: UInt32) -> String? { account(of: uid)?.name }

    private static func account(of uid: UInt32) -> (name: String, gid: gid_t)? {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(uid, &account, &space, space.count, &found) == 0, let entry = found?.pointee,
            let name = entry.pw_name
        else { return nil }
        return (String(cString: name), entry.pw_gid)
    }
}
