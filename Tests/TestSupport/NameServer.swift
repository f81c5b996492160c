import Glibc
import Synchronization

/// A name server (RFC 1035) on port 53 of its own loopback address with the same answers for every name. Requires root.
package final class NameServer: Sendable {
    package enum Answer: Sendable, Equatable {
        /// The address 127.0.0.1.
        case loopback
        /// The addresses 127.0.0.x, one for each query in turn, for no time (TTL 0). The last one is repeated.
        case inTurn([UInt8])
        /// The name does not exist (NXDOMAIN).
        case unknown
        /// A server failure (SERVFAIL).
        case failure
        /// A missing reply.
        case silence
    }

    /// The last number of its address 127.0.0.x.
    private let number: UInt8
    private let descriptor: Int32
    private let state = Mutex((answer: Answer.loopback, count: 0, addresses: 0))

    package init() throws {
        var found: (UInt8, Int32)?
        for _ in 0..<20 where found == nil {
            let number = UInt8.random(in: 20...250)
            let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { throw SystemError("socket") }
            let bound = withLoopbackAddress(host: number, port: 53) { bind(descriptor, $0, $1) }
            if bound == 0 { found = (number, descriptor) } else { close(descriptor) }
        }
        guard let found else { throw Unusable(reason: "port 53 is free nowhere") }
        (number, descriptor) = found
        try startThread { [weak self, descriptor] in
            defer { close(descriptor) }
            while true {
                var question = [UInt8](repeating: 0, count: 512)
                var client = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                let got = withUnsafeMutablePointer(to: &client) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        recvfrom(descriptor, &question, question.count, 0, $0, &length)
                    }
                }
                guard got > 0, let self else { return }
                guard let answer = self.answer(Array(question[..<got])) else { continue }
                _ = withUnsafePointer(to: &client) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        sendto(descriptor, answer, answer.count, 0, $0, length)
                    }
                }
            }
        }
    }

    deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Sets the answer and resets the count of queries.
    package func say(_ answer: Answer) { state.withLock { $0 = (answer, 0, 0) } }

    /// The number of queries since the answer was set.
    package var questions: Int { state.withLock { $0.count } }

    /// Returns a command that runs a program with this server as its only source of names.
    package func prefix(in place: TemporaryDirectory) throws -> [String] {
        let order = try place.write("hosts: dns\n", to: "nsswitch.conf")
        let server = "nameserver 127.0.0.\(number)\noptions timeout:1 attempts:1\n"
        let resolver = try place.write(server, to: "resolv.conf")
        let binds = [(order, "/etc/nsswitch.conf"), (resolver, "/etc/resolv.conf")].map { "mount --bind \($0) \($1)" }
        return ["unshare", "--mount", "sh", "-c", binds.joined(separator: " && ") + " && exec \"$@\"", "sh"]
    }

    private func answer(_ question: [UInt8]) -> [UInt8]? {
        let answer = state.withLock { state in
            state.count += 1
            return state.answer
        }
        guard question.count > 16, var end = question[12...].firstIndex(of: 0) else { return nil }
        end += 5
        guard end <= question.count else { return nil }
        // Type A has an address; type AAAA has none.
        let hasAddress = question[end - 3] == 1 && question[end - 4] == 0
        func reply(_ code: UInt8, _ records: [UInt8] = []) -> [UInt8] {
            let header: [UInt8] = [0x81, 0x80 | code, 0, 1, 0, records.isEmpty ? 0 : 1, 0, 0, 0, 0]
            return question[..<2] + header + question[12..<end] + records
        }
        func address(_ number: UInt8) -> [UInt8] {
            reply(0, hasAddress ? [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, number] : [])
        }
        switch answer {
        case .silence: return nil
        case .failure: return reply(2)
        case .unknown: return reply(3)
        case .loopback: return address(1)
        case .inTurn(let numbers):
            guard hasAddress, let last = numbers.indices.last else { return reply(0) }
            let turn = state.withLock { state in
                defer { state.addresses += 1 }
                return state.addresses
            }
            return address(numbers[min(turn, last)])
        }
    }
}
