import FoundationEssentials
import Glibc
import Synchronization

/// A private certificate authority and its certificates, created by the `openssl` program: P-256 keys, valid for thirty
/// days unless stated otherwise.
package final class TestCertificates: Sendable {
    /// A text file, usually PEM.
    package struct TextFile: Sendable {
        package let path: String
        package let text: String
    }

    /// A certificate and its private key.
    package struct Identity: Sendable {
        package let certificate: TextFile
        /// The certificate, followed by the authority's unless it is self-signed, as a server presents it. When curl
        /// checks a stapled OCSP response, it looks for the issuer only there.
        package let chain: TextFile
        package let key: TextFile
    }

    /// The self-signed certificate of the authority, which a client must trust.
    package let authority: TextFile
    /// A certificate for `localhost`, 127.0.0.1 and ::1.
    package let server: Identity
    /// A certificate for `wrong.example` only.
    package let wrongHost: Identity
    /// A certificate for `localhost` and 127.0.0.1 that was valid in January 2020.
    package let expired: Identity
    /// A self-signed certificate for `localhost` and 127.0.0.1.
    package let selfSigned: Identity
    /// The certificate of an authority that ``authority`` has signed.
    package let intermediate: TextFile
    /// A certificate for `localhost` and 127.0.0.1 by ``intermediate``; the chain has no root.
    package let chained: Identity
    /// As ``chained``, valid in January 2020.
    package let chainedExpired: Identity
    /// ``selfSigned`` with ``intermediate`` in its chain, which has not signed it.
    package let falselyChained: Identity
    /// A certificate for `localhost` that the key of ``server`` has signed, which is no authority.
    package let issuedByServer: Identity
    /// A certificate for `localhost` and 127.0.0.1 that is listed in ``revocationList``.
    package let revoked: Identity
    /// A certificate for `*.wild.test` only.
    package let wildcard: Identity
    /// A client certificate (`clientAuth`).
    package let client: Identity
    /// The key of ``client`` as PKCS #8, encrypted with ``passphrase``.
    package let encryptedClientKey: TextFile
    /// The certificate and key of ``client`` as PKCS #12, encrypted with ``passphrase``.
    package let clientPKCS12: String
    package let passphrase = "open sesame"
    /// The authority's certificate revocation list.
    package let revocationList: TextFile
    /// OCSP responses (DER) for stapling: ``server`` is good, ``revoked`` is revoked.
    package let goodResponse: String
    package let revokedResponse: String
    /// The SHA-256 of ``server``'s public key (SubjectPublicKeyInfo) as a curl pin: `sha256//BASE64`.
    package let serverPublicKeyPin: String
    private let directory: TemporaryDirectory

    /// The set shared by this process, created on first use and removed when the process ends.
    package static var shared: TestCertificates { get async throws { try await making.value } }

    private static let making = Task {
        let made = try await TestCertificates()
        leftover.withLock { $0 = made.directory.path }
        atexit { leftover.withLock { path in path.map { try? FileManager.default.removeItem(atPath: $0) } } }
        return made
    }
    private static let leftover = Mutex<String?>(nil)

    private init() async throws {
        directory = try TemporaryDirectory(mode: 0o755)
        let workshop = try Workshop(directory)
        authority = try await workshop.makeAuthority()
        let local = "DNS:localhost,IP:127.0.0.1"
        server = try await workshop.issue("server", for: "\(local),IP:::1")
        wrongHost = try await workshop.issue("wrong-host", for: "DNS:wrong.example")
        expired = try await workshop.issue(
            "expired", for: local, ["-startdate", "20200101000000Z", "-enddate", "20200131000000Z"])
        revoked = try await workshop.issue("revoked", for: local)
        wildcard = try await workshop.issue("wildcard", for: "DNS:*.wild.test")
        client = try await workshop.issue("client", for: "DNS:client.example", use: "clientAuth")
        selfSigned = try await workshop.makeSelfSigned("self-signed", for: local)
        intermediate = try await workshop.makeIntermediate("intermediate")
        chained = try await workshop.issue("chained", for: local, by: "intermediate")
        chainedExpired = try await workshop.issue(
            "chained-expired", for: local, by: "intermediate",
            ["-startdate", "20200101000000Z", "-enddate", "20200131000000Z"])
        falselyChained = try workshop.append(intermediate, to: selfSigned, as: "falsely-chained")
        issuedByServer = try await workshop.issue("issued-by-server", for: local, by: "server", appending: "authority")

        try await workshop.revoke(revoked)
        revocationList = try await workshop.makeRevocationList()
        goodResponse = try await workshop.makeResponse("good", about: server)
        revokedResponse = try await workshop.makeResponse("revoked", about: revoked)
        encryptedClientKey = try await workshop.encrypt(client.key, passphrase: passphrase)
        clientPKCS12 = try await workshop.bundle(client, passphrase: passphrase)
        serverPublicKeyPin = try await workshop.pin(of: server)
    }
}

