import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: trust in servers, behind nginx with TLS", .timeLimit(.minutes(1)))
struct HTTPBinTrustTests {
    private let server: HTTPBin
    private let certificates: TestCertificates

    init() async throws {
        server = try await HTTPBin.shared
        certificates = try await TestCertificates.shared
    }

    /// The certificate that the server presents.
    enum Shown: String, CaseIterable, Sendable {
        case server, wrongHost, expired, selfSigned, revoked

        func identity(_ certificates: TestCertificates) -> TestCertificates.Identity {
            switch self {
            case .server: certificates.server
            case .wrongHost: certificates.wrongHost
            case .expired: certificates.expired
            case .selfSigned: certificates.selfSigned
            case .revoked: certificates.revoked
            }
        }
    }

    /// Starts a server with TLS in front of the httpbin.
    private func front(
        _ shown: Shown = .server, staple: String? = nil, clientAuthority: String? = nil, http2: Bool = false
    ) async throws -> Nginx {
        let pass = "proxy_pass http://127.0.0.1:\(server.port); proxy_set_header Host $http_host;"
        return try await Nginx(
            [.custom("/", pass + " proxy_redirect off; client_max_body_size 0;")],
            tls: .init(
                certificate: shown.identity(certificates), clientAuthority: clientAuthority, staple: staple),
            http2: http2)
    }

    private func manager(
        _ policy: ServerTrustPolicy? = nil, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> SessionManager {
        let policies = policy.map { ["localhost": $0] } ?? [:]
        return try SessionManager(
            configuration: .test(change), serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies))
    }

    private func request(_ nginx: Nginx, _ path: String = "/get", trustsAuthority: Bool = true) -> TransferRequest {
        var request = TransferRequest(url: nginx.url(path, host: "localhost"))
        if trustsAuthority { request.caCertificates = certificates.authority.text }
        return request
    }

    /// Returns the code of a request; `nil` for success.
    private func code(
        _ shown: Shown, _ policy: ServerTrustPolicy?, staple: String? = nil, trustsAuthority: Bool = true
    ) async throws -> TransferError.Code? {
        let nginx = try await front(shown, staple: staple)
        let manager = try manager(policy)
        let outcome = await manager.request(request(nginx, trustsAuthority: trustsAuthority)).validate().outcome
        // No request goes to a server that is not trusted.
        #expect(outcome.error == nil || nginx.accesses().isEmpty)
        return outcome.code
    }

    // MARK: Policies

    @Test(
        "by default, a chain to a trusted certificate, in date and for the host, is required", arguments: Shown.allCases
    )
    func byDefault(_ shown: Shown) async throws {
        // Revocation is not checked unless it is requested.
        #expect(try await code(shown, nil) == ([.server, .revoked].contains(shown) ? nil : .tls))
    }

    @Test("the default evaluation can be set for a host", arguments: Shown.allCases, [true, false])
    func defaultPolicy(_ shown: Shown, validatesHost: Bool) async throws {
        let accepted: [Shown] = validatesHost ? [.server, .revoked] : [.server, .revoked, .wrongHost]
        let code = try await code(shown, .performDefaultEvaluation(validateHost: validatesHost))
        #expect(code == (accepted.contains(shown) ? nil : .tls))
    }

    @Test("an authority that nobody trusts is refused")
    func unknownAuthority() async throws {
        #expect(try await code(.server, nil, trustsAuthority: false) == .tls)
    }

    @Test("a revocation list refuses the certificates in it", arguments: [Shown.server, .revoked, .expired])
    func revocationList(_ shown: Shown) async throws {
        let code = try await code(
            shown,
            .performRevokedEvaluation(validateHost: true, revocation: .list(path: certificates.revocationList.path)))
        #expect(code == (shown == .server ? nil : .tls))
    }

    @Test("a stapled status is required, and decides", arguments: ["good", "revoked", "none"])
    func stapled(_ status: String) async throws {
        let shown: Shown = status == "revoked" ? .revoked : .server
        let staple =
            status == "none" ? nil : status == "good" ? certificates.goodResponse : certificates.revokedResponse
        let code = try await code(
            shown, .performRevokedEvaluation(validateHost: true, revocation: .stapledStatus), staple: staple)
        #expect(code == (status == "good" ? nil : .tls))
    }

    @Test(
        "a pinned certificate with validation of the chain must be valid too", arguments: Shown.allCases, [true, false])
    func pinnedChain(_ shown: Shown, validatesHost: Bool) async throws {
        let own = shown.identity(certificates).certificate.text
        let code = try await code(
            shown, .pinCertificates(certificates: [own], validateCertificateChain: true, validateHost: validatesHost))
        let refused: [Shown] = validatesHost ? [.expired, .wrongHost] : [.expired]
        #expect(code == (refused.contains(shown) ? .tls : nil))
    }

