import Glibc
import Synchronization
import TaskModel

/// The system's accounts (getpwuid(3)). Names are looked up once in the daemon's life: the answer may come from another
/// machine.
enum AccountNames {
    /// Names that are remembered.
    private static let limit = 4_096
    private static let known = Mutex<[UInt32: String?]>([:])

    /// - Returns: `nil` where the system has no account of this number.
    static func name(of uid: UInt32) -> String? {
        if let name = known.withLock({ $0[uid] }) { return name }
        let name = account(of: uid)?.name
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

    /// Whether a name is one that a user's directory has: an account's, or a number.
    static func isDirectoryName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...256).contains(bytes.count) else { return false }
        if bytes.allSatisfy({ (0x30...0x39).contains($0) }) { return UInt32(name) != nil }
        // Few files have such a name, and the answer may come from another machine.
        guard !bytes.contains(UInt8(ascii: " ")), !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            return false
        }
        if let isKnown = accounts.withLock({ $0[name] }) { return isKnown }
        let isAccount = exists(name)
        accounts.withLock { accounts in
            if accounts.count >= limit { accounts.removeAll() }
            accounts[name] = isAccount
        }
        return isAccount
    }

    private static let accounts = Mutex<[String: Bool]>([:])

    private static func exists(_ name: String) -> Bool {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        return getpwnam_r(name, &account, &space, space.count, &found) == 0 && found != nil
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

    /// The account's home directory; `HOME` is the caller's to say.
    static func home(of uid: UInt32) -> String? { account(of: uid)?.home }

    private static func account(of uid: UInt32) -> (name: String, gid: gid_t, home: String?)? {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(uid, &account, &space, space.count, &found) == 0, let entry = found?.pointee,
            let name = entry.pw_name
        else { return nil }
        return (String(cString: name), entry.pw_gid, entry.pw_dir.map { String(cString: $0) })
    }
}