/// The operations of the authority, each a call of `openssl`.
private struct Workshop {
    typealias TextFile = TestCertificates.TextFile
    typealias Identity = TestCertificates.Identity

    private let directory: TemporaryDirectory
    private let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]

    init(_ directory: TemporaryDirectory) throws {
        self.directory = directory
        try directory.makeDirectory("issued")
        try directory.write("", to: "index.txt")
        // A separate configuration excludes that of the machine.
        let configuration = """
            [req]
            distinguished_name = name
            [name]
            [ca]
            default_ca = authority
            [authority]
            database = \(directory.path)/index.txt
            new_certs_dir = \(directory.path)/issued
            certificate = \(directory.path)/authority.pem
            private_key = \(directory.path)/authority.key
            rand_serial = yes
            unique_subject = no
            default_md = sha256
            default_days = 30
            default_crl_days = 30
            policy = any
            [any]
            commonName = supplied

            """
        try directory.write(configuration, to: "openssl.cnf")
    }

    @discardableResult
    private func openssl(_ arguments: [String], input: String = "") async throws -> String {
        let outcome = try await run(
            ["openssl"] + arguments, environment: ["OPENSSL_CONF": directory.file("openssl.cnf")], input: input)
        guard outcome.succeeded else {
            throw Unusable(reason: "openssl \(arguments.joined(separator: " ")): \(outcome.error)")
        }
        return outcome.output
    }

    private func file(_ name: String) throws -> TextFile {
        TextFile(
            path: directory.file(name), text: try String(contentsOfFile: directory.file(name), encoding: .utf8))
    }

    private func identity(_ name: String, issuer: TextFile? = nil) throws -> Identity {
        let certificate = try file("\(name).pem")
        try directory.write(certificate.text + (issuer?.text ?? ""), to: "\(name).chain")
        return Identity(certificate: certificate, chain: try file("\(name).chain"), key: try file("\(name).key"))
    }

    func makeAuthority() async throws -> TextFile {
        try await openssl(
            ["req", "-x509", "-days", "30", "-subj", "/CN=dld test authority"] + newKey + [
                "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
                "-addext", "subjectKeyIdentifier=hash",
                "-keyout", directory.file("authority.key"), "-out", directory.file("authority.pem"),
            ])
        return try file("authority.pem")
    }

    func makeSelfSigned(_ name: String, for names: String) async throws -> Identity {
        try await openssl(
            ["req", "-x509", "-days", "30", "-subj", "/CN=\(name)"] + newKey + [
                "-addext", "subjectAltName=\(names)", "-addext", "basicConstraints=CA:FALSE",
                "-keyout", directory.file("\(name).key"), "-out", directory.file("\(name).pem"),
            ])
        return try identity(name)
    }

    /// Creates the certificate of an authority that the authority has signed.
    func makeIntermediate(_ name: String) async throws -> TextFile {
        let extensions = """
            basicConstraints = critical,CA:TRUE,pathlen:0
            keyUsage = critical,keyCertSign,cRLSign
            subjectKeyIdentifier = hash
            authorityKeyIdentifier = keyid

            """
        try directory.write(extensions, to: "\(name).ext")
        try await openssl(
            ["req", "-new", "-subj", "/CN=dld test \(name)"] + newKey + [
                "-keyout", directory.file("\(name).key"), "-out", directory.file("\(name).csr"),
            ])
        try await openssl([
            "ca", "-batch", "-notext", "-in", directory.file("\(name).csr"), "-out", directory.file("\(name).pem"),
            "-extfile", directory.file("\(name).ext"),
        ])
        return try file("\(name).pem")
    }

    /// Returns an identity whose chain has a further certificate at its end.
    func append(_ certificate: TextFile, to identity: Identity, as name: String) throws -> Identity {
        try directory.write(identity.chain.text + certificate.text, to: "\(name).chain")
        return Identity(certificate: identity.certificate, chain: try file("\(name).chain"), key: identity.key)
    }

    /// - Parameters:
    ///   - issuer: the name of the issuer's files, whether or not it is an authority.
    ///   - last: the name of a certificate that is appended to the chain.
    func issue(
        _ name: String, for names: String, use: String = "serverAuth", by issuer: String = "authority",
        appending last: String? = nil, _ settings: [String] = []
    ) async throws -> Identity {
        let extensions = """
            basicConstraints = CA:FALSE
            keyUsage = critical,digitalSignature
            extendedKeyUsage = \(use)
            subjectAltName = \(names)
            subjectKeyIdentifier = hash
            authorityKeyIdentifier = keyid

            """
        try directory.write(extensions, to: "\(name).ext")
        try await openssl(
            ["req", "-new", "-subj", "/CN=\(name)"] + newKey + [
                "-keyout", directory.file("\(name).key"), "-out", directory.file("\(name).csr"),
            ])
        try await openssl(
            [
                "ca", "-batch", "-notext", "-in", directory.file("\(name).csr"),
                "-out", directory.file("\(name).pem"), "-extfile", directory.file("\(name).ext"),
                "-cert", directory.file("\(issuer).pem"), "-keyfile", directory.file("\(issuer).key"),
            ] + settings)
        let made = try identity(name, issuer: try file("\(issuer).pem"))
        guard let last else { return made }
        return try append(try file("\(last).pem"), to: made, as: name)
    }

    func revoke(_ identity: Identity) async throws {
        try await openssl(["ca", "-revoke", identity.certificate.path])
    }

    func makeRevocationList() async throws -> TextFile {
        try await openssl(["ca", "-gencrl", "-out", directory.file("revoked.crl")])
        return try file("revoked.crl")
    }

    /// Creates a response signed by the authority with the certificate's status in its index (RFC 6960).
    func makeResponse(_ name: String, about identity: Identity) async throws -> String {
        let authority = directory.file("authority.pem")
        let answer = directory.file("\(name).ocsp")
        try await openssl([
            "ocsp", "-index", directory.file("index.txt"), "-CA", authority, "-rsigner", authority,
            "-rkey", directory.file("authority.key"), "-issuer", authority, "-cert", identity.certificate.path,
            "-no_nonce", "-noverify", "-ndays", "30", "-respout", answer,
        ])
        return answer
    }

    func encrypt(_ key: TextFile, passphrase: String) async throws -> TextFile {
        try await openssl([
            "pkcs8", "-topk8", "-in", key.path, "-passout", "pass:\(passphrase)",
            "-out", directory.file("client-encrypted.key"),
        ])
        return try file("client-encrypted.key")
    }

    func bundle(_ identity: Identity, passphrase: String) async throws -> String {
        let bundle = directory.file("client.p12")
        try await openssl([
            "pkcs12", "-export", "-in", identity.certificate.path, "-inkey", identity.key.path,
            "-passout", "pass:\(passphrase)", "-out", bundle,
        ])
        return bundle
    }

    func pin(of identity: Identity) async throws -> String {
        let key = directory.file("pin.der")
        let digest = directory.file("pin.sha256")
        try await openssl(["pkey", "-in", identity.key.path, "-pubout", "-outform", "DER", "-out", key])
        try await openssl(["dgst", "-sha256", "-binary", "-out", digest, key])
        return "sha256//" + (try Data(contentsOf: URL(filePath: digest))).base64EncodedString()
    }
}
