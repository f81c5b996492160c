import TestSupport
import Testing

@testable import Transfer

@Suite("The pins in the messages of refused servers")
struct PinsOfRefusedServersTests {
    private func error(
        _ certificates: TestCertificates, _ identity: TestCertificates.Identity, _ policy: ServerTrustPolicy
    ) async throws -> TransferError? {
        let nginx = try await Nginx([.custom("/ok", "return 200 'fine';")], tls: .init(certificate: identity))
        let manager = try SessionManager(
            configuration: .test(),
            serverTrustPolicyManager: ServerTrustPolicyManager(policies: ["localhost": policy]))
        var request = TransferRequest(url: nginx.url("/ok", host: "localhost"))
        request.caCertificates = certificates.authority.text
        return await manager.request(request).outcome.error
    }

    @Test("a failed pin names the host and the keys that could be pinned", arguments: [true, false])
    func failedPin(validatesChain: Bool) async throws {
        let certificates = try await TestCertificates.shared
        let other = try #require(PublicKeyPin(certificate: certificates.wildcard.certificate.text))
        func policy(_ pin: PublicKeyPin) -> ServerTrustPolicy {
            .pinPublicKeys(publicKeys: [pin], validateCertificateChain: validatesChain, validateHost: validatesChain)
        }
        let error = try #require(try await error(certificates, certificates.server, policy(other)))
        #expect(error.code == .tls)
        let words = "the certificate of localhost was refused; the server's public keys are "
        try #require(error.message.hasPrefix(words))
        let pins = error.message.dropFirst(words.count).split(separator: ", ").map(String.init)
        #expect(pins.first == certificates.serverPublicKeyPin)
        #expect(pins.allSatisfy { PublicKeyPin($0) != nil })
        // The pin of the message is the one that lets the server in.
        let pin = try #require(PublicKeyPin(pins[0]))
        #expect(try await self.error(certificates, certificates.server, policy(pin)) == nil)
    }

    @Test("a custom evaluation that refuses, and one that the default evaluation failed before, name them too")
    func failedEvaluation() async throws {
        let certificates = try await TestCertificates.shared
        let refusal = try await error(certificates, certificates.server, .customEvaluation { _, _ in false })
        #expect(refusal?.message.contains(certificates.serverPublicKeyPin) == true)
        let own = try #require(PublicKeyPin(certificate: certificates.selfSigned.certificate.text)).description
        let failure = try await error(certificates, certificates.selfSigned, .customEvaluation { _, _ in false })
        #expect(failure?.message.contains("localhost") == true && failure?.message.contains(own) == true)
        let pinned = try await error(
            certificates, certificates.server,
            .pinCertificates(
                certificates: [certificates.wildcard.certificate.text], validateCertificateChain: false,
                validateHost: false))
        #expect(pinned?.message.contains(certificates.serverPublicKeyPin) == true)
    }

    @Test("at most four keys are named, and unreadable certificates none")
    func bounded() async throws {
        let der = try #require(PEM.certificate(in: try await TestCertificates.shared.server.certificate.text))
        let pin = try #require(PublicKeyPin(der: der))
        var trust = ServerTrust(host: "h", certificates: [], isChainValid: true)
        #expect(TransferError.untrusted(trust).message == "the certificate of h was refused")
        trust.chain = Array(repeating: der, count: 6)
        let text = TransferError.untrusted(trust).message
        #expect(text.split(separator: "sha256//").count == 5 && text.hasSuffix("\(pin) and 2 more"))
        trust.chain = []
        trust.certificates = ["no certificate"]
        #expect(TransferError.untrusted(trust).message == "the certificate of h was refused")
    }
}