    @Test("a pinned certificate without validation of the chain is enough", arguments: Shown.allCases)
    func pinnedAlone(_ shown: Shown) async throws {
        let own = shown.identity(certificates).certificate.text
        let code = try await code(
            shown, .pinCertificates(certificates: [own], validateCertificateChain: false, validateHost: false),
            trustsAuthority: false)
        #expect(code == nil)
    }

    @Test("a certificate that is not pinned is refused", arguments: [true, false])
    func notPinned(validatesChain: Bool) async throws {
        let other = certificates.wildcard.certificate.text
        let policy = ServerTrustPolicy.pinCertificates(
            certificates: [other], validateCertificateChain: validatesChain, validateHost: true)
        #expect(try await code(.server, policy) == .tls)
    }

    @Test(
        "one of several pinned certificates is enough, and so is the authority's", arguments: ["several", "authority"])
    func severalPinned(_ kind: String) async throws {
        let pinned =
            kind == "authority"
            ? [certificates.authority.text]
            : [certificates.wildcard.certificate.text, certificates.server.certificate.text]
        let policy = ServerTrustPolicy.pinCertificates(
            certificates: pinned, validateCertificateChain: true, validateHost: true)
        #expect(try await code(.server, policy, trustsAuthority: false) == nil)
    }

    @Test("a pinned key with validation of the chain needs a valid chain", arguments: Shown.allCases)
    func pinnedKey(_ shown: Shown) async throws {
        let key = try #require(PublicKeyPin(certificate: shown.identity(certificates).certificate.text))
        let policy = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [key], validateCertificateChain: true, validateHost: true)
        #expect(try await code(shown, policy) == ([.server, .revoked].contains(shown) ? nil : .tls))
    }

    @Test("a pinned key without validation of the chain is enough", arguments: Shown.allCases)
    func pinnedKeyAlone(_ shown: Shown) async throws {
        let key = try #require(PublicKeyPin(certificate: shown.identity(certificates).certificate.text))
        let policy = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [key], validateCertificateChain: false, validateHost: false)
        #expect(try await code(shown, policy, trustsAuthority: false) == nil)
    }

    @Test("a key that is not pinned is refused, and a spare key does not matter", arguments: [true, false])
    func spareKey(hasOwn: Bool) async throws {
        let other = try #require(PublicKeyPin(certificate: certificates.wildcard.certificate.text))
        let own = try #require(PublicKeyPin(certificates.serverPublicKeyPin))
        let policy = ServerTrustPolicy.pinPublicKeys(
            publicKeys: hasOwn ? [other, own] : [other], validateCertificateChain: true, validateHost: true)
        #expect(try await code(.server, policy) == (hasOwn ? nil : .tls))
    }

    @Test("without evaluation, every server is trusted", arguments: Shown.allCases)
    func disabled(_ shown: Shown) async throws {
        #expect(try await code(shown, .disableEvaluation, trustsAuthority: false) == nil)
    }

    @Test("a custom evaluation decides alone", arguments: Shown.allCases, [true, false])
    func custom(_ shown: Shown, trusts: Bool) async throws {
        let hosts = Record<String>()
        let policy = ServerTrustPolicy.customEvaluation { trust, host in
            hosts.add(host)
            return trusts && trust.certificates.first?.contains("BEGIN CERTIFICATE") == true
        }
        #expect(try await code(shown, policy) == (trusts ? nil : .tls) && hosts.all == ["localhost"])
    }

    @Test("a policy for another host does not count", arguments: ["other.example", "*.example", "*.localhost"])
    func otherHost(_ host: String) async throws {
        let nginx = try await front(.selfSigned)
        let policies = ServerTrustPolicyManager(policies: [host: .disableEvaluation])
        let manager = try SessionManager(configuration: .test(), serverTrustPolicyManager: policies)
        #expect(await manager.request(request(nginx)).outcome.code == .tls)
    }

    // MARK: Closures

    /// The closures that decide on trust.
    enum Closure: String, CaseIterable, Sendable { case session, sessionLater, task, taskLater, request }

    @Test(
        "a closure decides on trust", arguments: Closure.allCases,
        [.useCredential, .performDefaultHandling, .rejectProtectionSpace, .cancelAuthenticationChallenge]
            as [ChallengeDisposition])
    func closure(_ closure: Closure, _ disposition: ChallengeDisposition) async throws {
        let nginx = try await front(.selfSigned)
        let manager = try manager()
        let request = manager.request(request(nginx))
        let seen = Record<Bool?>()
        switch closure {
        case .session:
            manager.delegate.sessionDidReceiveChallenge = { _, challenge in
                seen.add(challenge.serverTrust?.isChainValid)
                return (disposition, nil)
            }
        case .sessionLater:
            manager.delegate.sessionDidReceiveChallengeWithCompletion = { _, challenge, completion in
                seen.add(challenge.serverTrust?.isChainValid)
                Task.detached { completion(disposition, nil) }
            }
        case .task:
            manager.delegate.taskDidReceiveChallenge = { _, challenge in
                seen.add(challenge.serverTrust?.isChainValid)
                return (disposition, nil)
            }
        case .taskLater:
            manager.delegate.taskDidReceiveChallengeWithCompletion = { _, challenge, completion in
                seen.add(challenge.serverTrust?.isChainValid)
                Task.detached { completion(disposition, nil) }
            }
        case .request:
            request.delegate.taskDidReceiveChallenge = { _, challenge in
                seen.add(challenge.serverTrust?.isChainValid)
                return (disposition, nil)
            }
        }
        let expected: TransferError.Code? =
            switch disposition {
            case .useCredential: nil
            case .cancelAuthenticationChallenge: .cancelled
            default: .tls
            }
        #expect(await request.outcome.code == expected && seen.all == [false])
    }

    @Test("a closure may refuse a server that would be trusted")
    func refused() async throws {
        let nginx = try await front()
        let manager = try manager()
        manager.delegate.sessionDidReceiveChallenge = { _, _ in (.rejectProtectionSpace, nil) }
        #expect(await manager.request(request(nginx)).outcome.code == .tls && nginx.accesses().isEmpty)
    }

    @Test("a closure is asked once for a connection that serves several requests")
    func askedOnce() async throws {
        let nginx = try await front()
        // Each thread has connections of its own.
        let manager = try manager { $0.loops = 1 }
        let calls = Record<String>()
        manager.delegate.sessionDidReceiveChallenge = { _, challenge in
            calls.add(challenge.protectionSpace.host)
            return (.performDefaultHandling, nil)
        }
        for _ in 0..<3 { #expect(await manager.request(request(nginx)).outcome.error == nil) }
        #expect(calls.all == ["localhost"])
    }

    // MARK: Trusted certificates and identities

    @Test("the trusted certificates of a session are in a file")
    func caFile() async throws {
        let nginx = try await front()
        let path = certificates.authority.path
        let manager = try manager { $0.caFile = path }
        #expect(await manager.request(request(nginx, trustsAuthority: false)).outcome.error == nil)
    }

    @Test("a client certificate is presented to a server that requires one", arguments: ["request", "session", "none"])
    func identity(_ place: String) async throws {
        let nginx = try await front(clientAuthority: certificates.authority.path)
        let identity = ClientIdentity(
            certificate: certificates.client.certificate.text, key: certificates.client.key.text)
        let manager = try manager { if place == "session" { $0.identities["localhost"] = identity } }
        var request = request(nginx)
        if place == "request" { request.identity = identity }
        #expect(await manager.request(request).outcome.status == (place == "none" ? 400 : 200))
    }

    // MARK: Requests over TLS

    @Test("data, uploads and downloads work over TLS", arguments: ["data", "upload", "form", "download"])
    func kinds(_ kind: String) async throws {
        let nginx = try await front()
        let manager = try manager()
        let directory = try TemporaryDirectory()
        switch kind {
        case "data":
            let outcome = await manager.request(request(nginx)).outcome
            #expect(outcome.error == nil && outcome.timeline?.secured != nil)
        case "upload":
            let upload = manager.upload(.text("text"), with: post(nginx))
            #expect(try await upload.decoded(as: JSONValue.self)["data"]?.text == "text")
        case "form":
            let upload = manager.upload(with: post(nginx)) { $0.append("b", name: "a") }
            #expect(try await upload.decoded(as: JSONValue.self)["form"]?["a"]?.text == "b")
        default:
            let file = try await manager.download(request(nginx, "/range/50000"), to: directory.file("file")).value
            #expect(try contents(ofFileAt: file.path) == alphabet(50_000))
        }
    }

    private func post(_ nginx: Nginx) -> TransferRequest {
        var post = request(nginx, "/post")
        post.method = .post
        return post
    }

    @Test("the HTTP version is negotiated", arguments: [(HTTPVersion.http1, "http/1.1"), (.http2, "h2")])
    func version(_ version: HTTPVersion, _ name: String) async throws {
        let nginx = try await front(http2: true)
        var request = request(nginx)
        request.httpVersion = version
        let manager = try manager()
        let outcome = await manager.request(request).outcome
        #expect(outcome.error == nil && outcome.metrics.last?.protocolName == name)
    }

    @Test("a redirect to a server without TLS is refused unless it is permitted", arguments: [true, false])
    func downgrade(isPermitted: Bool) async throws {
        let nginx = try await front()
        var request = request(nginx, "/redirect-to?url=\(segment(server.url("/get")))")
        request.allowsDowngrade = isPermitted
        let manager = try manager()
        let outcome = await manager.request(request).outcome
        #expect(outcome.code == (isPermitted ? nil : .protocolNotAllowed))
    }

    @Test("a redirect to a server with TLS is followed")
    func upgrade() async throws {
        let nginx = try await front()
        let target = nginx.url("/get", host: "localhost")
        var request = TransferRequest(url: server.url("/redirect-to?url=\(segment(target))"))
        request.caCertificates = certificates.authority.text
        let manager = try manager()
        let outcome = await manager.request(request).validate().outcome
        #expect(outcome.error == nil && outcome.request?.url == target)
    }
}
