import TestSupport
import Testing

@testable import Transfer

@Suite("Offers of authentication (RFC 9110, section 11)")
struct AuthenticationOfferTests {
    private typealias Offer = AuthenticationOffer

    @Test("one field may hold several challenges (RFC 9110, section 11.6.1)")
    func several() {
        let offers = Offer.parse(
            #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#)
        #expect(
            offers == [
                Offer(scheme: "basic", parameters: ["realm": "simple"]),
                Offer(scheme: "newauth", parameters: ["realm": "apps", "type": "1", "title": #"Login to "apps""#]),
            ])
    }

    @Test(
        "what is written well or a little badly is read",
        arguments: [
            ("Negotiate", [Offer(scheme: "negotiate")]),
            ("Negotiate YII=", [Offer(scheme: "negotiate", token68: "YII=")]),
            ("Negotiate, NTLM", [Offer(scheme: "negotiate"), Offer(scheme: "ntlm")]),
            (
                "NTLM TlRM-._~+/TVNTUAAC==, Basic realm=x",
                [
                    Offer(scheme: "ntlm", token68: "TlRM-._~+/TVNTUAAC=="),
                    Offer(scheme: "basic", parameters: ["realm": "x"]),
                ]
            ),
            ("BASIC ReAlM=Aa", [Offer(scheme: "basic", parameters: ["realm": "Aa"])]),
            (#"Basic realm="a, b=c, Digest x""#, [Offer(scheme: "basic", parameters: ["realm": "a, b=c, Digest x"])]),
            (#"Basic realm="\a\\\"\,""#, [Offer(scheme: "basic", parameters: ["realm": #"a\","#])]),
            (#"Basic realm="""#, [Offer(scheme: "basic", parameters: ["realm": ""])]),
            (#"Basic realm="Köln""#, [Offer(scheme: "basic", parameters: ["realm": "Köln"])]),
            // Empty list elements are ignored (RFC 9110, section 5.6.1.2).
            (",, ,Basic realm=x,, ,\t,a=b,", [Offer(scheme: "basic", parameters: ["realm": "x", "a": "b"])]),
            ("Digest ,realm=x", [Offer(scheme: "digest", parameters: ["realm": "x"])]),
            ("Basic  \t realm \t=\t \"x\" \t", [Offer(scheme: "basic", parameters: ["realm": "x"])]),
            ("Basic\trealm=x", [Offer(scheme: "basic", parameters: ["realm": "x"])]),
            ("Basic realm=x,Basic realm=y", ["x", "y"].map { Offer(scheme: "basic", parameters: ["realm": $0]) }),
            ("Basic realm=x, REALM=y", [Offer(scheme: "basic", parameters: ["realm": "x"])]),
        ])
    func reads(value: String, offers: [AuthenticationOffer]) {
        #expect(Offer.parse(value) == offers)
    }

    @Test(
        "what cannot be read is left out, and what belongs to it goes to no other offer",
        arguments: [
            ("", []), (" , ,, ", []), ("realm=x", []), ("=", []), ("\"", []), ("\"Basic realm=x\"", []),
            ("Basic;realm=x", []), ("@@@ realm=y, a=b", []),
            ("Basic realm=a b", [Offer(scheme: "basic")]),
            ("Basic realm=\"a\" b, c=d", [Offer(scheme: "basic", parameters: ["c": "d"])]),
            ("Basic realm=a/b, c=d", [Offer(scheme: "basic", parameters: ["c": "d"])]),
            ("Basic realm=a, c=, d=e", [Offer(scheme: "basic", parameters: ["realm": "a", "d": "e"])]),
            ("Basic realm=a, @@ x, c=d", [Offer(scheme: "basic", parameters: ["realm": "a"])]),
            (
                "Basic realm=a, =c, Bearer",
                [Offer(scheme: "basic", parameters: ["realm": "a"]), Offer(scheme: "bearer")]
            ),
            ("Negotiate abc=, a=b", [Offer(scheme: "negotiate", token68: "abc=")]),
            (#"Basic realm="a, Bearer"#, [Offer(scheme: "basic")]),
            (#"Basic realm="a\"#, [Offer(scheme: "basic")]),
            (#"Basic realm="a"b"c, d", e=f"#, [Offer(scheme: "basic", parameters: ["e": "f"])]),
            ("Basic realm=\"a\r\nX: y\", e=f", [Offer(scheme: "basic", parameters: ["e": "f"])]),
            ("Basic realm=\"a\u{0}\", e=f", [Offer(scheme: "basic", parameters: ["e": "f"])]),
            ("Basic realm=a\r\n", [Offer(scheme: "basic")]),
        ])
    func leavesOut(value: String, offers: [AuthenticationOffer]) {
        #expect(Offer.parse(value) == offers)
    }

    @Test("several lines are one list; a quotation that does not end spoils its own line alone")
    func lines() {
        #expect(
            Offer.parse(["Digest realm=a", "nonce=b, Basic realm=\"x", "Bearer"]) == [
                Offer(scheme: "digest", parameters: ["realm": "a", "nonce": "b"]), Offer(scheme: "basic"),
                Offer(scheme: "bearer"),
            ])
    }

    @Test("an answer's lines are found, those of a proxy apart")
    func ofAnAnswer() {
        let head = head(
            401,
            [
                "WWW-Authenticate: Basic realm=x", "Proxy-Authenticate: Basic realm=proxy",
                "www-authenticate: Digest realm=y, nonce=z",
            ])
        #expect(head.authenticationOffers.map(\.scheme) == ["basic", "digest"])
        #expect(head.proxyAuthenticationOffers.map(\.parameters) == [["realm": "proxy"]])
    }

    @Test("a line that goes beyond the limit is left out, and those after it")
    func size() {
        let long = "Basic realm=" + String(repeating: "x", count: Offer.maximumInputSize)
        #expect(Offer.parse(["Bearer", long, "Negotiate"]) == [Offer(scheme: "bearer")])
        #expect(Offer.parse(String(long.prefix(Offer.maximumInputSize))).count == 1)
        #expect(Offer.parse(String(long.prefix(Offer.maximumInputSize + 1))).isEmpty)
    }

    @Test("there are so many offers and so many parameters at most")
    func counts() {
        let schemes = (0..<100).map { "S\($0) a=b" }.joined(separator: ", ")
        #expect(Offer.parse(schemes).map(\.scheme) == (0..<Offer.maximumOffers).map { "s\($0)" })
        #expect(Offer.parse(Array(repeating: "Basic", count: 100)).count == Offer.maximumOffers)
        #expect(Offer.parse([schemes, "c=d"]).last?.parameters == ["a": "b"])
        let parameters = (0..<100).map { "p\($0)=\($0)" }.joined(separator: ", ")
        let offers = Offer.parse("Digest \(parameters), Basic realm=x")
        #expect(offers.first?.parameters.count == Offer.maximumParameters)
        #expect(offers.first?.parameters["p63"] == "63")
        #expect(offers.last?.parameters == ["realm": "x"])
    }

    @Test("whatever comes, reading ends and keeps to the limits")
    func garbage() {
        let alphabet = Array(" \t,,==\"\"\\\\Bad1;/@\r\n\u{0}é")
        var state: UInt64 = 1
        for _ in 0..<5_000 {
            var text = ""
            for _ in 0..<40 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                text.append(alphabet[Int((state >> 33) % UInt64(alphabet.count))])
            }
            for offer in Offer.parse(text) {
                #expect(!offer.scheme.isEmpty && offer.scheme == offer.scheme.lowercased())
                #expect(offer.token68 == nil || offer.parameters.isEmpty)
            }
        }
        for character in [",", "\"", "\\", "=", "a ", "a=", "a,", "\"\\"] {
            let text = String(repeating: character, count: Offer.maximumInputSize / character.utf8.count)
            #expect(Offer.parse(text).count <= Offer.maximumOffers)
        }
    }
}
