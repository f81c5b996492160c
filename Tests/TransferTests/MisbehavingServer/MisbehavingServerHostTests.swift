import TestSupport
import Testing

@testable import Transfer

@Suite("Liars: hosts, connections, redirects")
struct MisbehavingServerHostTests {
    private static func honest(_ question: MisbehavingServer.Question) -> MisbehavingResponse {
        MisbehavingResponse(honest: MisbehavingServer.a, to: question)
    }

    /// Cuts the first response, so that a second request is needed.
    private static func first(_ question: MisbehavingServer.Question) -> MisbehavingResponse {
        question.number == 0 ? honest(question).cut(after: honest(question).length * 6 / 10) : honest(question)
    }

    /// Returns a server that allows `count` concurrent connections and responds to the others with `otherwise`.
    private static func allowing(_ count: Int, _ name: String, _ otherwise: @escaping MisbehavingServer.Answering)
        -> Lie
    {
        Lie("F49 \(count) connections at once, the others \(name)") { question in
            question.others < count ? honest(question) : otherwise(question)
        }.but { $0.mostRequests = 300 }
    }

    private static let page = MisbehavingResponse(
        200, ["Content-Type: text/html"], text: "<html>too many connections</html>")
    private static let pageAsPart = MisbehavingResponse(
        206, ["Content-Type: text/html", "Content-Range: bytes 0-32/33"], text: "<html>too many connections</html>")

    private static func status(_ status: Int, _ retryAfter: String?) -> MisbehavingResponse {
        MisbehavingResponse(status, retryAfter.map { ["Retry-After: \($0)"] } ?? [], text: "not now")
    }

    static let limits: [Lie] = [1, 2].flatMap { count in
        [
            allowing(count, "are refused with 429") { _ in status(429, "1") },
            allowing(count, "are refused with 503") { _ in status(503, nil) },
            allowing(count, "are refused with 403") { _ in status(403, nil) },
            allowing(count, "are reset") { _ in .raw([], .reset) },
            allowing(count, "are closed") { _ in .raw([], .close) },
            allowing(count, "hang") { _ in .raw([], .hang) },
            allowing(count, "get a page that says so") { _ in page },
            allowing(count, "get that page as a part") { _ in pageAsPart },
            allowing(count, "hang after the head") { honest($0).cut(after: 0, .hang) },
        ]
    }

    /// Returns a server that allows one connection at a time and detects the end of a response late.
    private static func seeingLate(_ name: String, _ otherwise: MisbehavingResponse) -> Lie {
        Lie("F49 1 connection at once and the end of an answer seen late, the others \(name)") { question in
            question.others == 0 && question.sinceOther ?? .max >= 200 ? honest(question) : otherwise
        }.but { $0.mostRequests = 300 }
    }

    static let late = [
        seeingLate("get a page that says so", page),
        seeingLate("get that page as a part", pageAsPart),
        seeingLate("are refused with 503", status(503, nil)),
        seeingLate("are refused with 403", status(403, nil)),
    ]

    /// The connection counts for slow responses: on a single connection such a download may take as long as it needs.
    private static let several = [Segments.fixed(4), .automatic]

    static let troubles: [Lie] = [
        // F31
        Lie("F31 one connection stalls") { question in
            let answer = first(question)
            return question.number == 1 ? answer.cut(after: 100_000, .hang) : answer
        },
        Lie("F31 the first connection stalls") { question in
            question.number == 0 ? honest(question).cut(after: 2_000_000, .hang) : honest(question)
        },
        Lie("F31 every third answer stalls") { question in
            question.number % 3 == 1 ? honest(question).cut(after: 100_000, .hang) : honest(question)
        },
        Lie("F31 one connection drips") { question in
            var answer = first(question)
            if question.number == 1 { answer.body = dripping(answer.body, after: 500_000) }
            return answer
        }.but { $0.connections = several },
        Lie("F31 the first connection drips") { question in
            var answer = honest(question)
            if question.number == 0 { answer.body = dripping(answer.body, after: 3_000_000) }
            return answer
        }.but { $0.connections = several },
        // F49
        Lie("F49 429 for every second request, seconds") { question in
            question.number % 2 == 1 ? status(429, "1") : first(question)
        },
        Lie("F49 503 for every second request, garbage") { question in
            question.number % 2 == 1 ? status(503, "soon") : first(question)
        },
        Lie("F49 503 for every second request, a date gone by") { question in
            question.number % 2 == 1 ? status(503, "Wed, 01 Jan 2020 00:00:00 GMT") : first(question)
        },
        Lie("F49 every second connection is refused") { question in
            guard question.connection % 2 == 1 else { return first(question) }
            // Otherwise the next attempt would use this same connection.
            var answer = status(429, "1")
            answer.ending = .close
            return answer
        },
        Lie("F49 five 500 in a row") { question in
            (1..<6).contains(question.number) ? status(500, nil) : first(question)
        },
        Lie("F49 503 to all", versions: [], failures: [.httpStatus]) { _ in status(503, nil) },
        // F53
        Lie("F53 signed URL: 403 after 1 request", failures: [.httpStatus]) { question in
            question.number < 1 ? first(question) : status(403, nil)
        },
        Lie("F53 signed URL: 403 after 2 requests", failures: [.httpStatus]) { question in
            question.number < 2 ? first(question) : status(403, nil)
        },
        Lie("F53 signed URL: 403 after 5 requests", failures: [.httpStatus]) { question in
            question.number < 5 ? first(question) : status(403, nil)
        },
        Lie("F53 signed URL: 403 at once", versions: [], failures: [.httpStatus]) { _ in status(403, nil) },
        Lie("404 after 2 requests", failures: [.httpStatus]) { question in
            question.number < 2 ? first(question) : status(404, nil)
        },
    ]

