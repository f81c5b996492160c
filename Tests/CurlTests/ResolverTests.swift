import Synchronization
import Testing

@testable import Curl

@Suite("The resolver")
struct ResolverTests {
    /// Scripted name resolution that records the names asked for and blocks where a name has a closed gate.
    private final class Names: Sendable {
        let asked = Mutex<[String]>([])
        let answers: [String: Resolver.Answer]
        let gates: [String: WakeUp]

        init(_ answers: [String: Resolver.Answer], gates: [String: WakeUp] = [:]) {
            self.answers = answers
            self.gates = gates
        }

        func resolver(threads: Int = 64) -> Resolver {
            Resolver(threads: threads) { [self] host in
                asked.withLock { $0.append(host) }
                gates[host]?.wait()
                return answers[host] ?? .failure(.unknownName)
            }
        }

        func count(_ host: String) -> Int { asked.withLock { $0.count { $0 == host } } }
    }

    private func resolve(
        _ host: String, with resolver: Resolver, for asker: Resolver.Asker = .init(task: 0)
    ) async -> Resolver.Answer {
        let question = Mutex<Resolver.Question?>(nil)
        let answer = await withCheckedContinuation { continuation in
            let asked = resolver.resolve(host, for: asker) { continuation.resume(returning: $0) }
            question.withLock { $0 = asked }
        }
        question.withLock { $0 = nil }
        return answer
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
        var questions: [Resolver.Question] = []
        for task in 0..<10 {
            questions.append(
                resolver.resolve("a.example", for: .init(task: task)) { answer in
                    answers.withLock { $0.append(answer) }
                    done.signal()
                })
        }
        gate.signal()
        await waiting { for _ in 0..<10 { done.wait() } }
        withExtendedLifetime(questions) {}
        #expect(answers.withLock { $0 } == Array(repeating: .success(["192.0.2.1"]), count: 10))
        #expect(names.count("a.example") == 1)
    }

    @Test("F35: a look-up that hangs holds up no other name")
    func hungLookup() async throws {
        let gate = try WakeUp(counting: true)
        let names = Names(["b.example": .success(["192.0.2.2"])], gates: ["hung.example": gate])
        let resolver = names.resolver()
        let hung = try WakeUp(counting: true)
        let question = resolver.resolve("hung.example", for: .init(task: 0)) { _ in hung.signal() }
        for _ in 0..<20 {
            #expect(await resolve("b.example", with: resolver) == .success(["192.0.2.2"]))
        }
        gate.signal()
        await waiting { hung.wait() }
        withExtendedLifetime(question) {}
    }

    @Test("F35: names that nobody answers for, of many tasks and mirrors, leave threads for everyone else's")
    func silentMirrors() async throws {
        let gate = try WakeUp(counting: true)
        let silent = (0..<12).map { task in (0..<60).map { "\($0).\(task).example" } }
        let names = Names(
            ["own.example": .success(["192.0.2.1"]), "other.example": .success(["192.0.2.2"])],
            gates: Dictionary(uniqueKeysWithValues: silent.joined().map { ($0, gate) }))
        let resolver = names.resolver()
        var questions: [Resolver.Question] = []
        for (task, hosts) in silent.enumerated() {
            for host in hosts {
                let asker = Resolver.Asker(party: "1", task: task, urgency: .spare)
                questions.append(resolver.resolve(host, for: asker) { _ in })
            }
        }
        #expect(await resolve("other.example", with: resolver, for: .init(party: "2", task: 20)).isSuccess)
        #expect(await resolve("own.example", with: resolver, for: .init(party: "1", task: 0)).isSuccess)
        // Names that no caller waits for any longer are not looked up.
        questions = []
        #expect(resolver.openQuestions == 0)
        for _ in 0..<64 { gate.signal() }
        #expect(await resolve("last.example", with: resolver) == .failure(.unknownName))
        let asked = names.asked.withLock { $0.filter { $0 != "own.example" && $0 != "other.example" } }
        #expect(asked.count <= 17)
    }

    @Test("a question that was let go of is not answered, and others for its name are")
    func withdrawn() async throws {
        let gate = try WakeUp(counting: true)
        let resolver = Names(["a.example": .success(["192.0.2.1"])], gates: ["a.example": gate]).resolver()
        let answered = Mutex<[Int]>([])
        let done = try WakeUp(counting: true)
        var first: Resolver.Question? = resolver.resolve("a.example", for: .init(task: 1)) { _ in
            answered.withLock { $0.append(1) }
        }
        let second = resolver.resolve("a.example", for: .init(task: 2)) { _ in
            answered.withLock { $0.append(2) }
            done.signal()
        }
        #expect(first != nil)
        first = nil
        gate.signal()
        await waiting { done.wait() }
        #expect(answered.withLock { $0 } == [2])
        withExtendedLifetime(second) {}
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

    @Test(
        "names beneath localhost mean this machine and are not looked up (RFC 6761)",
        arguments: ["a.localhost", "A.B.LOCALHOST", "a.localhost.", "localhost."])
    func loopbackNames(name: String) {
        let resolver = Resolver { _ in .failure(.unknownName) }
        #expect(resolver.cached(name) == ["127.0.0.1", "::1"])
    }

    @Test(
        "names that only end like localhost are looked up",
        arguments: ["localhost", "alocalhost", "a.localhost.example"])
    func otherNames(name: String) {
        #expect(Resolver { _ in .failure(.unknownName) }.cached(name) == nil)
    }
}

extension Result {
    fileprivate var isSuccess: Bool { if case .success = self { true } else { false } }
}
