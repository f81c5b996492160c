import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: authentication", .timeLimit(.minutes(1)))
struct HTTPBinAuthenticationTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    /// The ways to supply a credential.
    enum Way: String, CaseIterable, Sendable {
        /// A property of the request.
        case request
        /// `authenticate(with:)`, which waits for a challenge.
        case challenge
        /// The session's storage.
        case storage
        /// The closure of the session's delegate.
        case sessionDelegate
        /// The closure of the request's delegate.
        case taskDelegate

        /// Whether the credential is sent without a challenge.
        var isPreemptive: Bool { self == .request }
    }

    /// Returns a request for `path` that has the credential.
    private func request(
        _ path: String, _ credential: Credential, _ way: Way, realm: String? = nil
    ) -> DataRequest {
        var plain = client.request(path)
        if way == .request { plain.credential = credential }
        let request = manager.request(plain)
        switch way {
        case .request: break
        case .challenge: request.authenticate(with: credential)
        case .storage:
            let space = ProtectionSpace(
                host: "127.0.0.1", port: client.server.port, scheme: "http", realm: realm, method: .basic)
            manager.session.configuration.credentialStorage.set(credential, for: space)
        case .sessionDelegate:
            manager.delegate.taskDidReceiveChallenge = { _, challenge in
                challenge.previousFailureCount == 0 ? (.useCredential, credential) : (.rejectProtectionSpace, nil)
            }
        case .taskDelegate:
            request.delegate.taskDidReceiveChallenge = { _, challenge in
                challenge.previousFailureCount == 0 ? (.useCredential, credential) : (.rejectProtectionSpace, nil)
            }
        }
        return request
    }

    private let right = Credential(user: "user", password: "passwd")

    // MARK: Basic

    @Test(
        "Basic: the right user name and password are accepted", arguments: Way.allCases,
        [("user", "passwd"), ("ünï", "pässwörd"), ("a b", "c&d=e"), ("user", "a:b:c")])
    func basic(_ way: Way, _ user: (name: String, password: String)) async throws {
        let path = "/basic-auth/\(segment(user.name))/\(segment(user.password))"
        let response = await request(path, Credential(user: user.name, password: user.password), way).validate()
            .serialized(using: JSONSerializer())
        #expect(response.value?["authenticated"] == .bool(true) && response.value?["user"]?.text == user.name)
        #expect(response.statuses == (way.isPreemptive ? [200] : [401, 200]))
    }

    @Test("Basic: a wrong password is sent once, and the refusal is the response", arguments: Way.allCases)
    func basicRefused(_ way: Way) async throws {
        let outcome = await request("/basic-auth/user/other", right, way).outcome
        #expect(outcome.status == 401 && outcome.error == nil)
        #expect(outcome.statuses == (way.isPreemptive ? [401] : [401, 401]))
    }

    @Test("Basic: a wrong password fails a validated request", arguments: Way.allCases)
    func basicValidated(_ way: Way) async throws {
        let outcome = await request("/basic-auth/user/other", right, way).validate().outcome
        #expect(outcome.code == .httpStatus && outcome.error?.httpStatus == 401)
    }

    @Test("Basic: without a credential, the challenge is the response")
    func basicWithout() async throws {
        let outcome = await manager.request(client.url("/basic-auth/user/passwd")).outcome
        #expect(outcome.status == 401 && outcome.head?.authenticationOffers.first?.scheme == "basic")
        #expect(outcome.head?.authenticationOffers.first?.parameters["realm"] == "Fake Realm")
    }

    @Test("a credential that is stored for a realm counts for no other", arguments: ["Fake Realm", "Other Realm"])
    func realm(_ realm: String) async throws {
        let outcome = await request("/basic-auth/user/passwd", right, .storage, realm: realm).outcome
        #expect(outcome.status == (realm == "Fake Realm" ? 200 : 401))
    }

    @Test("a credential of the request counts before a stored one")
    func precedence() async throws {
        _ = request("/get", Credential(user: "user", password: "wrong"), .storage)
        let outcome = await request("/basic-auth/user/passwd", right, .challenge).outcome
        #expect(outcome.status == 200)
    }

    @Test("a field that the request sets itself is sent as it is")
    func ownField() async throws {
        let value = try #require(BasicAuthorization.fieldValue(for: right))
        let echo = try await client.echo("/basic-auth/user/passwd", .get, [.authorization: value])
        #expect(echo["authenticated"] == .bool(true))
    }

    // MARK: Hidden

    @Test("a server that hides its challenge accepts only a credential that is sent at once", arguments: Way.allCases)
    func hidden(_ way: Way) async throws {
        let outcome = await request("/hidden-basic-auth/user/passwd", right, way).outcome
        #expect(outcome.status == (way.isPreemptive ? 200 : 404) && outcome.metrics.exchanges.count == 1)
    }

    @Test("a server that hides its challenge refuses a wrong password with 404")
    func hiddenRefused() async throws {
        #expect(await request("/hidden-basic-auth/user/other", right, .request).outcome.status == 404)
    }

    // MARK: Bearer

    @Test("Bearer: the token arrives", arguments: Way.allCases, ["token", "a.b-c_d~e+f/g=="])
    func bearer(_ way: Way, _ token: String) async throws {
        let response = await request("/bearer", .bearer(token), way).serialized(using: JSONSerializer())
        #expect(response.value?["token"]?.text == token)
        #expect(response.statuses == (way.isPreemptive ? [200] : [401, 200]))
    }

    @Test("Bearer: without a token, the challenge is the response")
    func bearerWithout() async throws {
        let outcome = await manager.request(client.url("/bearer")).outcome
        #expect(outcome.status == 401 && outcome.head?.authenticationOffers.map(\.scheme) == ["bearer"])
    }

    @Test("Bearer: a password does not satisfy the challenge")
    func bearerPassword() async throws {
        let outcome = await request("/bearer", right, .challenge).outcome
        #expect(outcome.status == 401 && outcome.metrics.exchanges.count == 1)
    }

    // MARK: Digest

    @Test(
        "Digest: the right password is accepted", arguments: Way.allCases,
        ["auth/user/passwd", "auth/user/passwd/MD5", "auth/user/passwd/SHA-256", "any/user/passwd"])
    func digest(_ way: Way, _ path: String) async throws {
        let response = await request("/digest-auth/\(path)", right, way).serialized(using: JSONSerializer())
        #expect(response.value?["authenticated"] == .bool(true) && response.statuses == [401, 200])
    }

    @Test("Digest: a wrong password is sent once", arguments: Way.allCases, ["MD5", "SHA-256"])
    func digestRefused(_ way: Way, _ algorithm: String) async throws {
        let outcome = await request("/digest-auth/auth/user/other/\(algorithm)", right, way).outcome
        #expect(outcome.error == nil && outcome.statuses == [401, 401])
    }

    @Test(
        "Digest: an algorithm or quality that is not supported is not answered",
        arguments: ["auth/user/passwd/SHA-512", "auth-int/user/passwd/MD5"])
    func digestUnsupported(_ path: String) async throws {
        let outcome = await request("/digest-auth/\(path)", right, .challenge).outcome
        #expect(outcome.error == nil && outcome.statuses == [401])
    }

    @Test("Digest: the cookies that a challenge sets are stored")
    func digestCookie() async throws {
        _ = await request("/digest-auth/auth/user/passwd", right, .challenge).outcome
        let cookies = manager.session.configuration.cookieStorage?.cookies ?? []
        #expect(cookies.map(\.name).sorted() == ["fake", "stale_after"])
    }

    @Test("Digest: a server that calls every nonce stale is asked a limited number of times")
    func digestStale() async throws {
        let asked = Record<Int>()
        let right = right
        manager.delegate.taskDidReceiveChallenge = { _, challenge in
            asked.add(challenge.previousFailureCount)
            return challenge.previousFailureCount == 0 ? (.useCredential, right) : (.rejectProtectionSpace, nil)
        }
        let outcome = await manager.request(client.url("/digest-auth/auth/user/passwd/MD5/0")).outcome
        // A fresh nonce needs no other credential, so the closure is not asked for each.
        #expect(outcome.status == 401 && outcome.metrics.exchanges.count > 3 && asked.all == [0, 1])
    }

    // MARK: The challenge

    @Test("a challenge names server, realm and method", arguments: ["basic-auth", "digest-auth/auth"])
    func challenge(_ path: String) async throws {
        let challenges = Record<AuthenticationChallenge>()
        manager.delegate.taskDidReceiveChallenge = { _, challenge in
            challenges.add(challenge)
            return (.rejectProtectionSpace, nil)
        }
        let outcome = await manager.request(client.url("/\(path)/user/passwd")).outcome
        let challenge = try #require(challenges.all.first)
        #expect(outcome.status == 401 && challenges.count == 1)
        #expect(challenge.protectionSpace.host == "127.0.0.1" && challenge.protectionSpace.port == client.server.port)
        #expect(challenge.protectionSpace.scheme == "http" && challenge.protectionSpace.realm?.isEmpty == false)
        #expect(challenge.protectionSpace.method == (path == "basic-auth" ? .basic : .digest))
        #expect(challenge.previousFailureCount == 0 && challenge.failureResponse?.status == 401)
    }

    @Test(
        "the disposition of a challenge decides how the request ends",
        arguments: [
            (ChallengeDisposition.useCredential, 200), (.performDefaultHandling, 401), (.rejectProtectionSpace, 401),
            (.cancelAuthenticationChallenge, nil),
        ] as [(ChallengeDisposition, Int?)], [false, true])
    func disposition(_ expected: (disposition: ChallengeDisposition, status: Int?), later: Bool) async throws {
        let right = right
        if later {
            manager.delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
                Task.detached { completion(expected.disposition, right) }
            }
        } else {
            manager.delegate.taskDidReceiveChallenge = { _, _ in (expected.disposition, right) }
        }
        let outcome = await manager.request(client.url("/basic-auth/user/passwd")).outcome
        if let status = expected.status {
            #expect(outcome.status == status && outcome.error == nil)
        } else {
            #expect(outcome.code == .cancelled)
        }
    }

    @Test("a closure that repeats a wrong credential is told how often it was refused")
    func failureCount() async throws {
        let counts = Record<Int>()
        manager.delegate.taskDidReceiveChallenge = { _, challenge in
            counts.add(challenge.previousFailureCount)
            let password = challenge.previousFailureCount == 1 ? "passwd" : "wrong"
            return (.useCredential, Credential(user: "user", password: password))
        }
        let outcome = await manager.request(client.url("/basic-auth/user/passwd")).outcome
        #expect(outcome.status == 200 && counts.all == [0, 1])
    }

    @Test("a challenge proposes the stored credential", arguments: [true, false])
    func proposed(isStored: Bool) async throws {
        let request = request("/basic-auth/user/passwd", right, isStored ? .storage : .taskDelegate)
        manager.delegate.taskDidReceiveChallenge = { _, challenge in
            challenge.proposedCredential.map { (.useCredential, $0) } ?? (.rejectProtectionSpace, nil)
        }
        #expect(await request.outcome.status == (isStored ? 200 : 401))
    }

    // MARK: Other requests

    @Test("a download is authenticated like any other request", arguments: ["/basic-auth", "/digest-auth/auth"])
    func download(_ path: String) async throws {
        let directory = try TemporaryDirectory()
        let download = manager.download(client.url("\(path)/user/passwd"), to: directory.file("file"))
            .authenticate(user: "user", password: "passwd")
        #expect(try String(decoding: contents(ofFileAt: await download.value.path), as: UTF8.self).contains("true"))
    }

    @Test("a download with a wrong password fails with the status")
    func downloadRefused() async throws {
        let directory = try TemporaryDirectory()
        let outcome = await manager.download(client.url("/basic-auth/user/other"), to: directory.file("file"))
            .authenticate(with: right).outcome
        #expect(outcome.error?.httpStatus == 401)
    }

    @Test("a credential follows a redirect within the server", arguments: [Way.request, .challenge, .storage])
    func redirected(_ way: Way) async throws {
        let outcome = await request("/redirect-to?url=/basic-auth/user/passwd", right, way).outcome
        #expect(outcome.status == 200)
    }

    @Test("a credential is not sent to another server", arguments: [Way.request, .challenge])
    func otherServer(_ way: Way) async throws {
        let target = client.server.url("/basic-auth/user/passwd", host: "localhost")
        let outcome = await request("/redirect-to?url=\(segment(target))", right, way).outcome
        #expect(outcome.status == 401 && outcome.request?.url == target)
    }
}
