import HTTPTypes
import Testing

@testable import Transfer

@Suite("The Digest scheme (RFC 7616)")
struct DigestAuthorizationTests {
    private static let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
    private static let clientNonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    private static let mufasa = Credential(user: "Mufasa", password: "Circle of Life")

    private func digest(_ parameters: String) throws -> DigestAuthorization {
        try #require(AuthenticationOffer.parse("Digest " + parameters).first.flatMap(DigestAuthorization.init))
    }

    private func answer(
        _ digest: DigestAuthorization, _ credential: Credential = mufasa, method: HTTPRequest.Method = .get,
        target: String = "/dir/index.html", count: UInt32 = 1, clientNonce: String = clientNonce
    ) -> String? {
        digest.fieldValue(
            for: credential, method: method, target: target, nonceCount: count, clientNonce: clientNonce)
    }

    /// Parses an Authorization value as the server does.
    private func fields(_ value: String?) -> [String: String] {
        value.flatMap { AuthenticationOffer.parse($0).first?.parameters } ?? [:]
    }

    @Test("the example of RFC 7616, section 3.9.1: both algorithms, SHA-256 chosen")
    func example() throws {
        let offers = ["SHA-256", "MD5"].reversed().map { algorithm in
            """
            Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
            nonce="\(Self.nonce)", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUo5tdS"
            """
        }
        let chosen = try #require(DigestAuthorization.best(of: AuthenticationOffer.parse(offers)))
        #expect(
            answer(chosen) == """
                Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=SHA-256, \
                nonce="\(Self.nonce)", nc=00000001, cnonce="\(Self.clientNonce)", qop=auth, \
                response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1", \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUo5tdS"
                """)
        let weaker = try #require(AuthenticationOffer.parse(offers).first.flatMap(DigestAuthorization.init))
        #expect(weaker.algorithm == .md5)
        #expect(fields(answer(weaker))["response"] == "8ca523f5e9506fed4657c9700eebdbec")
        #expect(fields(answer(weaker))["algorithm"] == "MD5")
    }

    @Test("the example of RFC 2617, section 3.5: no algorithm named, none answered")
    func olderExample() throws {
        let digest = try digest(
            """
            realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", \
            opaque="5ccc069c403ebaf9f0171e9517f40e41"
            """)
        let credential = Credential(user: "Mufasa", password: "Circle Of Life")
        #expect(
            answer(digest, credential, clientNonce: "0a4f113b") == """
                Digest username="Mufasa", realm="testrealm@host.com", uri="/dir/index.html", \
                nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", nc=00000001, cnonce="0a4f113b", qop=auth, \
                response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41"
                """)
    }

    @Test("without qop the answer is that of RFC 2069, and nothing of the client's goes into it")
    func oldest() throws {
        let digest = try digest(#"realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093""#)
        let fields = fields(answer(digest, Credential(user: "Mufasa", password: "Circle Of Life")))
        #expect(fields["response"] == "670fd8c2df070c60b045671b8b24ff02")
        #expect(Set(fields.keys) == ["username", "realm", "uri", "nonce", "response"])
    }

    // The expected values were computed with Python's hashlib.
    @Test(
        "keys of a session hold the nonces",
        arguments: [
            ("md5-SESS", "MD5-sess", "e783283f46242139c486a698fec7211d"),
            ("SHA-256-sess", "SHA-256-sess", "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
        ])
    func sessions(offered: String, named: String, response: String) throws {
        let digest = try digest(
            #"realm="http-auth@example.org", qop=auth, algorithm=\#(offered), nonce="\#(Self.nonce)""#)
        #expect(fields(answer(digest))["response"] == response)
        #expect(fields(answer(digest))["algorithm"] == named)
    }

    @Test("method, query and count go into the digest")
    func otherRequest() throws {
        let digest = try digest(
            #"realm="http-auth@example.org", qop=auth, algorithm=SHA-256, nonce="\#(Self.nonce)""#)
        let fields = fields(answer(digest, method: .put, target: "/a?b=c", count: 0xABCD))
        #expect(fields["response"] == "83e0e4e2b05e9fd838e230599f162f196911f9edb97e55977d7367d4c05fe78a")
        #expect(fields["uri"] == "/a?b=c")
        #expect(fields["nc"] == "0000abcd")
        #expect(self.fields(answer(digest, count: .max))["nc"] == "ffffffff")
    }

    @Test("a name goes out as a digest where the server asks for that (RFC 7616, section 3.4.4)")
    func userHash() throws {
        let digest = try digest(
            """
            realm="api@example.org", qop="auth", algorithm=SHA-256, charset=UTF-8, userhash=true, \
            nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK"
            """)
        let fields = fields(
            answer(
                digest, Credential(user: "Jäsøn Doe", password: "Secret, or not?"), target: "/doe.json",
                clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm"))
        #expect(fields["username"] == "5a1a8a47df5c298551b9b42ba9b05835174a5bd7d511ff7fe9191d8e946fc4e7")
        #expect(fields["response"] == "06d0c14162099f487a92ebceaf71097534ee5f90d858386449c337ab69f7f6b8")
        #expect(fields["userhash"] == "true")
    }

    @Test("a name beyond ASCII takes the extended form with a server that speaks of charsets")
    func extendedName() throws {
        let credential = Credential(user: "Jäsøn Doe", password: "x")
        let newer = answer(try digest("realm=r, nonce=n, qop=auth, charset=utf-8"), credential)
        #expect(newer?.hasPrefix("Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, realm=") == true)
        let older = answer(try digest("realm=r, nonce=n, qop=auth"), credential)
        #expect(older?.hasPrefix(#"Digest username="Jäsøn Doe", realm="#) == true)
        let plain = answer(try digest("realm=r, nonce=n, qop=auth, charset=utf-8"))
        #expect(plain?.hasPrefix(#"Digest username="Mufasa", "#) == true)
    }

    @Test("quotation marks and backslashes are escaped where they are quoted, and hashed as they are")
    func escapes() throws {
        let digest = try digest(#"realm="r\"\\", nonce="n", qop=auth"#)
        let value = answer(
            digest, Credential(user: #"a"b\c"#, password: "p"), target: "/", clientNonce: "c")
        #expect(value?.hasPrefix(#"Digest username="a\"b\\c", realm="r\"\\", "#) == true)
        #expect(fields(value)["response"] == "74d5980e8bcbed863937b6ed34ee30ac")
    }

    @Test(
        "a name with a control character is refused",
        arguments: ["a\r\nX: y", "a\rb", "a\nb", "\u{0}", "a\tb", "\u{7F}", "a\u{9B}b"])
    func hostileNames(user: String) throws {
        for hash in ["true", "false"] {
            let digest = try digest("realm=r, nonce=n, qop=auth, charset=UTF-8, userhash=\(hash)")
            #expect(answer(digest, Credential(user: user, password: "p")) == nil)
        }
    }

    @Test("a target or a client's nonce that is no single word is refused", arguments: ["", "/a b", "/a\r\nb", "/\t"])
    func hostileTargets(text: String) throws {
        let digest = try digest("realm=r, nonce=n, qop=auth")
        #expect(answer(digest, target: text) == nil)
        #expect(answer(digest, clientNonce: text) == nil)
    }

    @Test(
        "an offer that cannot be answered is none",
        arguments: [
            "Basic realm=x, nonce=n", "Digest", "Digest realm=r", "Digest nonce=n", "Digest abc==",
            "Digest realm=r, nonce=n, qop=auth-int", "Digest realm=r, nonce=n, qop=\"other\"",
            "Digest realm=r, nonce=n, qop=auth, algorithm=SHA-512-256",
            "Digest realm=r, nonce=n, qop=auth, algorithm=\"\"", "Digest realm=r, nonce=n, algorithm=MD5-sess",
            "Digest realm=\"r\u{85}\", nonce=n, qop=auth",
        ])
    func unanswerable(offer: String) throws {
        let offers = AuthenticationOffer.parse(offer)
        #expect(DigestAuthorization(try #require(offers.first)) == nil)
        #expect(DigestAuthorization.best(of: offers) == nil)
    }

    @Test(
        "the strongest offer is chosen, the first of equals",
        arguments: [
            ("Digest realm=a, nonce=n, algorithm=MD5, qop=auth, Digest realm=b, nonce=n, algorithm=SHA-256", "b"),
            ("Digest realm=a, nonce=n, Digest realm=b, nonce=n, qop=auth", "b"),
            ("Digest realm=a, nonce=n, qop=auth, Digest realm=b, nonce=n, qop=auth, algorithm=MD5-sess", "a"),
            (
                "Digest realm=a, nonce=n, qop=auth, algorithm=SHA-512-256, Basic realm=c, Digest realm=b, nonce=n",
                "b"
            ),
        ])
    func best(line: String, realm: String) {
        #expect(DigestAuthorization.best(of: AuthenticationOffer.parse(line))?.realm == realm)
    }

    @Test("a nonce too old is told from a wrong password")
    func stale() throws {
        #expect(try digest("realm=r, nonce=n, stale=TRUE").isStale)
        #expect(try !digest("realm=r, nonce=n, stale=false").isStale)
        #expect(try !digest("realm=r, nonce=n").isStale)
    }
}
