import Glibc
import HTTPTypes
import TaskFiles
import TaskModel
import Transfer

/// The choice of the credential that a task presents to its server, and to others to which it is led.
struct TaskLogin {
    let settings: QueueSettings
    /// The uid of the task's owner.
    let owner: UInt32

    /// The logins that the configuration has for owners, each computed once for several tasks.
    struct Known {
        fileprivate struct Key: Hashable {
            var owner: UInt32
            var isReadByOthers: Bool
        }
        fileprivate var logins: [Key: HostTable<ServerLogin>] = [:]
    }

    /// Adds to a request what authenticates the task: its own login, or else what the configuration has for its host.
    ///
    /// - Parameters:
    ///   - request: the request to the task's own URL. What is added is kept within its origin. Other servers are sent
    ///     what the task's netrc file or the configuration names for them.
    ///   - specification: the task's options, including secrets.
    func apply(to request: inout TransferRequest, _ specification: TaskSpecification, _ known: inout Known) {
        request.awaitsChallenge = true
        var specification = specification
        if let text = specification.netrc, let netrc = try? Netrc(parsing: text) {
            request.logins.append(HostTable(netrc.machines.compactMapValues(Self.login)))
            complete(&specification, from: netrc, for: request)
        }
        if !settings.hostAccess.isEmpty, specification.caCertificates == nil, !specification.insecure {
            request.logins.append(logins(isReadByOthers: specification.proxy != nil, &known))
        }
        addOwn(to: &request, specification)
    }

    private static func login(_ login: Netrc.Login) -> ServerLogin? {
        guard let user = login.user else { return nil }
        return ServerLogin(
            schemes: ["http", "https"], credential: Credential(user: user, password: login.password ?? ""))
    }

    /// Takes the user and the password of the task's own server from the netrc file, as far as the task has none.
    private func complete(
        _ specification: inout TaskSpecification, from netrc: Netrc, for request: TransferRequest
    ) {
        guard let address = try? TaskAddress(parsing: request.url), request.origin == address.hostKey,
            !address.isHTTP || request.headerFields[.authorization] == nil,
            let login = netrc.login(forHost: address.host, port: address.port) ?? netrc.fallback,
            let user = login.user
        else { return }
        let (own, password) =
            specification.user.map { ($0, specification.password) }
            ?? (address.login?.user, address.login?.password)
        guard password == nil, own == nil || own == user else { return }
        (specification.user, specification.password) = (user, login.password)
    }

    private func logins(isReadByOthers: Bool, _ known: inout Known) -> HostTable<ServerLogin> {
        let key = Known.Key(owner: owner, isReadByOthers: isReadByOthers)
        if let logins = known.logins[key] { return logins }
        let logins = settings.hostAccess.compactMapValues { $0.login(of: owner, isReadByOthers: isReadByOthers) }
        known.logins[key] = logins
        return logins
    }

    private func addOwn(to request: inout TransferRequest, _ specification: TaskSpecification) {
        guard let (address, entries) = entries(for: request), Self.keepsSecret(specification, address) else {
            request.credential = credential(of: specification)
            return
        }
        let (credential, headers) = HostAccess.choose(from: entries, for: address, owner: owner)
        let hasOwnLogin = hasOwnLogin(specification, request, address, credential)
        if !hasOwnLogin, let credential, address.takes(credential) {
            (request.credential, request.identity) = credential.forEngine
        } else {
            request.credential = self.credential(of: specification)
        }
        guard address.isHTTP else { return }
        let own = request.headerFields
        for header in headers {
            guard let field = HostAccess.field(header), own[field.name] == nil,
                !(hasOwnLogin && field.name == .authorization)
            else { continue }
            request.headerFields.append(field)
        }
    }

    /// Whether nobody whom the task's owner chose can read what is sent. A proxy reads what is not encrypted, and a server
    /// that the owner's own certificates trust, or that is not verified, reads everything.
    private static func keepsSecret(_ specification: TaskSpecification, _ address: TaskAddress) -> Bool {
        specification.caCertificates == nil && !specification.insecure
            && (specification.proxy == nil || address.isEncrypted)
    }

    /// Returns the entries of the configuration for the server that the engine contacts.
    private func entries(for request: TransferRequest) -> (address: TaskAddress, entries: [HostAccess])? {
        guard !settings.hostAccess.isEmpty, let address = try? TaskAddress(parsing: request.url),
            // The engine parses the URL on its own. Its view counts, since it makes the connection.
            request.origin == address.hostKey
        else { return nil }
        let entries = settings.hostAccess.values(forHost: address.host, port: address.port)
        return entries.isEmpty ? nil : (address, entries)
    }

    /// Whether a task has a login of its own. The name of the credential's user alone is none.
    private func hasOwnLogin(
        _ specification: TaskSpecification, _ request: TransferRequest, _ address: TaskAddress,
        _ credential: HostCredential?
    ) -> Bool {
        if address.isHTTP, request.headerFields[.authorization] != nil { return true }
        guard let user = specification.user ?? address.login?.user else { return false }
        let password = specification.user == nil ? address.login?.password : specification.password
        return password != nil || user != credential?.user
    }

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
        // Most URLs begin with "http" and need no closer look.
        guard (specification.url.utf8.first ?? 0) | 0x20 != UInt8(ascii: "h"),
            owner == settings.daemonUser || owner == 0,
            specification.password == nil,
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

extension TaskAddress {
    /// Whether the protocol of the URL has a use for a credential.
    fileprivate func takes(_ credential: HostCredential) -> Bool {
        switch credential {
        case .password: true
        case .bearer: isHTTP
        case .certificate: scheme == "https" || scheme == "ftps"
        case .sshKey: scheme == "sftp"
        }
    }
}
