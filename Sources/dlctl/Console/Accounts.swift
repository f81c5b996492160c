import Glibc
import Synchronization

/// The system's accounts (getpwuid(3)), by which users are shown and named.
enum Accounts {
    /// The maximum size of an account's record; larger ones count as unknown.
    private static let recordLimit = 1 << 20
    private static let names = Mutex<[UInt32: String]>([:])
    private static let nameLimit = 4_096

    enum Lookup: Equatable {
        case uid(UInt32)
        case unknown
        /// The lookup failed with this `errno`, for example because a directory server does not answer.
        case failed(Int32)
    }

    /// Returns the name of a user, or the uid in digits if the user has no account.
    static func name(_ uid: UInt32) -> String {
        if let name = names.withLock({ $0[uid] }) { return name }
        let found = look { return getpwuid_r(uid, $0, $1, $2, $3) }
        let name = Escape.visible(found.name ?? "\(uid)")
        names.withLock { names in
            if names.count >= nameLimit { names.removeAll() }
            names[uid] = name
        }
        return name
    }

    /// Returns the user as `NAME (uid N)`, or `uid N` without an account.
    static func shown(_ uid: UInt32) -> String {
        let name = name(uid)
        return name == "\(uid)" ? "uid \(uid)" : "\(name) (uid \(uid))"
    }

    /// Returns the uid for an account's name.
    static func uid(named name: String) -> Lookup {
        let found = look { return getpwnam_r(name, $0, $1, $2, $3) }
        if let uid = found.uid { return .uid(uid) }
        switch found.code {
        // getpwnam(3) lists the values that mean that there is no such account.
        case 0, ENOENT, ESRCH, EBADF, EPERM: return .unknown
        default: return .failed(found.code)
        }
    }

    private static func look(
        _ call: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32
    ) -> (uid: UInt32?, name: String?, code: Int32) {
        var size = 16 << 10
        while true {
            var account = passwd()
            var found: UnsafeMutablePointer<passwd>?
            var space = [CChar](repeating: 0, count: size)
            let result = space.withUnsafeMutableBufferPointer { space -> (UInt32?, String?, Int32) in
                guard let base = space.baseAddress else { return (nil, nil, ENOMEM) }
                let code = call(&account, base, space.count, &found)
                guard code == 0, let entry = found?.pointee else { return (nil, nil, code) }
                return (entry.pw_uid, entry.pw_name.map { String(cString: $0) }, 0)
            }
            guard result.2 == ERANGE, size < recordLimit else { return result }
            size *= 2
        }
    }
}
