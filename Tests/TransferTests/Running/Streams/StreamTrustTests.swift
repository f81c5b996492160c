import Curl
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Whom stream tasks trust")
struct StreamTrustTests {
    private let echo: TLSEcho
    private let other: TLSEcho

    init() async throws {
        echo = try await TLSEcho()
        other = try await TLSEcho(names: "DNS:other.test")
    }

    /// - Returns: the error of a stream with TLS to `server`; `nil` if its response was received.
    private func failure(
        at server: TLSEcho, under policy: ServerTrustPolicy? = nil, trusting pem: String? = nil,
        identity: ClientIdentity? = nil, _ change: (SessionDelegate) -> Void = { _ in }
    ) async throws -> TransferError? {
        let delegate = SessionDelegate()
        change(delegate)
        let session = try Session(
            configuration: .test {
                if let policy { $0.trustPolicies = ServerTrustPolicyManager(policies: ["127.0.0.1": policy]) }
            }, delegate: delegate)
        var request = TransferRequest(url: "tcp://127.0.0.1:\(server.port)")
        request.caCertificates = pem
        request.identity = identity
        let task = session.streamTask(with: request)
        task.resume()
        defer { task.cancel() }
        do throws(TransferError) {
            try await task.startSecureConnection()
            try await task.write(Array("hello\n".utf8))
            let answer = try await task.readData(ofMinLength: 6)
            #expect(answer.data == Array("olleh\n".utf8))
            return nil
        } catch {
            #expect(task.bytesSent == 0)
            return error
        }
    }

    @Test("K23: keys and certificates that are pinned let their own server through and no other")
    func pins() async throws {
        let key = try #require(PublicKeyPin(certificate: echo.certificate))
        for (server, isGood) in [(echo, true), (other, false)] {
            let keys = ServerTrustPolicy.pinPublicKeys(
                publicKeys: [key], validateCertificateChain: false, validateHost: false)
            #expect(try await failure(at: server, under: keys)?.code == (isGood ? nil : .tls))
            for validates in [false, true] {
                let certificates = ServerTrustPolicy.pinCertificates(
                    certificates: [echo.certificate], validateCertificateChain: validates, validateHost: false)
                #expect(try await failure(at: server, under: certificates)?.code == (isGood ? nil : .tls))
            }
        }
        let none = ServerTrustPolicy.pinPublicKeys(
            publicKeys: [], validateCertificateChain: false, validateHost: false)
        #expect(try await failure(at: echo, under: none)?.code == .tls)
    }

    @Test("K23: a policy of one's own may refuse whom the evaluation of the chain trusts, and is not asked otherwise")
    func custom() async throws {
        let shown = Notes<ServerTrust>()
        let accepting = ServerTrustPolicy.customEvaluation { trust, _ in
            shown.add(trust)
            return true
        }
        #expect(try await failure(at: echo, under: accepting, trusting: echo.certificate) == nil)
        // The policy itself must judge a name that is not the host's.
        #expect(try await failure(at: other, under: accepting, trusting: other.certificate) == nil)
        #expect(try await failure(at: echo, under: accepting)?.code == .tls)
        #expect(shown.all.map(\.isChainValid) == [true, true])
        #expect(shown.all.map(\.host) == ["127.0.0.1", "127.0.0.1"])
        #expect(shown.all.allSatisfy { $0.certificates.count == 1 })
        let refusing = ServerTrustPolicy.customEvaluation { _, _ in false }
        #expect(try await failure(at: echo, under: refusing, trusting: echo.certificate)?.code == .tls)
        #expect(try await failure(at: echo, under: .disableEvaluation) == nil)
    }

    @Test("a delegate may refuse whom the policy trusts, at once or later, and cannot trust whom it refuses")
    func delegate() async throws {
        typealias Challenge = AuthenticationChallenge
        let asked = Notes<ProtectionSpace>()
        for (disposition, code) in [
            (ChallengeDisposition.useCredential, TransferError.Code?.none), (.performDefaultHandling, nil),
            (.cancelAuthenticationChallenge, .cancelled), (.rejectProtectionSpace, .tls),
        ] {
            let atOnce = try await failure(at: echo, trusting: echo.certificate) { delegate in
                delegate.sessionDidReceiveChallenge = { _, challenge in
                    asked.add(challenge.protectionSpace)
                    return (disposition, nil)
                }
            }
            #expect(atOnce?.code == code)
            let later = try await failure(at: echo, trusting: echo.certificate) { delegate in
                delegate.taskDidReceiveChallengeWithCompletion = { _, _, completion in
                    try? startThread {
                        usleep(20_000)
                        completion(disposition, nil)
                    }
                }
            }
            #expect(later?.code == code)
        }
        #expect(asked.all.count == 4)
        #expect(asked.all.allSatisfy { $0.host == "127.0.0.1" && $0.port == echo.port })
        // A completion that is released without a call leaves the decision to the policy.
        let dropped = try await failure(at: echo, trusting: echo.certificate) { delegate in
            delegate.taskDidReceiveChallengeWithCompletion = { _, _, _ in }
        }
        #expect(dropped == nil)
        let unknown = try await failure(at: echo) { delegate in
            delegate.sessionDidReceiveChallenge = { _, _ in (.useCredential, nil) }
        }
        #expect(unknown?.code == .tls)
    }

    @Test("what the peer says before the verdict is given to nobody who did not want that peer")
    func unjudged() async throws {
        let port = echo.port
        let release = try WakeUp(counting: true)
        let delegate = SessionDelegate()
        let asked = Notes<Int>()
        delegate.sessionDidReceiveChallengeWithCompletion = { _, _, completion in
            asked.add(1)
            try? startThread {
                release.wait()
                completion(.rejectProtectionSpace, nil)
            }
        }
        let session = try Session(configuration: .test(), delegate: delegate)
        var request = TransferRequest(url: "tcp://127.0.0.1:\(port)")
        request.caCertificates = echo.certificate
        let task = session.streamTask(with: request)
        task.resume()
        let secured = Task { () -> TransferError? in
            do throws(TransferError) {
                try await task.startSecureConnection()
                return nil
            } catch {
                return error
            }
        }
        try await eventually(that: "the delegate is asked") { asked.all == [1] }
        let bytes = Array("early".utf8)
        await withCheckedContinuation { continuation in
            session.perform(task) { run in
                bytes.withUnsafeBytes { task.channel.received($0) }
                continuation.resume()
            }
        }
        release.signal()
        #expect(await secured.value?.code == .tls)
        try await eventually(that: "it is complete") { task.state == .completed }
        #expect(task.channel.heldBytes == 0)
    }

    @Test("a client's certificate goes along, and the connection stays")
    func identity() async throws {
        let client = try await TestCertificates.shared.client
        let identity = ClientIdentity(certificate: client.certificate.text, key: client.key.text)
        #expect(try await failure(at: echo, trusting: echo.certificate, identity: identity) == nil)
    }
}
