import Synchronization

/// Credentials for whoever asks for them: in memory, for one session unless it is given to more.
public final class CredentialStorage: Sendable {
    /// Credentials that are kept at most; the oldest goes first.
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

    /// An empty one.
    public init() {}

    /// - Parameters:
    ///   - credential: `nil` removes what there is.
    ///   - space: without a realm, for every realm of its server.
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

    /// That of the realm, otherwise that of its server.
    public func credential(for space: ProtectionSpace) -> Credential? {
        state.withLock { state in
            state.credentials[Key(space, realm: space.realm)] ?? state.credentials[Key(space, realm: nil)]
        }
    }
}
