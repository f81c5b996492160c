import Glibc
import TaskModel
import Transfer

/// The choice of the credential that a task presents to its server.
struct TaskLogin {
    let settings: QueueSettings
    /// The uid of the task's owner.
    let owner: UInt32

    /// Returns the credential of a task.
    ///
    /// - Parameter specification: the task's options, including secrets.
    /// - Returns: `nil` where the URL contains the credential, or none is known.
    func credential(of specification: TaskSpecification) -> Credential? {
        key(for: specification)
            ?? specification.user.map { Credential(user: $0, password: specification.password ?? "") }
    }

    /// Returns the daemon user's SSH key for an SFTP server, as ssh(1) would use it, where the task has no password.
    /// Only tasks of the daemon's own user and root may use it.
    private func key(for specification: TaskSpecification) -> Credential? {
        guard owner == settings.daemonUser || owner == 0, specification.password == nil,
            let address = try? TaskAddress(parsing: specification.url), address.scheme == "sftp",
            let user = specification.user ?? address.login?.user,
            specification.user != nil || address.login?.password == nil,
            let path = settings.sshKeys.first(where: { access($0, R_OK) == 0 })
        else { return nil }
        return .privateKey(user: user, path: path)
    }

    /// Returns the daemon user's keys in the order in which ssh(1) tries them. RSA keys are left out, since with
    /// libssh2 1.10 they do not work with most servers.
    static func keys(beneath home: String?) -> [String] {
        guard let home else { return [] }
        return ["id_ecdsa", "id_ed25519"].map { "\(home)/.ssh/\($0)" }
    }
}
