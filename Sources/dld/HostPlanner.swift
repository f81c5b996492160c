import ControlServer
import Glibc
import TaskFiles
import TaskModel
import TaskQueue
import Transfer

/// The preparation of what the configuration says of single hosts: it reads the credentials and looks up the owners.
struct HostPlanner {
    let configuration: Configuration
    let environment: ProcessEnvironment
    let administrators: AdministratorGroup?
    /// Whether credentials are read. Without, none is used.
    let readsCredentials: Bool

    /// Returns what requests are sent with, by host.
    ///
    /// - Throws: the error at a credential that cannot be read, or at an owner that the system does not know.
    func access() throws(FileError) -> [String: HostAccess] {
        var known: [String: HostCredential] = [:]
        var table: [String: HostAccess] = [:]
        // In a fixed order, so that the same error is reported each time.
        for (pattern, host) in configuration.hosts.sorted(by: { $0.key < $1.key }) where !host.access.isEmpty {
            var credential: HostCredential?
            if readsCredentials, let name = host.access.credential {
                if known[name] == nil { known[name] = try read(name, pattern) }
                credential = known[name]
            }
            table[pattern] = HostAccess(
                scheme: host.access.scheme, credential: credential, headers: host.access.headers,
                owners: try owners(host.access.owners, pattern))
        }
        return table
    }

    private func read(_ name: String, _ pattern: String) throws(FileError) -> HostCredential {
        do throws(CredentialReader.Failure) {
            return try CredentialReader(environment: environment).read(name)
        } catch {
            throw configuration.positions.error(
                at: Configuration.position(of: "credential", ofHost: pattern), "\"credential\": \(error.reason)")
        }
    }

    private func owners(_ named: [Configuration.HostOwner]?, _ pattern: String) throws(FileError) -> HostOwners {
        guard let named else { return fallback }
        var includesEveryone = false
        var users: Set<UInt32> = []
        var groups: Set<UInt32> = []
        for (index, owner) in named.enumerated() {
            func unknown(_ text: String) -> FileError {
                configuration.positions.error(
                    at: Configuration.position(of: "owners", ofHost: pattern, at: index), "\"owners\": \(text)")
            }
            switch owner {
            case .everyone: includesEveryone = true
            case .user(let name):
                guard let uid = AccountNames.uid(name) else {
                    throw unknown("there is no user \(name) on this system")
                }
                users.insert(uid)
            case .group(let name):
                guard let gid = AccessRule.group(name) else {
                    throw unknown("there is no group \(name) on this system")
                }
                groups.insert(gid)
            }
        }
        // One lookup of a user serves all groups of the entry.
        let membership = groups.first.map { [groups] first in
            AdministratorGroup(gid: first, lookUp: { !groups.isDisjoint(with: AccountNames.groups(of: $0)) })
        }
        return HostOwners(
            includesEveryone: includesEveryone, users: users,
            groups: membership.map { [Self.membership(of: $0)] } ?? [])
    }

    /// The owners where an entry names none: administrators, or the user of a user's own daemon.
    private var fallback: HostOwners {
        guard environment.isSystem else { return HostOwners(users: [environment.uid]) }
        return HostOwners(users: [0], groups: administrators.map { [Self.membership(of: $0)] } ?? [])
    }

    private static func membership(of group: AdministratorGroup) -> @Sendable (UInt32) -> Bool {
        { uid in group.contains(Peer(uid: uid, gid: .max, pid: 0)) }
    }

    /// Returns the criteria by which servers are trusted, by host.
    ///
    /// - Throws: the error at a pin that is none, or at a file without a readable certificate.
    func trust() throws(FileError) -> [String: HostTrust] {
        var table: [String: HostTrust] = [:]
        for (pattern, host) in configuration.hosts.sorted(by: { $0.key < $1.key }) {
            guard let trust = host.trust else { continue }
            var pins: [PublicKeyPin] = []
            for (index, text) in trust.pins.enumerated() {
                guard text.hasPrefix("sha256//"), let pin = PublicKeyPin(text) else {
                    throw configuration.positions.error(
                        at: Configuration.position(of: "pin", ofHost: pattern, at: index),
                        "\"pin\" must be sha256// and 44 characters in base64, the SHA-256 digest of a public key")
                }
                pins.append(pin)
            }
            if let text = trust.certificates, PublicKeyPin(certificate: text) == nil {
                throw configuration.positions.error(
                    at: Configuration.position(of: "ca-file", ofHost: pattern),
                    "\"ca-file\" names a file whose first certificate is not readable")
            }
            table[pattern] = HostTrust(caCertificates: trust.certificates, pins: pins)
        }
        return table
    }
}
