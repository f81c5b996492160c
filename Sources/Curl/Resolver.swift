import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// Looks names up on threads of its own, so that a name server that hangs holds up nobody else. Whose name is next,
/// ``LookupQueue`` says.
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

    package enum Urgency: Sendable {
        case wanted
        /// Others would do as well.
        case spare
    }

    /// For whom a name is looked up.
    package struct Asker: Sendable {
        /// Those of one party share its threads.
        var party: String?
        var task: Int
        var urgency: Urgency

        package init(party: String? = nil, task: Int, urgency: Urgency = .wanted) {
            (self.party, self.task, self.urgency) = (party, task, urgency)
        }
    }

    /// A question under way: withdrawn when it is let go of, and not answered then.
    package final class Question: Sendable {
        private let resolver: Resolver
        private let number: Int

        fileprivate init(_ number: Int, of resolver: Resolver) {
            (self.number, self.resolver) = (number, resolver)
        }

        deinit { resolver.withdraw(number) }
    }

    private struct Entry {
        var addresses: [String]
        var until: MonotonicTime
    }

    private struct State {
        var known: [String: Entry] = [:]
        var queue: LookupQueue
        /// By the numbers of their questions.
        var completions: [Int: @Sendable (Answer) -> Void] = [:]
        var questions = 0
    }

    /// How long an answer is used, in milliseconds: `getaddrinfo` tells no time to live.
    package static let lifetime: Int64 = 60_000
    private static let capacity = 1024

    private let threads: WorkerThreads
    private let lookup: Lookup
    private let state: Mutex<State>

    /// - Parameter threads: names that are looked up at once at most.
    package init(threads: Int = 64, lookup: @escaping Lookup = Resolver.system) {
        self.threads = WorkerThreads(name: "dld-resolver", limit: threads)
        self.lookup = lookup
        state = Mutex(State(queue: LookupQueue(threads: threads)))
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
    ///
    /// - Returns: to be held until the answer is there.
    package func resolve(
        _ host: String, for asker: Asker, completion: @escaping @Sendable (Answer) -> Void
    ) -> Question {
        let number = state.withLock { state in
            state.questions += 1
            state.completions[state.questions] = completion
            state.queue.add(state.questions, host: host, for: asker)
            return state.questions
        }
        begin(next())
        return Question(number, of: self)
    }

    /// Names that may be looked up now.
    private func next() -> [String] {
        state.withLock { state in
            var hosts: [String] = []
            while let host = state.queue.next() { hosts.append(host) }
            return hosts
        }
    }

    private func begin(_ hosts: some Sequence<String>) {
        for host in hosts {
            threads.perform { [self] in
                var mine: String? = host
                while let host = mine {
                    lookUp(host)
                    let hosts = next()
                    mine = hosts.first
                    begin(hosts.dropFirst())
                }
            }
        }
    }

    private func lookUp(_ host: String) {
        let answer = lookup(host)
        let completions = state.withLock { state in
            if case .success(let addresses) = answer {
                if state.known.count >= Self.capacity { state.known.removeAll() }
                let until = MonotonicTime.now().advanced(milliseconds: Self.lifetime)
                state.known[host] = Entry(addresses: addresses, until: until)
            }
            return state.queue.finish(host).compactMap { state.completions.removeValue(forKey: $0) }
        }
        for completion in completions { completion(answer) }
    }

    private func withdraw(_ number: Int) {
        // Let go of outside the lock, with what it holds.
        _ = state.withLock { state in
            state.queue.withdraw(number)
            return state.completions.removeValue(forKey: number)
        }
    }

    /// Questions that nobody has answered or withdrawn.
    package var openQuestions: Int { state.withLock { $0.queue.count } }

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
