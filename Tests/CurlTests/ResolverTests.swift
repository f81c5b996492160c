import Synchronization
import Testing

@testable import Curl

@Suite("The resolver")
struct ResolverTests {
    /// Answers as told, counts, and waits where a gate is shut.
    private final class Names: Sendable {
        let asked = Mutex<[String]>([])
        let answers: [String: Resolver.Answer]
        let gates: [String: WakeUp]

        init(_ answers: [String: Resolver.Answer], gates: [String: WakeUp] = [:]) {
            self.answers = answers
            self.gates = gates
        }

        func resolver() -> Resolver {
            Resolver { [self] host in
                asked.withLock { $0.append(host) }
                gates[host]?.wait()
                return answers[host] ?? .failure(.unknownName)
            }
        }

        func count(_ host: String) -> Int { asked.withLock { $0.count { $0 == host } } }
    }

    private func resolve(_ host: String, with resolver: Resolver) async -> Resolver.Answer {
        await withCheckedContinuation { continuation in
            resolver.resolve(host) { continuation.resume(returning: $0) }
        }
    }

    @Test("an answer is asked for once and then known")
    func caches() async {
        let names = Names(["a.example": .success(["192.0.2.1", "2001:db8::1"])])
        let resolver = names.resolver()
        #expect(resolver.cached("a.example") == nil)
        #expect(await resolve("a.example", with: resolver) == .success(["192.0.2.1", "2001:db8::1"]))
        #expect(resolver.cached("a.example") == ["192.0.2.1", "2001:db8::1"])
        #expect(names.count("a.example") == 1)
        resolver.forget("a.example")
        #expect(resolver.cached("a.example") == nil)
    }

    @Test("questions for one name that is being looked up share the look-up")
    func shares() async throws {
        let gate = try WakeUp(counting: true)
        let names = Names(["a.example": .success(["192.0.2.1"])], gates: ["a.example": gate])
        let resolver = names.resolver()
        let answers = Mutex<[Resolver.Answer]>([])
        let done = try WakeUp(counting: true)
        for _ in 0..<10 {
            resolver.resolve("a.example") { answer in
                answers.withLock { $0.append(answer) }
                done.signal()
            }
        }
        gate.signal()
        await waiting { for _ in 0..<10 { done.wait() } }
        #expect(answers.withLock { $0 } == Array(repeating: .success(["192.0.2.1"]), count: 10))
        #expect(names.count("a.example") == 1)
    }

    @Test("F35: a look-up that hangs holds up no other name")
    func hungLookup() async throws {
        let gate = try WakeUp(counting: true)
        let names = Names(["b.example": .success(["192.0.2.2"])], gates: ["hung.example": gate])
        let resolver = names.resolver()
        let hung = try WakeUp(counting: true)
        resolver.resolve("hung.example") { _ in hung.signal() }
        for _ in 0..<20 {
            #expect(await resolve("b.example", with: resolver) == .success(["192.0.2.2"]))
        }
        gate.signal()
        await waiting { hung.wait() }
    }

    @Test(
        "a failure is not kept: the next question is asked anew",
        arguments: [
            Resolver.Failure.unknownName, .unavailable, .other("words"),
        ])
    func failures(failure: Resolver.Failure) async {
        let names = Names(["a.example": .failure(failure)])
        let resolver = names.resolver()
        #expect(await resolve("a.example", with: resolver) == .failure(failure))
        #expect(resolver.cached("a.example") == nil)
        #expect(await resolve("a.example", with: resolver) == .failure(failure))
        #expect(names.count("a.example") == 2)
    }

    @Test("addresses need no look-up, names do")
    func addresses() {
        let resolver = Names([:]).resolver()
        for address in ["127.0.0.1", "::1", "[2001:db8::1]", "255.255.255.255"] {
            #expect(resolver.cached(address) == [address])
        }
        for name in ["localhost", "127.0.0", "1.2.3.4.example", ""] { #expect(resolver.cached(name) == nil) }
    }

    @Test("the system's own look-up knows localhost")
    func system() throws {
        let addresses = try Resolver.system("localhost").get()
        #expect(addresses.contains("127.0.0.1") || addresses.contains("::1"))
    }
}
