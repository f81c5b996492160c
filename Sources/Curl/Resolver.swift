import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// Looks names up on threads of its own, so that a name server that hangs holds up nobody else.
package final class Resolver: Sendable {
    package enum Failure: Error, Sendable, Equatable {
        /// The name does not exist, or has no address.
        case unknownName
        /// No resolver could be asked (`EAI_AGAIN`): nothing is known of the name.
        case unavailable
        case other(String)
    }

    /// Numeric addresses, best first, as `getaddrinfo` orders them (RFC 6724).
    package typealias Answer = Result<[String], Failure>
    package typealias Lookup = @Sendable (_ host: String) -> Answer

    private struct Entry {
        var addresses: [String]
        var until: MonotonicTime
    }

    private struct State {
        var known: [String: Entry] = [:]
        var waiting: [String: [@Sendable (Answer) -> Void]] = [:]
    }

    /// How long an answer is used, in milliseconds: `getaddrinfo` tells no time to live.
    package static let lifetime: Int64 = 60_000
    private static let capacity = 1024

    private let threads = WorkerThreads(name: "dld-resolver", limit: 64)
    private let lookup: Lookup
    private let state = Mutex(State())

    package init(lookup: @escaping Lookup = Resolver.system) {
        self.lookup = lookup
    }

    deinit { threads.stop() }

    /// - Returns: the answer where it is known already.
    package func cached(_ host: String) -> [String]? {
        if Self.isAddress(host) { return [host] }
        let now = MonotonicTime.now()
        return state.withLock { state in
            guard let entry = state.known[host], now < entry.until else { return nil }
            return entry.addresses
        }
    }

    /// Asks; `completion` runs on a thread of the resolver's. Questions for one name share one look-up.
    package func resolve(_ host: String, completion: @escaping @Sendable (Answer) -> Void) {
        let first = state.withLock { state in
            state.waiting[host, default: []].append(completion)
            return state.waiting[host]?.count == 1
        }
        guard first else { return }
        threads.perform { [self] in
            let answer = lookup(host)
            let waiting = state.withLock { state in
                if case .success(let addresses) = answer {
                    if state.known.count >= Self.capacity { state.known.removeAll() }
                    let until = MonotonicTime.now().advanced(milliseconds: Self.lifetime)
                    state.known[host] = Entry(addresses: addresses, until: until)
                }
                return state.waiting.removeValue(forKey: host) ?? []
            }
            for completion in waiting { completion(answer) }
        }
    }

    /// Forgets an answer, since nothing listens at it any more.
    package func forget(_ host: String) {
        state.withLock { _ = $0.known.removeValue(forKey: host) }
    }

    /// Whether `host` is an address already; IPv6 may stand in brackets.
    package static func isAddress(_ host: String) -> Bool {
        var space = in6_addr()
        if host.hasPrefix("[") { return true }
        return inet_pton(AF_INET, host, &space) == 1 || inet_pton(AF_INET6, host, &space) == 1
    }

    // EAI_NODATA and EAI_ADDRFAMILY: glibc's header hides them behind _GNU_SOURCE.
    private static let noData: Int32 = -5
    private static let addressFamily: Int32 = -9

    /// The system's own look-up.
    package static let system: Lookup = { host in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        var code = getaddrinfo(host, nil, &hints, &list)
        if code == EAI_NONAME || code == Resolver.addressFamily {
            // AI_ADDRCONFIG hides loopback names on a machine without a network.
            hints.ai_flags = 0
            code = getaddrinfo(host, nil, &hints, &list)
        }
        guard code == 0 else {
            switch code {
            case EAI_NONAME, Resolver.noData, Resolver.addressFamily: return .failure(.unknownName)
            case EAI_AGAIN: return .failure(.unavailable)
            default: return .failure(.other(String(cString: gai_strerror(code))))
            }
        }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let current = next, addresses.count < 16 {
            if let address = current.pointee.ai_addr {
                var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                let numeric = getnameinfo(
                    address, current.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
                if numeric == 0 {
                    let end = text.firstIndex(of: 0) ?? text.endIndex
                    let address = String(decoding: text[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self)
                    if !addresses.contains(address) { addresses.append(address) }
                }
            }
            next = current.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(.unknownName) : .success(addresses)
    }
}