    private static func dripping(_ body: [MisbehavingResponse.Piece], after count: Int64) -> [MisbehavingResponse.Piece]
    {
        body.flatMap { piece -> [MisbehavingResponse.Piece] in
            guard case .content(let resource, let range, let rate) = piece, Int64(range.count) > count else {
                return [piece]
            }
            let middle = range.lowerBound + count
            return [
                .content(resource, range.lowerBound..<middle, rate: rate),
                .content(resource, middle..<range.upperBound, rate: 10_000),
            ]
        }
    }

    // MARK: F52

    /// Returns a lie in which `/f` redirects to `place`, where `answer` responds.
    private static func redirected(
        _ name: String, ports: Int = 2, versions: [Resource] = [MisbehavingServer.a],
        failures: Set<TransferError.Code> = [],
        to place: @escaping @Sendable (MisbehavingServer, MisbehavingServer.Question) -> String,
        _ answer: @escaping MisbehavingServer.Answering
    ) -> Lie {
        Lie("F52 " + name, versions: versions, failures: failures) { liar in
            { [weak liar] question in
                guard question.path == "/f" else { return answer(question) }
                guard let liar else { return MisbehavingResponse(500) }
                return MisbehavingResponse(302, ["Location: \(place(liar, question))"])
            }
        }.but {
            $0.ports = ports
            $0.mostRequests = 400
        }
    }

    /// Returns responses that are cut, so that the redirect must be followed again.
    private static func breaking(_ resource: Resource = MisbehavingServer.a) -> MisbehavingServer.Answering {
        { question in
            let answer = MisbehavingResponse(honest: resource, to: question)
            return question.number < 6 ? answer.cut(after: answer.length / 2) : answer
        }
    }

    static let redirects: [Lie] = [
        redirected("one place", to: { liar, _ in liar.url("/there", port: 1) }, breaking()),
        redirected("another path each time", to: { _, question in "/at/\(question.number)" }, breaking()),
        redirected(
            "another port each time", ports: 3, to: { liar, question in liar.url("/there", port: question.number % 3) },
            breaking()),
        redirected(
            "another host each time",
            to: { liar, question in
                liar.url("/there", port: 1, host: question.number.isMultiple(of: 2) ? "127.0.0.1" : "localhost")
            }, breaking()),
        redirected(
            "other bytes at each place, under one tag", ports: 2,
            versions: [MisbehavingServer.a, MisbehavingServer.b.tagged(MisbehavingServer.a.entityTag)],
            to: { liar, question in
                liar.url(question.number.isMultiple(of: 4) ? "/one" : "/two", port: 1)
            }
        ) { question in
            let version =
                question.path == "/one"
                ? MisbehavingServer.a : MisbehavingServer.b.tagged(MisbehavingServer.a.entityTag)
            let answer = MisbehavingResponse(honest: version, to: question)
            return question.number < 5 ? answer.cut(after: answer.length / 2) : answer
        },
        redirected(
            "the target changes after a while", versions: [MisbehavingServer.a, MisbehavingServer.b],
            to: { liar, question in liar.url(question.number < 3 ? "/one" : "/two", port: 1) }
        ) { question in
            let answer = MisbehavingResponse(
                honest: question.path == "/one" ? MisbehavingServer.a : MisbehavingServer.b, to: question)
            return question.number < 4 ? answer.cut(after: answer.length / 2) : answer
        },
        redirected("a loop", versions: [], failures: [.tooManyRedirects], to: { liar, _ in liar.url() }) { _ in
            MisbehavingResponse(500)
        },
        redirected("a loop of two", versions: [], failures: [.tooManyRedirects], to: { _, _ in "/g" }) { _ in
            MisbehavingResponse(302, ["Location: /f"])
        },
        redirected("51 hops", versions: [], failures: [.tooManyRedirects], to: { _, _ in "/1" }, hops(51)),
        redirected("20 hops", to: { _, _ in "/1" }, hops(20)),
        redirected("to nowhere", versions: [], failures: [.cannotConnect], to: { _, _ in "http://127.0.0.1:1/" }) { _ in
            MisbehavingResponse(500)
        },
        redirected(
            "to another protocol", versions: [], failures: [.protocolNotAllowed, .invalidRequest],
            to: { _, _ in "file:///etc/passwd" }
        ) { _ in MisbehavingResponse(500) },
        Lie("F52 the parts alone are redirected") { question in
            switch (question.path, question.asksForRange) {
            case ("/f", true): MisbehavingResponse(302, ["Location: /part"])
            case ("/part", _): honest(question)
            default: first(question)
            }
        },
        Lie("F52 the parts alone are redirected, to other bytes", versions: [MisbehavingServer.a, MisbehavingServer.b])
        { question in
            switch (question.path, question.asksForRange) {
            case ("/f", true): MisbehavingResponse(302, ["Location: /part"])
            case ("/part", _):
                MisbehavingResponse(honest: MisbehavingServer.b.tagged(MisbehavingServer.a.entityTag), to: question)
            default: first(question)
            }
        },
    ]

    private static func hops(_ count: Int) -> MisbehavingServer.Answering {
        { question in
            let number = Int(question.path.dropFirst()) ?? 0
            return number < count ? MisbehavingResponse(302, ["Location: /\(number + 1)"]) : honest(question)
        }
    }

    @Test(
        "a download is right or fails, however its connections fare", .timeLimit(.minutes(20)),
        arguments: limits + late + troubles)
    func withstandsConnections(lie: Lie) async { await withstand(lie) }

    @Test("a download is right or fails, wherever it is led", .timeLimit(.minutes(20)), arguments: redirects)
    func withstandsRedirects(lie: Lie) async { await withstand(lie) }
}
