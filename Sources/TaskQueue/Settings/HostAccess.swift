import HTTPTypes
package import TaskFiles
import TaskModel
import Transfer

/// The credential and the header lines that the requests of certain users to a host are sent with.
package struct HostAccess: Sendable {
    /// The scheme of the pattern; `nil` if it has none.
    package var scheme: String?
    package var credential: HostCredential?
    /// The header lines (`Name: value`).
    package var headers: [String]
    package var owners: HostOwners

    package init(
        scheme: String? = nil, credential: HostCredential? = nil, headers: [String] = [], owners: HostOwners
    ) {
        self.scheme = scheme
        self.credential = credential
        self.headers = headers
        self.owners = owners
    }

    /// Whether requests to an address may be sent with it. The pattern has to name an unencrypted protocol.
    private func covers(_ address: TaskAddress) -> Bool {
        scheme.map { $0 == address.scheme } ?? address.isEncrypted
    }

    /// Whether requests of `owner` to an address are sent with something that those of `other` are not.
    ///
    /// - Parameter entries: the entries for the address.
    static func prefers(
        _ owner: UInt32, to other: UInt32, among entries: [HostAccess], for address: TaskAddress
    ) -> Bool {
        entries.contains { $0.covers(address) && $0.owners.contains(owner) && !$0.owners.contains(other) }
    }

    /// Whether requests of `owner` to some address are sent with something of an entry that those of `other` are not.
    static func prefers(_ owner: UInt32, to other: UInt32, by entry: HostAccess) -> Bool {
        entry.owners.contains(owner) && !entry.owners.contains(other)
    }

    /// Returns what a user's requests to the hosts of the entry are sent with, wherever they are led there.
    ///
    /// - Parameter isReadByOthers: whether someone whom the user chose reads what is not encrypted.
    /// - Returns: `nil` if the user has nothing there.
    func login(of owner: UInt32, isReadByOthers: Bool) -> ServerLogin? {
        let scheme = scheme ?? "https"
        guard scheme == "https" || scheme == "http" && !isReadByOthers, owners.contains(owner) else { return nil }
        var login = ServerLogin(schemes: [scheme], headerFields: HTTPFields(headers.compactMap(Self.field)))
        (login.credential, login.identity) = credential?.forEngine ?? (nil, nil)
        // A key is for file servers, to which no redirect leads.
        if case .sshKey = credential { login.credential = nil }
        return login
    }

    /// Returns the field of a header line; `nil` for one that cannot be sent.
    static func field(_ line: String) -> HTTPField? {
        guard let (name, value) = TaskSpecification.splitHeader(line), let name = HTTPField.Name(name) else {
            return nil
        }
        return HTTPField(name: name, value: value)
    }

    /// Returns what a user's requests to an address are sent with.
    ///
    /// - Parameter entries: the entries for the address, the most specific first. The credential and the headers come
    ///   from the first that has them for the user.
    static func choose(
        from entries: [HostAccess], for address: TaskAddress, owner: UInt32
    ) -> (credential: HostCredential?, headers: [String]) {
        let own = entries.filter { $0.covers(address) && $0.owners.contains(owner) }
        return (own.lazy.compactMap(\.credential).first, own.first { !$0.headers.isEmpty }?.headers ?? [])
    }
}

extension HostCredential {
    /// The credential as the engine takes it.
    var forEngine: (credential: Credential?, identity: ClientIdentity?) {
        switch self {
        case .password(let user, let password): (Credential(user: user, password: password), nil)
        case .bearer(let token): (.bearer(token), nil)
        case .certificate(let certificate, let key, let passphrase):
            (nil, ClientIdentity(certificate: certificate, key: key, passphrase: passphrase))
        case .sshKey(let user, let key, let passphrase):
            (.privateKey(user: user, text: key, passphrase: passphrase ?? ""), nil)
        }
    }
}

/// A set of users.
package struct HostOwners: Sendable {
    private let includesEveryone: Bool
    private let users: Set<UInt32>
    private let groups: [@Sendable (_ uid: UInt32) -> Bool]

    /// - Parameters:
    ///   - groups: for each group, returns whether a user is a member. It is called at each attempt of a task and may
    ///     wait for a lookup.
    package init(
        includesEveryone: Bool = false, users: Set<UInt32> = [],
        groups: [@Sendable (_ uid: UInt32) -> Bool] = []
    ) {
        self.includesEveryone = includesEveryone
        self.users = users
        self.groups = groups
    }

    /// Returns whether a user belongs to the set.
    func contains(_ uid: UInt32) -> Bool {
        includesEveryone || users.contains(uid) || groups.contains { $0(uid) }
    }
}
