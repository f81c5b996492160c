import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A resolver that looks names up on its own threads, so that a hanging name server delays nothing else.
/// ``LookupQueue`` decides which name is next.
package final class Resolver: Sendable {
    package enum Failure: Error, Sendable, Equatable {
        /// The name does not exist, or has no address.
        case unknownName
        /// The name servers could not be reached (`EAI_AGAIN`), so nothing is known of the name.
        case unavailable
        case other(String)
    }

    /// Numeric addresses in order of preference, as `getaddrinfo` sorts them (RFC 6724).
    package typealias Answer = Result<[String], Failure>
    package typealias Lookup = @Sendable (_ host: String) -> Answer

    package enum Urgency: Sendable {
        case wanted
        /// A name that other names could replace.
        case spare
    }

    /// The task, and its party, for which a name is looked up.
    package struct Asker: Sendable {
        /// The group whose tasks share the threads granted to it.
        var party: String?
        var task: Int
        var urgency: Urgency

        package init(party: String? = nil, task: Int, urgency: Urgency = .wanted) {
            (self.party, self.task, self.urgency) = (party, task, urgency)
        }
    }

    /// A pending question. It is withdrawn, and not answered, when its last reference is released.
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
        /// The completion handlers, by the numbers of their questions.
        var completions: [Int: @Sendable (Answer) -> Void] = [:]
        var questions = 0
    }

    /// The time for which an answer is used, in milliseconds; `getaddrinfo` reports no time to live.
    package static let lifetime: Int64 = 60_000
    private static let capacity = 1024

    private let threads: WorkerThreads
    private let lookup: Lookup
    private let state: Mutex<State>

    /// - Parameter threads: the most names looked up at once.
    package init(threads: Int = 64, lookup: @escaping Lookup = Resolver.system) {
        self.threads = WorkerThreads(name: "dld-resolver", limit: threads)
        self.lookup = lookup
        state = Mutex(State(queue: LookupQueue(threads: threads)))
    }

    deinit { threads.stop() }

    /// - Returns: the cached addresses; `nil` if there are none.
    package func cached(_ host: String) -> [String]? {
        if Self.isAddress(host) { return [host] }
        if Self.isLoopbackName(host) { return ["127.0.0.1", "::1"] }
        let now = MonotonicTime.now()
        return state.withLock { state in
            guard let entry = state.known[host], now < entry.until else { return nil }
            return entry.addresses
        }
    }

    /// Starts a look-up; `completion` runs on a thread of the resolver. Questions for the same name share one look-up.
    ///
    /// - Returns: the question, to be held until the answer arrives.
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

    /// Returns the names that may be looked up now.
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
        // The completion handler is released outside the lock, with everything it captures.
        _ = state.withLock { state in
            state.queue.withdraw(number)
            return state.completions.removeValue(forKey: number)
        }
    }

    /// The number of questions that were neither answered nor withdrawn.
    package var openQuestions: Int { state.withLock { $0.queue.count } }

    /// Removes an answer from the cache, because nothing listens at its addresses any more.
    package func forget(_ host: String) {
        state.withLock { _ = $0.known.removeValue(forKey: host) }
    }

    /// Whether `host` is already an address; IPv6 may be in brackets.
    package static func isAddress(_ host: String) -> Bool {
        var space = in6_addr()
        if host.hasPrefix("[") { return true }
        return host.withCString { inet_pton(AF_INET, $0, &space) == 1 || inet_pton(AF_INET6, $0, &space) == 1 }
    }

    /// Whether a name lies beneath `localhost`, or is `localhost.`. Such names always mean this machine (RFC 6761,
    /// section 6.3).
    package static func isLoopbackName(_ host: String) -> Bool {
        let name = (host.hasSuffix(".") ? host.dropLast() : host[...]).lowercased()
        return name.hasSuffix(".localhost") || host.hasSuffix(".") && name == "localhost"
    }

    // The values of EAI_NODATA and EAI_ADDRFAMILY, which glibc's header defines only with _GNU_SOURCE.
    private static let noData: Int32 = -5
    private static let addressFamily: Int32 = -9

    /// The system's look-up, `getaddrinfo`.
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
