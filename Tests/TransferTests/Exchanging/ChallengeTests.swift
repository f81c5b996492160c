import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Challenges: who asks has to say who they are")
struct ChallengeTests {
    private let manager: SessionManager

    init() throws {
        manager = try SessionManager(configuration: .test())
    }

    private static let basic = "WWW-Authenticate: Basic realm=\"vault\""
    private static let digest =
        "WWW-Authenticate: Digest realm=\"vault\", nonce=\"abc\", qop=\"auth\", algorithm=SHA-256"

    /// Creates a server that asks for Basic authentication once and accepts any credential.
    private func server(_ offer: String = ChallengeTests.basic) throws -> ScriptedServer {
        try ScriptedServer(["/f": [.status(401, headers: [offer], body: "who?"), .status(200, body: "in")]])
    }

    private let credential = Credential(user: "u", password: "p")

    @Test("K25: a request's own credential answers a challenge, and nothing goes along before it is asked for")
    func own() async throws {
        let server = try self.server()
        #expect(
            try await manager.request(server.url("/f")).authenticate(user: "u", password: "p").validate().string == "in"
        )
        #expect(server.requests().map { $0.header("authorization") } == [nil, "Basic dTpw"])
    }

    @Test("K25: without a credential the answer that asks is the final one, body and all")
    func none() async throws {
        let server = try self.server()
        let outcome = await manager.request(server.url("/f")).outcome
        #expect(outcome.head?.status == 401)
        #expect(outcome.data.map { Array($0) } == Array("who?".utf8))
        #expect(server.requests().count == 1)
    }

    @Test("K25: own before stored, stored where there is no own, by realm")
    func stored() async throws {
        let server = try ScriptedServer([
            "/f": [.status(401, headers: [Self.basic])], "/g": [.status(401, headers: [Self.basic])],
        ])
        let storage = manager.session.configuration.credentialStorage
        let space = ProtectionSpace(
            host: "127.0.0.1", port: server.port, scheme: "http", realm: "vault", method: .basic)
        storage.set(Credential(user: "s", password: "t"), for: space)
        storage.set(
            Credential(user: "wrong", password: "realm"),
            for: {
                var other = space
                other.realm = "other"
                return other
            }())
        _ = await manager.request(server.url("/f")).outcome
        #expect(server.requests(for: "/f").last?.header("authorization") == "Basic czp0")
        _ = await manager.request(server.url("/g")).authenticate(with: credential).outcome
        #expect(server.requests(for: "/g").last?.header("authorization") == "Basic dTpw")
    }

    @Test("K25: a credential that was refused is not offered again")
    func refused() async throws {
        let server = try ScriptedServer(["/f": [.status(401, headers: [Self.basic], body: "no")]])
        let outcome = await manager.request(server.url("/f")).authenticate(with: credential).outcome
        #expect(outcome.head?.status == 401)
        #expect(server.requests().count == 2)
        // A credential that was sent preemptively has already been refused.
        let eager = TransferRequest(url: server.url("/f"), credential: credential)
        #expect(await manager.request(eager).outcome.head?.status == 401)
        #expect(server.requests().count == 3)
    }

    @Test("a server that offers Digest gets that, with a count that grows, and never the password")
    func digest() async throws {
        let server = try ScriptedServer([
            "/f?a=b": [.status(401, headers: [Self.digest], body: "who?"), .status(200, body: "in")]
        ])
        #expect(
            try await manager.request(server.url("/f?a=b")).authenticate(with: credential).validate().string == "in")
        let field = try #require(server.requests().last?.header("authorization"))
        for part in ["Digest ", "username=\"u\"", "uri=\"/f?a=b\"", "nc=00000001", "qop=auth", "algorithm=SHA-256"] {
            #expect(field.contains(part), "\(part)")
        }
        #expect(server.requests().first?.header("authorization") == nil)
    }

    @Test("a nonce that has expired is replaced without counting as a refusal")
    func stale() async throws {
        let stale = Self.digest.replacing("nonce=\"abc\"", with: "nonce=\"def\", stale=true")
        let server = try ScriptedServer([
            "/f": [.status(401, headers: [Self.digest]), .status(401, headers: [stale]), .status(200, body: "in")]
        ])
        #expect(try await manager.request(server.url("/f")).authenticate(with: credential).validate().string == "in")
        #expect(server.requests().last?.header("authorization")?.contains("nonce=\"def\"") == true)
    }

    @Test("a token answers as bearer")
    func bearer() async throws {
        let server = try self.server("WWW-Authenticate: Bearer realm=\"api\"")
        let request = manager.request(server.url("/f")).authenticate(with: .bearer("t0ken"))
        #expect(try await request.validate().string == "in")
        #expect(server.requests().last?.header("authorization") == "Bearer t0ken")
        #expect(!request.description.contains("t0ken") && !"\(Credential.bearer("t0ken"))".contains("t0ken"))
    }

    @Test("K24: an answer to a challenge stays with the origin that asked")
    func origins() async throws {
        let other = try ScriptedServer(["/g": [.status(200, body: "in")]])
        let server = try ScriptedServer([
            "/f": [.status(401, headers: [Self.basic]), .redirect(other.url("/g"))]
        ])
        #expect(try await manager.request(server.url("/f")).authenticate(with: credential).validate().string == "in")
        #expect(server.requests().last?.header("authorization") == "Basic dTpw")
        #expect(other.requests().first?.header("authorization") == nil)
    }

    @Test("K24: what was given to a request answers nobody but the origin it was meant for")
    func strangers() async throws {
        let other = try ScriptedServer(["/g": [.status(401, headers: [Self.basic], body: "who?")]])
        let server = try ScriptedServer(["/f": [.redirect(other.url("/g"))]])
        let outcome = await manager.request(server.url("/f")).authenticate(with: credential).outcome
        #expect(outcome.head?.status == 401)
        #expect(other.requests().map { $0.header("authorization") } == [nil])
    }

    @Test("an upload is sent again with the credential, from its beginning", arguments: [0, 1, 300_000])
    func upload(size: Int64) async throws {
        let resource = Resource(size: size)
        let server = try ScriptedServer(["/f": [.status(401, headers: [Self.basic]), .status(201)]])
        let request = manager.upload(.data(resource.bytes), with: TransferRequest(url: server.url("/f"), method: .put))
            .authenticate(with: credential)
        #expect(await request.outcome.head?.status == 201)
        #expect(server.requests().last?.body == resource.bytes)
    }

    @Test("a download answers challenges too, and does not fall for the page that asks")
    func download() async throws {
        let place = try Place()
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer(["/f": [.status(401, headers: [Self.digest], body: "who?"), .serve(resource)]])
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
            .authenticate(with: credential)
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
    }

    // MARK: Precedence

    @Test("K30: closure with completion, closure, the task's own, default: the first there is decides")
    func precedence() async throws {
        let delegate = manager.delegate
        func user(ownClosure: Bool = false, at server: ScriptedServer) async -> String? {
            let request = manager.request(server.url("/f")).authenticate(with: Credential(user: "own", password: ""))
            if ownClosure {
                request.delegate.taskDidReceiveChallenge = { _, _ in
                    (.useCredential, Credential(user: "closure", password: ""))
                }
            }
            _ = await request.outcome
            return server.requests().last?.header("authorization")
        }
        #expect(
            await user(at: try server()) == BasicAuthorization.fieldValue(for: Credential(user: "own", password: "")))
        #expect(
            await user(ownClosure: true, at: try server())
                == BasicAuthorization.fieldValue(for: Credential(user: "closure", password: "")))
        let counts = Notes<Int>()
        delegate.taskDidReceiveChallenge = { _, challenge in
            counts.add(challenge.previousFailureCount)
            #expect(challenge.protectionSpace.realm == "vault")
            #expect(challenge.failureResponse?.status == 401)
            return (.useCredential, Credential(user: "plain", password: ""))
        }
        #expect(
            await user(ownClosure: true, at: try server())
                == BasicAuthorization.fieldValue(for: Credential(user: "plain", password: "")))
        delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
            Task.detached { completion(.useCredential, Credential(user: "later", password: "")) }
        }
        #expect(
            await user(ownClosure: true, at: try server())
                == BasicAuthorization.fieldValue(for: Credential(user: "later", password: "")))
        #expect(counts.all == [0])
    }

    @Test("a challenge for a task without a request falls to the session's closures")
    func bareTask() async throws {
        let server = try self.server()
        let done = AsyncStream.makeStream(of: Int?.self)
        manager.delegate.sessionDidReceiveChallenge = { _, _ in (.useCredential, Credential(user: "u", password: "p")) }
        manager.delegate.taskDidComplete = { task, _ in
            done.continuation.yield(task.response?.status)
            done.continuation.finish()
        }
        manager.session.dataTask(with: TransferRequest(url: server.url("/f"))).resume()
        for await status in done.stream { #expect(status == 200) }
    }

    @Test(
        "a delegate can cancel, reject, or leave it to the default, now or later", .timeLimit(.minutes(1)),
        arguments: [false, true])
    func dispositions(later: Bool) async throws {
        func outcome(_ disposition: ChallengeDisposition) async throws -> DataResponse<Data?> {
            let server = try self.server()
            manager.delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
                if later { Task.detached { completion(disposition, nil) } } else { completion(disposition, nil) }
            }
            return await manager.request(server.url("/f")).outcome
        }
        #expect(try await outcome(.cancelAuthenticationChallenge).error?.code == .cancelled)
        for disposition in [ChallengeDisposition.rejectProtectionSpace, .performDefaultHandling, .useCredential] {
            let outcome = try await outcome(disposition)
            #expect(outcome.head?.status == 401 && outcome.error == nil)
            #expect(outcome.data.map { Array($0) } == Array("who?".utf8))
        }
        // A completion that is released without a call leaves the challenge to default handling.
        let server = try self.server()
        manager.delegate.taskDidReceiveChallengeWithCompletion = { _, _, _ in }
        #expect(await manager.request(server.url("/f")).outcome.head?.status == 401)
    }

    @Test("cancelled while a delegate thinks, a request completes", .timeLimit(.minutes(1)))
    func cancelWhileDeciding() async throws {
        let server = try self.server()
        let asked = AsyncStream.makeStream(of: (@Sendable (ChallengeDisposition, Credential?) -> Void).self)
        manager.delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
            asked.continuation.yield(completion)
        }
        let request = manager.request(server.url("/f")).resume()
        for await completion in asked.stream {
            request.cancel()
            #expect(await request.outcome.error?.code == .cancelled)
            completion(.useCredential, Credential(user: "u", password: "p"))
            break
        }
        #expect(manager.delegate.requestCount == 0)
    }

    // MARK: Real servers

    @Test("nginx lets the right password in and not the wrong one")
    func nginx() async throws {
        let nginx = try await Nginx([.basic("/in/", user: "anna", password: "s3cret")])
        try nginx.publish(Resource(size: 1000), as: "f")
        let url = nginx.url("/in/f")
        func status(_ password: String) async -> Int? {
            await manager.request(url).authenticate(user: "anna", password: password).outcome.head?.status
        }
        #expect(await status("s3cret") == 200)
        #expect(await status("wrong") == 401)
    }

    @Test("a server that finds every nonce too old refuses: it is not answered for ever", .timeLimit(.minutes(1)))
    func alwaysStale() async throws {
        let server = try ScriptedServer([
            "/f": (0..<1000).map { number in
                .status(
                    401,
                    headers: [Self.digest.replacing("nonce=\"abc\"", with: "nonce=\"n\(number)\", stale=true")])
            } + [.status(200)]
        ])
        let outcome = await manager.request(server.url("/f")).authenticate(with: credential).outcome
        #expect(outcome.head?.status == 401)
        #expect(server.requests().count <= 20)
    }

    @Test("the key of a Digest session is made with one nonce of the client's (RFC 7616, section 3.4.2)")
    func session() async throws {
        let offer = Self.digest.replacing("SHA-256", with: "SHA-256-sess")
        let server = try ScriptedServer([
            "/f": [.status(401, headers: [offer]), .redirect("/g")], "/g": [.status(200, body: "in")],
        ])
        #expect(try await manager.request(server.url("/f")).authenticate(with: credential).validate().string == "in")
        let answers = server.requests().compactMap { $0.header("authorization") }
        #expect(answers.map { $0.contains("nc=00000001") } == [true, false])
        let nonces = answers.map { $0.split(separator: ", ").first { $0.hasPrefix("cnonce=") } }
        #expect(nonces.count == 2 && nonces[0] != nil && nonces[0] == nonces[1])
    }
}
