import Synchronization

/// An in-memory store of credentials. It belongs to one session unless it is passed to several.
public final class CredentialStorage: Sendable {
    /// The maximum number of credentials. Beyond it, the credential set earliest is removed.
    public static let capacity = 1024

    private struct Key: Hashable {
        var scheme: String
        var host: String
        var port: Int
        var isProxy: Bool
        var realm: String?

        init(_ space: ProtectionSpace, realm: String?) {
            scheme = space.scheme
            host = space.host.lowercased()
            port = space.port
            isProxy = space.isProxy
            self.realm = realm
        }
    }

    private struct State {
        var credentials: [Key: Credential] = [:]
        var order: [Key] = []
    }

    private let state = Mutex(State())

    /// Creates an empty storage.
    public init() {}

    /// Stores or removes the credential of a protection space.
    ///
    /// - Parameters:
    ///   - credential: The credential; `nil` removes the stored one.
    ///   - space: The protection space. Without a realm, the credential is valid for every realm of the server.
    public func set(_ credential: Credential?, for space: ProtectionSpace) {
        let key = Key(space, realm: space.realm)
        state.withLock { state in
            state.order.removeAll { $0 == key }
            state.credentials[key] = credential
            guard credential != nil else { return }
            state.order.append(key)
            if state.order.count > Self.capacity { state.credentials[state.order.removeFirst()] = nil }
        }
    }

    /// Returns the credential of the space's realm, otherwise the one stored for its whole server.
    public func credential(for space: ProtectionSpace) -> Credential? {
        state.withLock { state in
            state.credentials[Key(space, realm: space.realm)] ?? state.credentials[Key(space, realm: nil)]
        }
    }
}
