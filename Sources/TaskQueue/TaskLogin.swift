import Glibc
import TaskModel
import Transfer

/// What proves to a server who asks.
struct TaskLogin {
    let settings: QueueSettings
    /// The task's.
    let owner: UInt32

    /// - Parameter specification: with its secrets.
    /// - Returns: `nil` where the URL says all, or nothing is known.
    func credential(of specification: TaskSpecification) -> Credential? {
        key(for: specification)
            ?? specification.user.map { Credential(user: $0, password: specification.password ?? "") }
    }

    /// To an SFTP server, without a password: the key by which ssh(1) lets the daemon's user in. It is nobody else's to
    /// use.
    private func key(for specification: TaskSpecification) -> Credential? {
        guard owner == settings.daemonUser || owner == 0, specification.password == nil,
            let address = try? TaskAddress(parsing: specification.url), address.scheme == "sftp",
            let user = specification.user ?? address.login?.user,
            specification.user != nil || address.login?.password == nil,
            let path = settings.sshKeys.first(where: { access($0, R_OK) == 0 })
        else { return nil }
        return .privateKey(user: user, path: path)
    }

    /// The keys of the user as whom the daemon runs, in the order in which ssh(1) tries them; RSA's are of no use to
    /// libssh2 1.10 with most servers.
    static func keys(beneath home: String?) -> [String] {
        guard let home else { return [] }
        return ["id_ecdsa", "id_ed25519"].map { "\(home)/.ssh/\($0)" }
    }
}
