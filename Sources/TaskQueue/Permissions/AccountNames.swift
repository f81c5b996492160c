import Glibc
import Synchronization
import TaskModel

/// A look-up of system accounts (getpwuid(3)). Each name is looked up once per process, since the lookup may query
/// another machine.
package enum AccountNames {
    /// The maximum number of cached names.
    private static let limit = 4_096
    private static let known = Mutex<[UInt32: String?]>([:])

    /// Returns the name of an account.
    ///
    /// - Returns: `nil` where the system has no account with this uid.
    static func name(of uid: UInt32) -> String? {
        if let name = known.withLock({ $0[uid] }) { return name }
        let name = account(of: uid)?.name
        known.withLock { known in
            if known.count >= limit { known.removeAll() }
            known[uid] = .some(name)
        }
        return name
    }

    /// Returns the name of the directory for a user's downloads: the account name where it is a valid directory name,
    /// otherwise the uid.
    static func directoryName(of uid: UInt32) -> String {
        guard let name = name(of: uid), name.utf8.first != UInt8(ascii: "."), name.utf8.first != UInt8(ascii: "~"),
            (try? FileName.check(name)) != nil
        else { return "\(uid)" }
        return name
    }

    /// Whether a name can be that of a user's directory: an account name or a uid.
    static func isDirectoryName(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...256).contains(bytes.count) else { return false }
        if bytes.allSatisfy({ (0x30...0x39).contains($0) }) { return UInt32(name) != nil }
        // Names with spaces or control characters are not looked up, since the lookup may query another machine.
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

    /// Returns the uid of an account with this name or number; `nil` if there is no such account.
    package static func uid(_ text: String) -> UInt32? {
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return UInt32(text) }
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwnam_r(text, &account, &space, space.count, &found) == 0 else { return nil }
        return found?.pointee.pw_uid
    }

    private static let accounts = Mutex<[String: Bool]>([:])

    private static func exists(_ name: String) -> Bool {
        var account = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var space = [CChar](repeating: 0, count: 16 * 1024)
        return getpwnam_r(name, &account, &space, space.count, &found) == 0 && found != nil
    }

    /// Returns the groups of the account, its primary group first (getgrouplist(3)).
    package static func groups(of uid: UInt32) -> [UInt32] {
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

    /// Returns the account's home directory. `HOME` is not used, because the caller controls it.
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
