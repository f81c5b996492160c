import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads that go on where they stopped")
struct ResumingTests {
    private let place: Place
    private let manager: SessionManager
    private let restarts = Notes<String>()
    private let resumes = Notes<Int64>()

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
        manager.delegate.downloadTaskDidResumeAtOffset = { [resumes] _, offset, _ in resumes.add(offset) }
    }

    private func download(
        _ url: String, _ resumeData: ResumeData? = nil, target: DownloadTarget? = nil
    ) async -> DownloadRequest.Response {
        var request = TransferRequest(url: url)
        request.confirmationDelay = 0
        return await manager.download(request, to: target ?? place.target(), resumingWith: resumeData).outcome
    }

    /// Returns a server and the resume data of a download of `resource` that was cut after `after` bytes; the server
    /// then sends `answers`.
    private func interrupted(
        _ resource: Resource, after: Int64, then answers: [ScriptedAnswer]
    ) async throws -> (server: ScriptedServer, resumeData: ResumeData) {
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: after)] + answers])
        let first = await download(server.url("/f"))
        #expect(first.result.error?.code == .truncated)
        #expect(!place.names.contains("file"))
        let resumeData = try #require(first.resumeData)
        // Encoded and decoded, as in another process.
        return (server, try #require(ResumeData(bytes: resumeData.bytes)))
    }

    @Test("the same version goes on with the next byte", arguments: [1, 1000, 262_144, 700_001] as [Int64])
    func sameVersion(offset: Int64) async throws {
        let resource = Resource(size: 1_000_000)
        let (server, resumeData) = try await interrupted(resource, after: offset, then: [.serve(resource)])
        #expect(resumeData.ranges.contiguousEnd == offset)
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == "bytes=\(offset)-")
        #expect(server.requests()[1].header("if-range") == resource.entityTag)
        #expect(server.bodyBytesSent(for: "/f") == resource.size)
        #expect(resumes.all == [offset])
        #expect(place.names == ["file"])
    }

    @Test("bytes of one URL are never joined to those of another, whatever their validators say")
    func anotherURL() async throws {
        var (one, other) = (Resource(size: 600_000, seed: 1), Resource(size: 600_000, seed: 2))
        (one.entityTag, other.entityTag) = ("\"1\"", "\"1\"")
        let server = try ScriptedServer(["/one": [.serveThenCut(one, after: 300_000)], "/other": [.serve(other)]])
        let first = await download(server.url("/one"))
        #expect(first.resumeData?.ranges.contiguousEnd == 300_000)
        let file = try await download(server.url("/other"), first.resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
    }

    @Test("a retry within one request resumes too")
    func retry() async throws {
        let resource = Resource(size: 900_000)
        let server = try ScriptedServer([
            "/f": [
                .serveThenCut(resource, after: 300_000), .serveThenCut(resource, after: 300_000, .reset),
                .serve(resource),
            ]
        ])
        manager.retrier = CountingRetrier(limit: 5)
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
        #expect(request.retryCount == 2)
        // A reset may discard bytes in transit.
        #expect(request.progress.transferredBytes <= resource.size + 300_000)
        #expect(server.requests()[1].header("range") == "bytes=300000-")
    }

    @Test("another version is taken whole, never joined")
    func changed() async throws {
        let (server, resumeData) = try await interrupted(
            Resource(size: 1_000_000, seed: 1), after: 700_000, then: [.serve(Resource(size: 900_000, seed: 2))])
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(Resource(size: 900_000, seed: 2).difference(fromFileAt: file.path) == nil)
        #expect(restarts.all.count == 1)
        #expect(server.requests().count == 2)
    }

    @Test("another version that is shorter than what is here leaves nothing of the old one")
    func changedAndShorter() async throws {
        let (server, resumeData) = try await interrupted(
            Resource(size: 1_000_000, seed: 1), after: 700_000, then: [.serve(Resource(size: 5, seed: 2))])
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(Resource(size: 5, seed: 2).difference(fromFileAt: file.path) == nil)
    }

    @Test("a server that ignores ranges sends the whole again, and it is taken")
    func ignoresRanges() async throws {
        let resource = Resource(size: 600_000)
        let (server, resumeData) = try await interrupted(resource, after: 400_000, then: [.chunked(resource)])
        // The response has neither validator nor length: a second one has to agree.
        let first = await download(server.url("/f"), resumeData)
        #expect(first.result.error?.code == .remoteChanged && first.resumeData?.ranges == resumeData.ranges)
        let file = try await download(server.url("/f"), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    /// Returns a resource without a validator.
    private func bare(_ size: Int64, seed: UInt64) -> Resource {
        var resource = Resource(size: size, seed: seed)
        resource.entityTag = nil
        return resource
    }

    @Test("without a validator an overlap is fetched and compared")
    func overlap() async throws {
        let resource = bare(1_000_000, seed: 1)
        let (server, resumeData) = try await interrupted(resource, after: 700_000, then: [.serve(resource)])
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == "bytes=\(700_000 - 262_144)-")
        #expect(server.requests()[1].header("if-range") == nil)
        #expect(restarts.all.isEmpty)
    }

    @Test("where the overlap differs everything is fetched anew")
    func overlapDiffers() async throws {
        let other = bare(1_000_000, seed: 2)
        let (server, resumeData) = try await interrupted(
            bare(1_000_000, seed: 1), after: 700_000, then: [.serve(other)])
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(restarts.all.count == 1)
        #expect(server.requests().last?.header("range") == nil)
    }

    @Test("with too little there for an overlap everything is fetched anew")
    func overlapTooShort() async throws {
        let resource = bare(500_000, seed: 1)
        let (server, resumeData) = try await interrupted(resource, after: 50_000, then: [.serve(resource)])
        // Its length and type are those of the part, and nothing tells the two apart.
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == nil)
    }

    @Test("a server without a validator that cuts every answer gets on, as long as it sends more than 64 KiB at once")
    func cutWithinOverlap() async throws {
        let resource = bare(800_000, seed: 1)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 100_000)]])
        var resumeData: ResumeData?
        var reached: [Int64] = []
        for _ in 0..<40 {
            let attempt = await download(server.url("/f"), resumeData)
            if case .success(let file) = attempt.result {
                #expect(resource.difference(fromFileAt: file.path) == nil)
                break
            }
            resumeData = attempt.resumeData
            reached.append(resumeData?.ranges.contiguousEnd ?? 0)
        }
        #expect(reached.count < 40 && reached == reached.sorted())
        #expect(restarts.all.isEmpty)
    }

    @Test("under a digest a server without a validator is asked for the next byte, however little it sends at once")
    func digestInsteadOfOverlap() async throws {
        var resource = bare(400_000, seed: 1)
        resource.zeros = 50_000..<350_000
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 20_000)]])
        let target = place.target(digest: sha256(of: resource))
        var resumeData: ResumeData?
        for attempt in 1...20 {
            let outcome = await download(server.url("/f"), resumeData, target: target)
            resumeData = outcome.resumeData
            #expect((outcome.result.error == nil) == (attempt == 20))
        }
        #expect(resource.difference(fromFileAt: place.temporary.file("file")) == nil)
        #expect(server.bodyBytesSent(for: "/f") == resource.size && restarts.all.isEmpty)
    }

    @Test("under a digest a file that changed is found out in the end, and fetched anew")
    func digestFindsChange() async throws {
        let (before, after) = (bare(400_000, seed: 1), bare(400_000, seed: 2))
        let server = try ScriptedServer(["/f": [.serveThenCut(before, after: 300_000), .serve(after)]])
        manager.retrier = CountingRetrier(limit: 3)
        let file = try await download(server.url("/f"), target: place.target(digest: sha256(of: after))).result.get()
        #expect(after.difference(fromFileAt: file.path) == nil)
    }

    @Test(
        "an answer that lies is not believed, and asked for once more the whole comes right",
        arguments: [
            (206, ["Content-Range: bytes 701-999/1000"]), (206, ["Content-Range: bytes 700-999/1001"]), (206, []),
            (206, ["Content-Range: bytes 700-999/1000", "ETag: \"other\""]),
            (206, ["Content-Range: lines 700-999/1000"]),
            (206, ["Content-Range: bytes 700-999/1000", "Content-Encoding: gzip"]),
            (206, ["Content-Type: multipart/byteranges; boundary=b", "Content-Range: bytes 700-999/1000"]),
            (206, ["Content-Range: bytes 0-9223372036854775807/*"]), (412, []), (416, ["Content-Range: bytes */700"]),
            (416, []), (200, ["Content-Range: bytes 5-9/1000"]), (200, ["Content-Encoding: gzip"]),
        ])
    func lies(status: Int, fields: [String]) async throws {
        let resource = Resource(size: 1000)
        let lie = ScriptedAnswer.status(status, headers: fields, body: String(repeating: "x", count: 300))
        let (server, resumeData) = try await interrupted(resource, after: 700, then: [lie, .serve(resource)])
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().count == 3)
        #expect(server.requests()[2].header("range") == nil)
        #expect(restarts.all.count == 1)
    }

    private static let page = ScriptedAnswer.status(
        200, headers: ["Content-Type: text/html"], body: "<html>log in</html>")

    @Test(
        "F71: a page in the place of the rest or of the whole keeps the part, whatever came before it",
        arguments: [
            [page], [.status(412), page], [.status(416), page], [.status(206), page], [.status(400), page],
            [.status(206, headers: ["Content-Range: bytes 0-0/1", "Content-Type: text/html"], body: "x")],
            [.status(200, headers: ["Content-Type: text/html", "Content-Encoding: gzip"], body: "x")],
            [.status(200, headers: ["Content-Type: text/html", "ETag: \"page\""], body: "x")],
            [.status(200, headers: ["Content-Range: bytes 0-0/1", "Content-Type: text/html"], body: "x"), page],
        ])
    func pages(answers: [ScriptedAnswer]) async throws {
        let resource = Resource(size: 1000)
        // A server repeats its last answer.
        let (server, resumeData) = try await interrupted(resource, after: 700, then: answers)
        let outcome = await download(server.url("/f"), resumeData)
        #expect(outcome.result.error?.code == .remoteChanged)
        #expect(outcome.resumeData?.ranges == resumeData.ranges && restarts.all.isEmpty)
        let honest = try ScriptedServer(["/f": [.serve(resource)]])
        let kept = try #require(outcome.resumeData).moved(to: honest.url("/f"))
        let file = try await download(honest.url("/f"), kept).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("F71: pages that alternate with the file never replace it, however many come")
    func alternatingPages() async throws {
        let resource = Resource(size: 1_000)
        var answers: [ScriptedAnswer] = []
        for _ in 0..<4 { answers += [Self.page, .serveThenCut(resource, after: 50)] }
        var (server, resumeData) = try await interrupted(resource, after: 500, then: answers + [.serve(resource)])
        for _ in 0..<8 {
            let outcome = await download(server.url("/f"), resumeData)
            resumeData = try #require(outcome.resumeData)
        }
        #expect(resumeData.ranges.count == 700 && restarts.all.isEmpty)
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("a server that never stops lying is given up, and nothing gets the name")
    func endlessLies() async throws {
        let lie = ScriptedAnswer.status(206, headers: ["Content-Range: bytes 5-9/10"], body: "xxxxx")
        let (server, resumeData) = try await interrupted(Resource(size: 1000), after: 700, then: [lie])
        let outcome = await download(server.url("/f"), resumeData)
        #expect(outcome.result.error?.code == .remoteChanged)
        #expect(!place.names.contains("file"))
        #expect(server.requests().count < 6)
    }

    @Test("at another place that shows the same version, what lies behind a gap counts too", arguments: [true, false])
    func gapElsewhere(isSame: Bool) async throws {
        let resource = Resource(size: 1_000_000)
        var (_, resumeData) = try await interrupted(resource, after: 700_000, then: [.hang])
        resumeData.ranges = ByteRangeSet([0..<400_000, 500_000..<700_000])
        var there = resource
        if !isSame { there.entityTag = nil }
        let server = try ScriptedServer(["/f": [.serve(there)]])
        resumeData = resumeData.moved(to: server.url("/f"))
        if !isSame {
            // The whole, which is requested in the end, has no validator: a second response has to agree.
            let first = await download(server.url("/f"), resumeData)
            #expect(first.result.error?.code == .remoteChanged)
            resumeData = try #require(first.resumeData)
        }
        let file = try await download(server.url("/f"), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        let asked = server.requests().map { $0.header("range") }
        let once = isSame ? ["bytes=137856-", "bytes=700000-"] : ["bytes=137856-", nil]
        #expect(asked == (isSame ? once : once + once))
    }

    @Test("a part whose body goes on past its range is not believed")
    func partTooLong() async throws {
        let resource = Resource(size: 1000)
        var (_, resumeData) = try await interrupted(resource, after: 700, then: [.hang])
        let tag = try #require(resource.entityTag)
        let long = Array(
            ("HTTP/1.1 206 Partial Content\r\nETag: \(tag)\r\nContent-Range: bytes 700-999/1000\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n190\r\n").utf8)
        let honest = Array("HTTP/1.1 200 OK\r\nETag: \(tag)\r\nContent-Length: 1000\r\n\r\n".utf8)
        let server = try RawServer([
            long + resource.bytes(700..<1000) + [UInt8](repeating: 0x78, count: 100) + Array("\r\n0\r\n\r\n".utf8),
            honest + resource.bytes,
        ])
        resumeData.move(to: server.url())
        let file = try await download(server.url(), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 2)
    }

    @Test("a part shorter than was asked for is taken, and the rest asked for")
    func shortPart() async throws {
        let resource = Resource(size: 1000)
        var (_, resumeData) = try await interrupted(resource, after: 700, then: [.hang])
        let tag = try #require(resource.entityTag)
        func part(_ range: Range<Int64>) -> [UInt8] {
            Array(
                ("HTTP/1.1 206 Partial Content\r\nETag: \(tag)\r\nContent-Length: \(range.count)\r\n"
                    + "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/1000\r\n\r\n").utf8)
                + resource.bytes(range)
        }
        let server = try RawServer([part(700..<800), part(750..<900), part(900..<1000)])
        resumeData.move(to: server.url())
        let file = try await download(server.url(), resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 3)
        #expect(server.requests[1].contains("Range: bytes=800-\r\n"))
        #expect(restarts.all.isEmpty)
    }

    /// Returns a response in wire format.
    private func answer(_ status: String, _ fields: [String], _ body: [UInt8] = []) -> [UInt8] {
        Array((["HTTP/1.1 \(status)"] + fields + ["", ""]).joined(separator: "\r\n").utf8) + body
    }

    @Test("a validator that comes with an overlap vouches for nothing until the overlap has been compared")
    func validatorBeforeOverlap() async throws {
        let (old, new) = (Resource(size: 1_000_000, seed: 1), Resource(size: 1_000_000, seed: 2))
        func begin(_ resource: Resource, _ count: Int64) -> [UInt8] { resource.bytes(0..<count) }
        let server = try RawServer([
            // A response without a validator, cut in the middle.
            answer("200 OK", ["Content-Length: 1000000"], begin(old, 600_000)),
            // A response with the next version's tag that ends before a byte of the overlap.
            answer(
                "206 Partial Content",
                ["ETag: \"two\"", "Content-Length: 662144", "Content-Range: bytes 337856-999999/1000000"]),
            // The overlap of the current version.
            answer(
                "206 Partial Content",
                ["ETag: \"two\"", "Content-Length: 662144", "Content-Range: bytes 337856-999999/1000000"],
                new.bytes(337_856..<1_000_000)),
            answer("200 OK", ["ETag: \"two\"", "Content-Length: 1000000"], new.bytes),
        ])
        var resumeData: ResumeData?
        for _ in 0..<2 {
            let outcome = await download(server.url(), resumeData)
            #expect(outcome.result.error?.code == .truncated)
            resumeData = outcome.resumeData
            #expect(resumeData?.validator.entityTag == nil)
        }
        let file = try await download(server.url(), resumeData).result.get()
        #expect(new.difference(fromFileAt: file.path) == nil)
        #expect(!server.requests[2].contains("If-Range"))
        #expect(restarts.all.count == 1)
    }

    @Test("a server without ranges that takes one connection is asked again where it has not seen the last one's end")
    func oneConnectionWithoutRanges() async throws {
        let resource = Resource(size: 1_000_000)
        let fields = ["ETag: \"one\"", "Content-Length: 1000000"]
        let server = try RawServer([
            answer("200 OK", fields, resource.bytes(0..<600_000)),
            // The response to a range with If-Range: the whole file, which is aborted to ask without the condition.
            answer("200 OK", fields, resource.bytes),
            answer("503 Service Unavailable", ["Content-Length: 0"]),
            answer("200 OK", fields, resource.bytes),
        ])
        let first = await download(server.url())
        #expect(first.result.error?.code == .truncated)
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 4)
    }

    @Test("a validator vouches for the URL that sent it: where a redirect leads elsewhere the overlap is compared")
    func redirectElsewhere() async throws {
        var (one, other) = (Resource(size: 600_000, seed: 1), Resource(size: 600_000, seed: 2))
        (one.entityTag, other.entityTag) = ("\"same\"", "\"same\"")
        let server = try ScriptedServer([
            "/f": [.redirect("/1"), .redirect("/2")], "/1": [.serveThenCut(one, after: 300_000)],
            "/2": [.serve(other)],
        ])
        let first = await download(server.url("/f"))
        let file = try await download(server.url("/f"), first.resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
    }

    @Test("where the redirect leads elsewhere and the bytes are the same, they are kept")
    func redirectToMirror() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer([
            "/f": [.redirect("/1"), .redirect("/2")], "/1": [.serveThenCut(resource, after: 300_000)],
            "/2": [.serve(resource)],
        ])
        let first = await download(server.url("/f"))
        let file = try await download(server.url("/f"), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(restarts.all.isEmpty && server.bodyBytesSent(for: "/2") == 300_000 + 262_144)
    }

    @Test("of a resource whose length nobody says, a part is no end: the rest is asked for until there is no more")
    func unknownLength() async throws {
        let resource = Resource(size: 1000)
        let tag = try #require(resource.entityTag)
        let chunks = Array("2bc\r\n".utf8) + resource.bytes(0..<700) + Array("\r\n".utf8)
        let server = try RawServer([
            answer("200 OK", ["ETag: \(tag)", "Transfer-Encoding: chunked"], chunks),
            answer(
                "206 Partial Content", ["ETag: \(tag)", "Content-Length: 100", "Content-Range: bytes 700-799/*"],
                resource.bytes(700..<800)),
            answer(
                "206 Partial Content", ["ETag: \(tag)", "Content-Length: 200", "Content-Range: bytes 800-999/*"],
                resource.bytes(800..<1000)),
            answer(
                "416 Range Not Satisfiable",
                ["ETag: \(tag)", "Content-Length: 0", "Content-Range: bytes */1000"]),
        ])
        let first = await download(server.url())
        #expect(first.result.error?.code == .truncated)
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 5 && restarts.all.isEmpty)
    }

    @Test(
        "a server that never sends more than the overlap at once is asked from nearer to the end",
        arguments: [nil, 600_000])
    func cappedAtOverlap(total: Int?) async throws {
        let resource = Resource(size: 600_000)
        func part(_ range: Range<Int64>) -> [UInt8] {
            let bounds = "bytes \(range.lowerBound)-\(range.upperBound - 1)/" + (total.map { "\($0)" } ?? "*")
            return answer(
                "206 Partial Content", ["Content-Length: \(range.count)", "Content-Range: \(bounds)"],
                resource.bytes(range))
        }
        let chunk = Array("493e0\r\n".utf8) + resource.bytes(0..<300_000) + Array("\r\n".utf8)
        var answers = [answer("200 OK", ["Transfer-Encoding: chunked"], chunk)]
        // Each response has at most 262,144 bytes, from any offset.
        answers += [part(37_856..<300_000), part(234_464..<496_608), part(431_072..<600_000)]
        if total == nil { answers.append(part(534_464..<600_000)) }
        let server = try RawServer(answers)
        let first = await download(server.url())
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == answers.count && restarts.all.isEmpty)
    }

    @Test("a server that does not know its own tag in If-Range is asked without it, and the bytes are kept")
    func uselessCondition() async throws {
        let resource = Resource(size: 600_000)
        let tag = try #require(resource.entityTag)
        let server = try RawServer([
            answer("200 OK", ["ETag: \(tag)", "Content-Length: 600000"], resource.bytes(0..<300_000)),
            answer("200 OK", ["ETag: \(tag)", "Content-Length: 600000"], resource.bytes),
            answer(
                "206 Partial Content",
                ["ETag: \(tag)", "Content-Length: 562144", "Content-Range: bytes 37856-599999/600000"],
                resource.bytes(37_856..<600_000)),
        ])
        let first = await download(server.url())
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 3 && restarts.all.isEmpty)
        #expect(server.requests.last?.contains("If-Range") == false)
    }

    @Test("every byte came, and the end of it did not: a 416 that says so makes the file whole")
    func completeBy416() async throws {
        let resource = Resource(size: 1000)
        let tag = try #require(resource.entityTag)
        let chunk = Array("3e8\r\n".utf8) + resource.bytes + Array("\r\n".utf8)
        let server = try RawServer([
            answer("200 OK", ["ETag: \(tag)", "Transfer-Encoding: chunked"], chunk),
            answer(
                "416 Range Not Satisfiable",
                ["ETag: \(tag)", "Content-Length: 0", "Content-Range: bytes */1000"]),
        ])
        let first = await download(server.url())
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("a 416 without a tag is believed once the last bytes have shown the version, though nobody tells the size")
    func completeByBare416() async throws {
        let resource = Resource(size: 1000)
        let tag = try #require(resource.entityTag)
        let chunk = Array("3e8\r\n".utf8) + resource.bytes + Array("\r\n".utf8)
        let bare = answer("416 Range Not Satisfiable", ["Content-Length: 0", "Content-Range: bytes */1000"])
        let last = answer(
            "206 Partial Content", ["ETag: \(tag)", "Content-Length: 1000", "Content-Range: bytes 0-999/*"],
            resource.bytes)
        let server = try RawServer([
            answer("200 OK", ["ETag: \(tag)", "Transfer-Encoding: chunked"], chunk), bare, last, bare,
        ])
        let first = await download(server.url())
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests.count == 4 && restarts.all.isEmpty)
    }

    @Test("F43: a 416 that puts the end of the file where its body was cut is not believed by itself")
    func lyingEnd() async throws {
        let resource = Resource(size: 1000)
        let tag = try #require(resource.entityTag)
        let server = try RawServer([
            answer(
                "200 OK", ["ETag: \(tag)", "Transfer-Encoding: chunked"],
                Array("190\r\n".utf8) + resource.bytes(0..<400)),
            answer(
                "416 Range Not Satisfiable",
                ["ETag: \(tag)", "Content-Length: 0", "Content-Range: bytes */400"]),
            answer(
                "206 Partial Content",
                ["ETag: \(tag)", "Content-Length: 1000", "Content-Range: bytes 0-999/1000"], resource.bytes),
        ])
        let first = await download(server.url())
        let file = try await download(server.url(), first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests[2].contains("Range: bytes=0-\r\n") && restarts.all.isEmpty)
    }

    @Test("no content in answer to a range says nothing of the file: what is here stays for another attempt")
    func noContent() async throws {
        let resource = Resource(size: 1000)
        let (server, resumeData) = try await interrupted(resource, after: 700, then: [.status(204), .serve(resource)])
        let error = try #require(await download(server.url("/f"), resumeData).result.error)
        #expect(error.code == .truncated)
        let file = try await download(server.url("/f"), error.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.bodyBytesSent(for: "/f") == resource.size)
    }

    @Test("the name and the date that the server gave are remembered with the bytes")
    func remembered() async throws {
        let url = "http://127.0.0.1:\(try FreePort.next())/f"
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        try Array("0123456789".utf8).withUnsafeBytes { try part.write($0, at: 0) }
        let version = ResourceVersion(
            validator: ResourceValidator(lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"), total: 10,
            suggestedFileName: "named.iso")
        let resumeData = try #require(
            ResumeData(
                bytes: ResumeData(
                    generation: part.generation, resource: ResumeData.resource(of: url),
                    ranges: try part.synchronize(), version: version
                ).bytes))
        let asked = Notes<ResourceMetadata>()
        var target = place.target()
        target.destination = { resource in
            asked.add(resource)
            return FileDestination(name: "file", conflict: .fail)
        }
        _ = try await download(url, resumeData, target: target).result.get()
        #expect(asked.all.map(\.suggestedFileName) == ["named.iso"])
        #expect(asked.all.map(\.lastModified) == [784_111_777])
        #expect(asked.all.allSatisfy { $0.head == nil })
    }

    @Test("what was whole when its life ended is published without asking anyone")
    func wholeAlready() async throws {
        let resource = Resource(size: 5000)
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        try resource.bytes.withUnsafeBytes { try part.write($0, at: 0) }
        let url = "http://127.0.0.1:\(try FreePort.next())/f"
        let resumeData = ResumeData(
            generation: part.generation, resource: ResumeData.resource(of: url), ranges: try part.synchronize(),
            version: ResourceVersion(validator: ResourceValidator(entityTag: resource.entityTag), total: 5000))
        let file = try await download(url, resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("resume data of a part that is gone, cut or another's bring the whole file")
    func unusableParts() async throws {
        let resource = Resource(size: 100_000)
        for harm in 0..<3 {
            let (server, resumeData) = try await interrupted(resource, after: 50_000, then: [.serve(resource)])
            let path = place.temporary.file(Place.partName)
            switch harm {
            case 0: unlink(path)
            case 1: truncate(path, 49_999)
            default: _ = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-2")
            }
            let file = try await download(server.url("/f"), resumeData).result.get()
            #expect(resource.difference(fromFileAt: file.path) == nil)
            #expect(server.requests()[1].header("range") == nil)
            try place.directory.remove("file")
        }
    }

    @Test("a cancelled download brings resume data, and the next one goes on from there")
    func cancel() async throws {
        let resource = Resource(size: 4_000_000)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 1_000_000, bytesPerSecond: 100_000), .serve(resource)]
        ])
        let delegate = manager.delegate
        delegate.downloadTaskDidWriteData = { [weak delegate] task, _, _, _ in delegate?[task]?.cancel() }
        let first = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
        let outcome = await first.outcome
        #expect(outcome.result.error?.code == .cancelled)
        let resumeData = try #require(outcome.resumeData)
        let offset = resumeData.ranges.contiguousEnd
        #expect(offset > 0 && offset < resource.size)
        #expect(first.resumeData == resumeData)
        delegate.downloadTaskDidWriteData = nil
        let second = manager.download(
            TransferRequest(url: server.url("/f")), to: place.target(), resumingWith: resumeData)
        #expect(resource.difference(fromFileAt: try await second.value.path) == nil)
        #expect(second.progress.transferredBytes == resource.size - offset)
    }

    @Test("a checkpoint is asked for at its interval and brings resume data for what is written")
    func checkpoint() async throws {
        let manager = try SessionManager(configuration: .test { $0.checkpointInterval = 1 << 20 })
        let resource = Resource(size: 4 << 20)
        let server = try ScriptedServer(["/f": [.drip(resource, bytesPerSecond: 16 << 20), .hang]])
        let due = Notes<Bool>()
        let request = manager.download(TransferRequest(url: server.url("/f")), to: place.target())
            .onCheckpointDue { due.add(true) }
            .resume()
        try await eventually(that: "a checkpoint is due") { !due.all.isEmpty }
        let resumeData = try #require(try await request.checkpoint())
        #expect(resumeData.ranges.contiguousEnd >= 1 << 20)
        #expect(resumeData.total == resource.size)
        #expect(resumeData.validator.entityTag == resource.entityTag)
        _ = try await request.value
        // The number of later checkpoints depends on the time of the one above.
        #expect((2...4).contains(due.all.count))
        withExtendedLifetime(manager) {}
    }
}

extension ResumeData {
    /// Makes the resume data look like those of another URL.
    fileprivate mutating func move(to url: String) {
        resource = ResumeData.resource(of: url)
        origin = resource
    }
}
