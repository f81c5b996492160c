import Curl
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Trust in servers: six policies, tried against good and bad certificates")
struct ServerTrustTests {
    /// The certificate that the server presents.
    enum Shown: String, CaseIterable {
        case server, wrongHost, expired, selfSigned, revoked
        case chained, chainedExpired, falselyChained, issuedByServer

        /// The certificates that the authority itself has issued, and a self-signed one.
        static let direct: [Shown] = [.server, .wrongHost, .expired, .selfSigned, .revoked]

        func identity(_ certificates: TestCertificates) -> TestCertificates.Identity {
            switch self {
            case .server: certificates.server
            case .wrongHost: certificates.wrongHost
            case .expired: certificates.expired
            case .selfSigned: certificates.selfSigned
            case .revoked: certificates.revoked
            case .chained: certificates.chained
            case .chainedExpired: certificates.chainedExpired
            case .falselyChained: certificates.falselyChained
            case .issuedByServer: certificates.issuedByServer
            }
        }
    }

    /// Returns the error code of a request to `localhost`; `nil` for success.
    private func code(
        _ shown: Shown, staple: Bool = false, trustsAuthority: Bool = true,
        _ policy: (TestCertificates) throws -> ServerTrustPolicy?
    ) async throws -> TransferError.Code? {
        let certificates = try await TestCertificates.shared
        let response = shown == .revoked ? certificates.revokedResponse : certificates.goodResponse
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")],
            tls: .init(certificate: shown.identity(certificates), staple: staple ? response : nil))
        let policies = try policy(certificates).map { ["localhost": $0] } ?? [:]
        let manager = try SessionManager(
            configuration: .test(), serverTrustPolicyManager: ServerTrustPolicyManager(policies: policies))
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        if trustsAuthority { request.caCertificates = certificates.authority.text }
        let response1 = await manager.request(request).outcome
        #expect(response1.error == nil || nginx.accesses().isEmpty, "no request goes to a server that is not trusted")
        return response1.error?.code
    }

    @Test(
        "K23: by default a chain to a trusted certificate, in date and for this host, is asked for",
        arguments: Shown.direct)
    func byDefault(_ shown: Shown) async throws {
        let code = try await code(shown) { _ in nil }
        // Revocation is not checked unless it is requested.
        #expect(code == (shown == .server || shown == .revoked ? nil : .tls))
    }

    @Test("K23: the default evaluation may leave out the host's name, and nothing else", arguments: Shown.direct)
    func withoutHost(_ shown: Shown) async throws {
        let code = try await code(shown) { _ in .performDefaultEvaluation(validateHost: false) }
        #expect(code == ([.server, .wrongHost, .revoked].contains(shown) ? nil : .tls))
    }

    @Test("A24, K23: an authority that nobody named is not trusted")
    func unknownAuthority() async throws {
        #expect(try await code(.server, trustsAuthority: false) { _ in nil } == .tls)
    }

    @Test("K23: a certificate that was taken back is refused, by list and by stapled status", arguments: [false, true])
    func revocation(stapled: Bool) async throws {
        func policy(_ certificates: TestCertificates) -> ServerTrustPolicy {
            .performRevokedEvaluation(
                validateHost: true,
                revocation: stapled ? .stapledStatus : .list(path: certificates.revocationList.path))
        }
        #expect(try await code(.server, staple: stapled, policy) == nil)
        #expect(try await code(.revoked, staple: stapled, policy) == .tls)
        // A server without a stapled status.
        if stapled { #expect(try await code(.server, staple: false, policy) == .tls) }
    }

    @Test("K23: pinned certificates are the only ones to trust", arguments: Shown.direct)
    func pinnedCertificates(_ shown: Shown) async throws {
        // The server's own certificate is pinned.
        let own = try await code(shown) {
            .pinCertificates(
                certificates: [shown.identity($0).certificate.text], validateCertificateChain: true, validateHost: true)
        }
        #expect(own == ([.server, .selfSigned, .revoked].contains(shown) ? nil : .tls))
        // Another certificate is pinned, though the authority is trusted.
        let other = try await code(shown) {
            .pinCertificates(
                certificates: [$0.wildcard.certificate.text], validateCertificateChain: true, validateHost: true)
        }
        #expect(other == .tls)
        // Without validation of the chain, the exact certificate is accepted, whatever its dates.
        let unchained = try await code(shown) {
            .pinCertificates(
                certificates: [$0.wildcard.certificate.text, shown.identity($0).certificate.text],
                validateCertificateChain: false, validateHost: false)
        }
        #expect(unchained == nil)
        let unchainedOther = try await code(shown) {
            .pinCertificates(
                certificates: [$0.wildcard.certificate.text], validateCertificateChain: false, validateHost: false)
        }
        #expect(unchainedOther == .tls)
    }

    @Test("K23: a pinned authority is trusted for what it issued")
    func pinnedAuthority() async throws {
        func pin(_ certificates: TestCertificates) -> ServerTrustPolicy {
            .pinCertificates(
                certificates: [certificates.authority.text], validateCertificateChain: true, validateHost: true)
        }
        #expect(try await code(.server, trustsAuthority: false, pin) == nil)
        #expect(try await code(.selfSigned, trustsAuthority: false, pin) == .tls)
    }

    @Test("K23: pinned keys let the server with that key in, and nobody else", arguments: [true, false])
    func pinnedKeys(validatesChain: Bool) async throws {
        func pin(_ certificate: @escaping @Sendable (TestCertificates) -> String) -> (TestCertificates) throws
            -> ServerTrustPolicy?
        {
            {
                .pinPublicKeys(
                    publicKeys: [try #require(PublicKeyPin(certificate: certificate($0)))],
                    validateCertificateChain: validatesChain, validateHost: validatesChain)
            }
        }
        #expect(try await code(.server, pin { $0.server.certificate.text }) == nil)
        #expect(try await code(.server, pin { $0.wildcard.certificate.text }) == .tls)
        #expect(
            try await code(.expired, pin { $0.expired.certificate.text }) == (validatesChain ? .tls : nil))
        let none = try await code(.server) { _ in
            .pinPublicKeys(publicKeys: [], validateCertificateChain: validatesChain, validateHost: validatesChain)
        }
        #expect(none == .tls, "no pin at all lets nobody in")
    }

    /// The certificates of the chain that begins with the server's own.
    private static let pinned: [@Sendable (TestCertificates) -> String] = [
        { $0.chained.certificate.text }, { $0.intermediate.text }, { $0.authority.text },
    ]

    @Test(
        "the key of any certificate of the verified chain satisfies a pin, root and intermediate too",
        arguments: 0..<3)
    func pinnedKeyOfChain(_ place: Int) async throws {
        func policy(_ certificates: TestCertificates) throws -> ServerTrustPolicy? {
            let pin = try #require(PublicKeyPin(certificate: Self.pinned[place](certificates)))
            return .pinPublicKeys(publicKeys: [pin], validateCertificateChain: true, validateHost: true)
        }
        #expect(try await code(.chained, policy) == nil)
        #expect(try await code(.chained, trustsAuthority: false, policy) == .tls)
        #expect(try await code(.chainedExpired, policy) == .tls)
        #expect(try await code(.falselyChained, policy) == .tls)
        #expect(try await code(.issuedByServer, policy) == .tls)
        // The authority's own certificate is the root of this one too.
        #expect(try await code(.server, policy) == (place == 2 ? nil : .tls))
    }

    @Test("any certificate of the chain satisfies a certificate's pin", arguments: 0..<3)
    func pinnedCertificateOfChain(_ place: Int) async throws {
        func policy(_ certificates: TestCertificates) -> ServerTrustPolicy? {
            .pinCertificates(
                certificates: [Self.pinned[place](certificates)], validateCertificateChain: true, validateHost: true)
        }
        #expect(try await code(.chained, trustsAuthority: false, policy) == nil)
        #expect(try await code(.chainedExpired, policy) == .tls)
        #expect(try await code(.falselyChained, policy) == .tls)
        #expect(try await code(.issuedByServer, policy) == .tls)
    }

    @Test(
        "without validation of the chain, signatures must lead to the pinned certificate, whatever the dates",
        arguments: 0..<3)
    func pinnedCertificateOfSignedChain(_ place: Int) async throws {
        func policy(_ certificates: TestCertificates) -> ServerTrustPolicy? {
            .pinCertificates(
                certificates: [Self.pinned[place](certificates)], validateCertificateChain: false, validateHost: false)
        }
        #expect(try await code(.chained, trustsAuthority: false, policy) == nil)
        #expect(try await code(.chainedExpired, trustsAuthority: false, policy) == (place == 0 ? .tls : nil))
        #expect(try await code(.falselyChained, trustsAuthority: false, policy) == .tls)
        #expect(try await code(.issuedByServer, trustsAuthority: false, policy) == .tls)
    }

    @Test(
        "without validation of the chain, the keys of the certificates count that signatures lead to",
        arguments: [0, 1])
    func pinnedKeyOfSignedChain(_ place: Int) async throws {
        func policy(_ certificates: TestCertificates) throws -> ServerTrustPolicy? {
            let pin = try #require(PublicKeyPin(certificate: Self.pinned[place](certificates)))
            return .pinPublicKeys(publicKeys: [pin], validateCertificateChain: false, validateHost: false)
        }
        #expect(try await code(.chained, trustsAuthority: false, policy) == nil)
        #expect(try await code(.falselyChained, trustsAuthority: false, policy) == .tls)
        #expect(try await code(.issuedByServer, trustsAuthority: false, policy) == .tls)
    }

    @Test("a certificate's pin is the one that openssl makes of its key")
    func pin() async throws {
        let certificates = try await TestCertificates.shared
        #expect(
            PublicKeyPin(certificate: certificates.server.certificate.text)?.description
                == certificates.serverPublicKeyPin)
        #expect(PublicKeyPin("sha256//AAAA") == nil)
        let bytes = try #require(PEM.certificate(in: certificates.server.certificate.text))
        for end in bytes.indices { #expect(X509.subjectPublicKeyInfo(in: Array(bytes[..<end])) == nil) }
    }

    @Test("K23: disabled, everyone is trusted", arguments: Shown.direct)
    func disabled(_ shown: Shown) async throws {
        #expect(try await code(shown, trustsAuthority: false) { _ in .disableEvaluation } == nil)
    }

    @Test("K23: a closure of one's own sees what the server showed, and decides", arguments: Shown.direct)
    func custom(_ shown: Shown) async throws {
        let seen = Notes<ServerTrust>()
        let accepted = try await code(shown) { _ in
            .customEvaluation { trust, host in
                seen.add(trust)
                return host == "localhost"
            }
        }
        #expect(accepted == nil)
        let trust = try #require(seen.all.first)
        #expect(trust.host == "localhost")
        #expect(trust.isChainValid == [.server, .wrongHost, .revoked].contains(shown))
        let certificates = try await TestCertificates.shared
        #expect(
            PEM.certificate(in: trust.certificates.first ?? "")
                == PEM.certificate(in: shown.identity(certificates).certificate.text))
        #expect(try await code(shown) { _ in .customEvaluation { _, _ in false } } == .tls)
    }

    @Test("a host's own policy comes before a wildcard's, and a longer wildcard before a shorter")
    func wildcards() {
        func marked(_ path: String) -> ServerTrustPolicy {
            .performRevokedEvaluation(validateHost: true, revocation: .list(path: path))
        }
        let manager = ServerTrustPolicyManager(policies: [
            "a.Example.org": marked("own"), "*.example.org": marked("short"), "*.b.example.org": marked("long"),
        ])
        func mark(_ host: String) -> String? {
            guard case .performRevokedEvaluation(_, .list(let path))? = manager.serverTrustPolicy(forHost: host) else {
                return nil
            }
            return path
        }
        #expect(mark("a.example.org") == "own")
        #expect(mark("A.EXAMPLE.ORG.") == "own")
        #expect(mark("c.example.org") == "short")
        #expect(mark("x.b.example.org") == "long")
        #expect(mark("x.y.b.example.org") == "long")
        #expect(mark("example.org") == nil)
        #expect(mark("badexample.org") == nil)
        #expect(mark("a.example.org.evil.net") == nil)
    }

    @Test("a policy for a wildcard holds for the names beneath it and for no other")
    func wildcardHost() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.wildcard))
        let session = try Session(
            configuration: .test {
                $0.trustPolicies = ServerTrustPolicyManager(policies: ["*.wild.test": .disableEvaluation])
            }, delegate: SessionDelegate(), resolver: .init { _ in .success(["127.0.0.1"]) })
        let manager = try #require(SessionManager(session: session, delegate: session.delegate))
        #expect(await manager.request(nginx.url("/ok", host: "a.wild.test")).outcome.error == nil)
        #expect(await manager.request(nginx.url("/ok", host: "wild.test")).outcome.error?.code == .tls)
    }

    // MARK: Delegates

    @Test("K30: closures are asked about a server that the default would refuse, and about one that it would trust")
    func delegateDecides() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.selfSigned))
        let good = try await Nginx([.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server))
        let asked = Notes<Bool>()
        func outcome(_ nginx: Nginx, _ disposition: ChallengeDisposition, later: Bool) async throws -> TransferError? {
            // Trust persists on a kept connection, so that each case has its own manager.
            let manager = try SessionManager(configuration: .test())
            if later {
                manager.delegate.sessionDidReceiveChallengeWithCompletion = { _, challenge, completion in
                    asked.add(challenge.serverTrust?.isChainValid ?? false)
                    Task.detached { completion(disposition, nil) }
                }
            } else {
                manager.delegate.sessionDidReceiveChallenge = { _, challenge in
                    asked.add(challenge.serverTrust?.isChainValid ?? false)
                    return (disposition, nil)
                }
            }
            var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
            if nginx === good { request.caCertificates = certificates.authority.text }
            return await manager.request(request).outcome.error
        }
        for later in [false, true] {
            #expect(try await outcome(nginx, .useCredential, later: later) == nil)
            #expect(try await outcome(nginx, .performDefaultHandling, later: later)?.code == .tls)
            #expect(try await outcome(nginx, .rejectProtectionSpace, later: later)?.code == .tls)
            #expect(try await outcome(nginx, .cancelAuthenticationChallenge, later: later)?.code == .cancelled)
            #expect(try await outcome(good, .rejectProtectionSpace, later: later)?.code == .tls)
            #expect(try await outcome(good, .performDefaultHandling, later: later) == nil)
        }
        #expect(asked.all.contains(true) && asked.all.contains(false))
    }

    // MARK: Client certificates

    @Test("a server that wants a certificate gets it, as PEM, encrypted, and as PKCS #12", arguments: 0..<3)
    func clientCertificate(form: Int) async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 $ssl_client_s_dn;")],
            tls: .init(certificate: certificates.server, clientAuthority: certificates.authority.path))
        let identity =
            switch form {
            case 0:
                ClientIdentity(
                    certificate: certificates.client.certificate.text, key: certificates.client.key.text)
            case 1:
                ClientIdentity(
                    certificate: certificates.client.certificate.text, key: certificates.encryptedClientKey.text,
                    passphrase: certificates.passphrase)
            default:
                ClientIdentity(
                    pkcs12: try bytes(ofFileAt: certificates.clientPKCS12), passphrase: certificates.passphrase)
            }
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        #expect(await manager.request(request).validate().outcome.error?.httpStatus == 400)
        request.identity = identity
        #expect(try await manager.request(request).validate().string.contains("CN="))
        // Its connection must not be reused for a request without a certificate.
        request.identity = nil
        #expect(await manager.request(request).validate().outcome.error?.httpStatus == 400)
    }

    @Test(
        "K23: a connection whose server was refused serves nobody after that, whatever HTTP is spoken on it",
        arguments: [HTTPVersion.http1, .http2], [false, true])
    func refusedForGood(version: HTTPVersion, later: Bool) async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("/ok", "return 200 'fine';")], tls: .init(certificate: certificates.server),
            http2: version == .http2)
        let refuses = ServerTrustPolicy.customEvaluation { _, _ in false }
        let manager = try SessionManager(
            configuration: .test {
                $0.loops = 1
                $0.httpVersion = version
            },
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: later ? [:] : ["localhost": refuses]))
        if later {
            manager.delegate.sessionDidReceiveChallengeWithCompletion = { _, _, answer in
                Task { answer(.rejectProtectionSpace, nil) }
            }
        }
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        for _ in 0..<3 { #expect(await manager.request(request).outcome.error?.code == .tls) }
        await withTaskGroup(of: TransferError.Code?.self) { [request] group in
            for _ in 0..<10 { group.addTask { await manager.request(request).outcome.error?.code } }
            for await code in group { #expect(code == .tls) }
        }
        #expect(nginx.accesses().isEmpty)
    }

    @Test("a certificate that was accepted for one origin is asked about anew at another")
    func acceptedElsewhere() async throws {
        let certificates = try await TestCertificates.shared
        let tls = Nginx.TLS(certificate: certificates.selfSigned)
        let second = try await Nginx([.custom("/ok", "return 200 'fine';")], tls: tls)
        let first = try await Nginx([.redirect("/go", to: second.url("/ok", host: "localhost"))], tls: tls)
        let manager = try SessionManager(configuration: .test())
        let (asked, port) = (Notes<Int>(), first.port)
        manager.delegate.taskDidReceiveChallengeWithCompletion = { _, challenge, answer in
            asked.add(challenge.protectionSpace.port)
            let isKnown = challenge.protectionSpace.port == port
            Task { answer(isKnown ? .useCredential : .rejectProtectionSpace, nil) }
        }
        #expect(await manager.request(first.url("/go", host: "localhost")).outcome.error?.code == .tls)
        #expect(asked.all == [first.port, second.port])
        #expect(second.accesses().isEmpty)
    }
}
