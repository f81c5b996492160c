import Crypto
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads from several servers")
struct MirrorTests {
    private let place: Place
    private let manager: SessionManager
    private let restarts = Notes<String>()

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
    }

    private func request(_ url: String, mirrors: [String]) -> TransferRequest {
        var request = TransferRequest(url: url, credential: Credential(user: "u", password: "p"))
        request.mirrors = mirrors
        return request
    }

    private func fetch(
        _ resource: Resource, _ servers: [ScriptedServer], digest: FileDigest?, segments: Segments = .automatic
    ) async throws -> Double {
        var request = request(servers[0].url("/f"), mirrors: servers.dropFirst().map { $0.url("/f") })
        request.segments = segments
        let begin = ContinuousClock.now
        let file = try await manager.download(request, to: place.target(digest: digest)).value
        let took = begin.duration(to: .now)
        #expect(resource.difference(fromFileAt: file.path) == nil)
        return Double(took.components.attoseconds) / 1e18 + Double(took.components.seconds)
    }

    @Test("two mirrors of different speed together take hardly more than their rates allow")
    func twoSpeeds() async throws {
        // The ratio is the same for a long file, which long torture uses.
        let resource = Resource(size: getenv("DLD_TORTURE") == nil ? 128 << 20 : 2 << 30)
        let fast = try ScriptedServer(
            line: NetworkLine(roundTrip: 20, rate: 16_000_000, total: 16_000_000), ["/f": [.serve(resource)]])
        let slow = try ScriptedServer(
            line: NetworkLine(roundTrip: 20, rate: 6_000_000, total: 6_000_000), ["/f": [.serve(resource)]])
        let time = try await fetch(resource, [slow, fast], digest: sha256(of: resource))
        let ideal = Double(resource.size) / 22_000_000
        #expect(time / ideal <= 1.1 * TimeMargin.factor, "\(time) s, ideally \(ideal) s")
        // The credential is sent to its own server only.
        #expect(slow.requests().allSatisfy { $0.header("authorization") != nil })
        #expect(fast.requests().allSatisfy { $0.header("authorization") == nil })
        #expect(restarts.all.isEmpty)
    }

    @Test(
        "F80: mirrors that each serve one connection and let others wait cost hardly any time",
        arguments: [Segments.automatic, .fixed(4)], [ScriptedServer.Service.oneByOne, .onlyOne])
    func oneServed(segments: Segments, service: ScriptedServer.Service) async throws {
        let resource = Resource(size: 24 << 20)
        let servers = try (0..<2).map { _ in
            try ScriptedServer(
                line: NetworkLine(roundTrip: 5, rate: 6_000_000), service: service, ["/f": [.serve(resource)]])
        }
        let time = try await fetch(resource, servers, digest: sha256(of: resource), segments: segments)
        let alone = Double(resource.size) / 6_000_000
        #expect(time / alone <= 1.15 * TimeMargin.factor, "\(time) s, \(alone) s from one of them")
        #expect(restarts.all.isEmpty)
    }

    @Test("a mirror that dies half way costs nothing but its share")
    func dies() async throws {
        let resource = Resource(size: 64 << 20)
        let line = { NetworkLine(roundTrip: 10, rate: 8_000_000, total: 8_000_000) }
        let steady = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let dying = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let end = Task.detached {
            try await eventually(that: "bytes come") { dying.bodyBytesSent(for: "/f") > 12 << 20 }
            dying.stop()
        }
        let time = try await fetch(resource, [dying, steady], digest: sha256(of: resource))
        let ideal = Double(resource.size - 12 << 20) / 8_000_000
        try await end.value
        #expect(time / ideal <= 1.2 * TimeMargin.factor, "\(time) s, ideally \(ideal) s")
        #expect(restarts.all.isEmpty)
    }

    @Test("a server that asks to be left alone for longer than anyone can count is left, and a mirror brings the file")
    func endlessRest() async throws {
        let resource = Resource(size: 1 << 20)
        let busy = try ScriptedServer([
            "/f": [.status(503, headers: ["Retry-After: 99999999999999999999"])]
        ])
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        _ = try await fetch(resource, [busy, mirror], digest: sha256(of: resource))
        #expect(!busy.requests().isEmpty)
    }

    @Test("without a digest bytes of two servers are never joined; one takes over where the other has nothing")
    func alone() async throws {
        let resource = Resource(size: 6 << 20)
        let other = Resource(size: 6 << 20, seed: 2)
        let gone = try ScriptedServer(["/f": [.serveThenCut(other, after: 3 << 20), .status(404)]])
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        manager.retrier = CountingRetrier(limit: 3)
        _ = try await fetch(resource, [gone, mirror], digest: nil)
        #expect(mirror.requests().map { $0.header("range") } == [nil])
    }

    @Test("a mirror goes on with what an earlier life left, where the server is gone and a digest is known")
    func goneSince() async throws {
        let resource = Resource(size: 6 << 20)
        let own = try ScriptedServer(["/f": [.serveThenCut(resource, after: 4 << 20)]])
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        var request = request(own.url("/f"), mirrors: [mirror.url("/f")])
        request.segments = .one
        let target = place.target(digest: sha256(of: resource))
        let first = await manager.download(request.redirected(to: request.url), to: target).outcome
        let resumeData = try #require(first.resumeData)
        own.stop()
        let file = try await manager.download(request, to: target, resumingWith: resumeData).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(mirror.bodyBytesSent(for: "/f") == 2 << 20)
    }

    @Test(
        "a mirror with another file discards nothing of what a server sent that fails for now",
        arguments: [true, false])
    func otherFileAfterFailure(sendsRanges: Bool) async throws {
        let resource = Resource(size: 6 << 20)
        let own = try ScriptedServer(["/f": [.serveThenCut(resource, after: 4 << 20), .status(503), .serve(resource)]])
        let mirror = try ScriptedServer([
            "/f": [sendsRanges ? .serve(Resource(size: 5 << 20, seed: 2)) : .chunked(Resource(size: 6 << 20, seed: 2))]
        ])
        var request = request(own.url("/f"), mirrors: [mirror.url("/f")])
        request.segments = .one
        manager.retrier = CountingRetrier(limit: 4)
        let file = try await manager.download(request, to: place.target(digest: sha256(of: resource))).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(own.bodyBytesSent(for: "/f") < resource.size + 1000 && !mirror.requests().isEmpty)
        #expect(restarts.all.isEmpty)
    }

    @Test("a file that changed on its own server is fetched anew, where no mirror goes on with the version before")
    func changedMeanwhile() async throws {
        let (before, after) = (Resource(size: 6 << 20, seed: 2), Resource(size: 6 << 20))
        var changed = after
        changed.entityTag = "\"2\""
        let own = try ScriptedServer(["/f": [.serveThenCut(before, after: 4 << 20), .serve(changed)]])
        let mirror = try ScriptedServer([:])
        var request = request(own.url("/f"), mirrors: [mirror.url("/f")])
        request.segments = .one
        let target = place.target(digest: sha256(of: after))
        let first = await manager.download(request.redirected(to: request.url), to: target).outcome
        let resumeData = try #require(first.resumeData)
        let file = try await manager.download(request, to: target, resumingWith: resumeData).value
        #expect(after.difference(fromFileAt: file.path) == nil)
    }

    @Test("where no server has it the first one's word counts")
    func nobody() async throws {
        let own = try ScriptedServer(["/f": [.status(403)]])
        let mirror = try ScriptedServer([:])
        let outcome = await manager.download(
            request(own.url("/f"), mirrors: [mirror.url("/f")]), to: place.target()
        ).outcome
        #expect(outcome.result.error?.httpStatus == 403)
        #expect(mirror.requests().count == 1)
    }

    private func servers(_ answers: [ScriptedAnswer]) throws -> [ScriptedServer] {
        try answers.map { try ScriptedServer(line: NetworkLine(roundTrip: 5, rate: 16_000_000), ["/f": [$0]]) }
    }

    private static let shared = Resource(size: 24 << 20)
    private static let other = Resource(size: 24 << 20, seed: 2)

    @Test("a mirror with another file of the same size is found out, and the file comes whole from one that has it")
    func otherFile() async throws {
        let servers = try servers([.serve(Self.other), .serve(Self.shared)])
        manager.retrier = CountingRetrier(limit: 3)
        _ = try await fetch(Self.shared, servers, digest: sha256(of: Self.shared), segments: .fixed(4))
        #expect(servers[1].requests().contains { $0.header("range") != nil })
        // Once at first, and once as the only source.
        #expect(servers[0].requests().count { $0.header("range") == nil } == 2)
    }

    @Test("a mirror that lies costs one attempt: the file's own server is the first to be asked alone")
    func lyingMirror() async throws {
        manager.retrier = CountingRetrier(limit: 1)
        let servers = try servers([.serve(Self.shared), .serve(Self.other)])
        _ = try await fetch(Self.shared, servers, digest: sha256(of: Self.shared), segments: .fixed(4))
    }

    @Test("where a mirror lies and the file's own server has nothing, the honest mirror is asked alone")
    func lyingMirrorAlone() async throws {
        manager.retrier = CountingRetrier(limit: 2)
        let servers = try servers([.status(404), .serve(Self.other), .serve(Self.shared)])
        _ = try await fetch(Self.shared, servers, digest: sha256(of: Self.shared), segments: .fixed(4))
    }

    @Test("a mirror that accepts and says nothing, or stops after its head, does not hold what others could bring")
    func silentMirror() async throws {
        for answer in [ScriptedAnswer.hang, .drip(Self.shared, after: 1000, bytesPerSecond: 10)] {
            let own = try ScriptedServer(
                line: NetworkLine(roundTrip: 5, rate: 6_000_000), ["/f": [.serve(Self.shared)]])
            let mirror = try ScriptedServer(["/f": [answer]])
            let time = try await fetch(
                Self.shared, [own, mirror], digest: sha256(of: Self.shared), segments: .fixed(2))
            #expect(time < 10 * TimeMargin.factor, "\(time) s, 4 s from its own server alone")
        }
    }

    @Test("a source that is far slower than one that is idle does not keep the rest, nor one that drips from the start")
    func slowOwnServer() async throws {
        let small = Resource(size: 6 << 20)
        for rate in [20_000, 20] {
            let own = try ScriptedServer(["/f": [.drip(small, after: 600_000, bytesPerSecond: rate)]])
            let mirror = try ScriptedServer(
                line: NetworkLine(roundTrip: 5, rate: 15_000_000), ["/f": [.serve(small)]])
            for segments in [Segments.automatic, .fixed(4), .one] {
                let time = try await fetch(small, [own, mirror], digest: sha256(of: small), segments: segments)
                #expect(time < 15 * TimeMargin.factor, "\(time) s at \(rate) bytes a second, \(segments)")
                unlink(place.temporary.file("file"))
            }
        }
    }

    @Test("two connections that drip do not keep a rest that is too small to share from a source that is idle")
    func smallSlowRest() async throws {
        let small = Resource(size: 100_000)
        let own = try ScriptedServer(["/f": [.drip(small, bytesPerSecond: 20)]])
        // The mirror fails at first, so that both connections begin at the file's own server.
        let mirror = try ScriptedServer(["/f": [.status(503), .serve(small)]])
        let time = try await fetch(small, [own, mirror], digest: sha256(of: small), segments: .fixed(2))
        #expect(time < 20 * TimeMargin.factor, "\(time) s")
        #expect(own.requests().count >= 2)
    }

    @Test("sources that are slow to answer do not take turns for ever", arguments: [Segments.one, .automatic])
    func slowAnswers(segments: Segments) async throws {
        let resource = Resource(size: 6 << 20)
        let servers = try (0..<2).map { _ in
            try ScriptedServer(
                line: NetworkLine(roundTrip: 1_000, rate: 4_000_000), ["/f": [.serve(resource)]])
        }
        let time = try await fetch(resource, servers, digest: sha256(of: resource), segments: segments)
        #expect(time < 40 * TimeMargin.factor, "\(time) s")
        #expect(servers.reduce(0) { $0 + $1.requests().count } < 60)
    }

    @Test(
        "a mirror that never answers does not hold up what the main server can finish",
        arguments: [Segments.fixed(2), .fixed(4), .automatic])
    func unansweredRest(segments: Segments) async throws {
        let resource = Resource(size: 16 << 20)
        let own = try ScriptedServer(line: NetworkLine(roundTrip: 5, rate: 4_000_000), ["/f": [.serve(resource)]])
        let silent = try ScriptedServer(["/f": [.hang]])
        let time = try await fetch(resource, [own, silent], digest: sha256(of: resource), segments: segments)
        #expect(time < 15 * TimeMargin.factor, "\(time) s")
    }

    @Test(
        "one connection goes back to the main server from mirrors that are silent or slower",
        arguments: [[nil, nil], [120_000]] as [[Int64?]])
    func fruitlessTrials(rates: [Int64?]) async throws {
        let resource = Resource(size: 5_000_000)
        let own = try ScriptedServer(line: NetworkLine(roundTrip: 5, rate: 400_000), ["/f": [.serve(resource)]])
        let mirrors = try rates.map { rate in
            guard let rate else { return try ScriptedServer(["/f": [.hang]]) }
            return try ScriptedServer(line: NetworkLine(roundTrip: 5, rate: Int(rate)), ["/f": [.serve(resource)]])
        }
        let time = try await fetch(resource, [own] + mirrors, digest: sha256(of: resource), segments: .one)
        // It takes 12.5 s without mirrors.
        #expect(time < 19 * TimeMargin.factor, "\(time) s")
    }

    @Test(
        "a mirror with another file takes nothing away from what the main server goes on with",
        arguments: [-1, 1, -100_000])
    func otherFile(difference: Int64) async throws {
        let resource = Resource(size: 4 << 20)
        let other = Resource(size: (4 << 20) + difference, seed: 9)
        let own = try ScriptedServer(["/f": [.drip(resource, after: 3 << 20, bytesPerSecond: 1_000), .serve(resource)]])
        let mirror = try ScriptedServer(["/f": [.serve(other)]])
        _ = try await fetch(resource, [own, mirror], digest: sha256(of: resource), segments: .one)
        #expect(mirror.requests().count == 1)
        #expect(own.requests().count == 2)
    }

    @Test("what a server stated stands after a mismatch, and a mirror that nothing vouches for is no file")
    func startWithMirrors() async throws {
        let resource = Resource(size: 300_000)
        var wrong = resource
        wrong.wrongByte = 1000
        let field = Data(SHA256.hash(data: resource.bytes)).base64EncodedString()
        let own = try ScriptedServer([
            "/f": [.serve(wrong, headers: ["Repr-Digest: sha-256=:\(field):"]), .status(404)]
        ])
        let parked = try ScriptedServer(["/f": [.status(200, body: "<html>for sale</html>")]])
        manager.retrier = CountingRetrier(limit: 4)
        let asked = request(own.url("/f"), mirrors: [parked.url("/f")])
        let outcome = await manager.download(asked, to: place.target()).outcome
        #expect(outcome.result.error != nil)
        #expect(!place.names.contains("file"))
    }

    private func digestField(of resource: Resource) -> String {
        "Repr-Digest: sha-256=:\(Data(SHA256.hash(data: resource.bytes)).base64EncodedString()):"
    }

    @Test("a mirror that states another digest than the file's own server does not bring the file")
    func otherDigest() async throws {
        let (resource, other) = (Resource(size: 3_000_000), Resource(size: 3_000_000, seed: 9))
        let headers = ["ETag: \"g\"", digestField(of: resource)]
        let own = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 400_000, headers: headers), .serve(resource, headers: headers)]
        ])
        let mirror = try ScriptedServer(["/f": [.serve(other, headers: ["ETag: \"h\"", digestField(of: other)])]])
        manager.retrier = CountingRetrier(limit: 4)
        let file = try await manager.download(
            request(own.url("/f"), mirrors: [mirror.url("/f")]), to: place.target()
        ).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
    }

    @Test("a mirror that joins and states another digest leaves the others at work")
    func otherDigestJoins() async throws {
        let (resource, other) = (Resource(size: 12_000_000), Resource(size: 12_000_000, seed: 9))
        let own = try ScriptedServer(
            line: NetworkLine(roundTrip: 5, rate: 2_000_000),
            ["/f": [.serve(resource, headers: [digestField(of: resource)])]])
        let mirror = try ScriptedServer(["/f": [.serve(other, headers: [digestField(of: other)])]])
        _ = try await fetch(resource, [own, mirror], digest: nil, segments: .fixed(2))
        #expect(mirror.requests().count == 1)
    }

    @Test("a server whose file has another size than the one that is wanted makes way for the next")
    func otherSize() async throws {
        let servers = try servers([.serve(Resource(size: 20 << 20)), .serve(Self.shared)])
        var target = place.target(digest: sha256(of: Self.shared))
        let destination = target.destination
        target.destination = { (resource: ResourceMetadata) throws(TransferError) in
            var file = try destination(resource)
            file.size = Self.shared.size
            return file
        }
        let file = try await manager.download(
            request(servers[0].url("/f"), mirrors: [servers[1].url("/f")]), to: target
        ).value
        #expect(Self.shared.difference(fromFileAt: file.path) == nil)
        #expect(servers[0].requests().count == 1)
    }

    @Test("what a failing server brought makes way for a mirror when asked to, and not before that has the file")
    func leavesFailingSource() async throws {
        let own = try ScriptedServer(["/f": [.serveThenCut(Self.shared, after: 4 << 20), .status(500)]])
        let mirror = try ScriptedServer(["/f": [.status(503), .serve(Self.shared)]])
        var asked = request(own.url("/f"), mirrors: [mirror.url("/f")])
        let first = await manager.download(asked, to: place.target()).outcome
        #expect(first.result.error != nil && first.resumeData != nil && mirror.requests().isEmpty)
        let waiting = await manager.download(asked, to: place.target(), resumingWith: first.resumeData).outcome
        #expect(waiting.result.error?.httpStatus == 500 && mirror.requests().isEmpty)
        asked.leavesFailingSource = true
        let kept = await manager.download(asked, to: place.target(), resumingWith: waiting.resumeData).outcome
        #expect(kept.result.error?.httpStatus == 500)
        #expect(kept.resumeData?.ranges == first.resumeData?.ranges)
        let file = try await manager.download(asked, to: place.target(), resumingWith: kept.resumeData).value
        #expect(Self.shared.difference(fromFileAt: file.path) == nil)
    }

    @Test("what a mismatch has taught outlasts a pause")
    func remembersMismatches() async throws {
        let servers = try servers([.serve(Self.shared), .serve(Self.other)])
        let (own, liar) = (servers[0], servers[1])
        var asked = request(own.url("/f"), mirrors: [liar.url("/f")])
        asked.segments = .fixed(4)
        let retrier = CountingRetrier(limit: 1)
        manager.retrier = retrier
        let digest = sha256(of: Self.shared)
        let begun = manager.download(asked, to: place.target(digest: digest))
        begun.resume()
        try await eventually(that: "the second attempt has bytes") {
            begun.retryCount == 1 && (2 << 20..<20 << 20).contains(begun.progress.completedBytes)
        }
        begun.cancel()
        let data = try #require(await begun.outcome.resumeData.flatMap { ResumeData(bytes: $0.bytes) })
        let before = liar.requests().count
        let file = try await manager.download(asked, to: place.target(digest: digest), resumingWith: data).value
        #expect(Self.shared.difference(fromFileAt: file.path) == nil && file.isVerified)
        #expect(liar.requests().count == before)
    }

    @Test("duplicates that the server names are used where a digest is known")
    func duplicates() async throws {
        let resource = Resource(size: 24 << 20)
        let line = { NetworkLine(roundTrip: 5, rate: 8_000_000, total: 8_000_000) }
        let mirror = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let links = ["Link: <\(mirror.url("/f"))>; rel=duplicate; pri=1, <ftp://x/f>; rel=duplicate"]
        let own = try ScriptedServer(line: line(), ["/f": [.serve(resource, headers: links)]])
        _ = try await fetch(resource, [own], digest: sha256(of: resource))
        #expect(mirror.bodyBytesSent(for: "/f") > 4 << 20)
    }

    @Test("what several servers brought is gone on with by any of them")
    func resumes() async throws {
        let resource = Resource(size: 24 << 20)
        let line = { NetworkLine(roundTrip: 5, rate: 6_000_000, total: 6_000_000) }
        let first = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let second = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let digest = sha256(of: resource)
        let asked = request(first.url("/f"), mirrors: [second.url("/f")])
        let begun = manager.download(asked, to: place.target(digest: digest))
        begun.resume()
        try await eventually(that: "bytes come") { second.bodyBytesSent(for: "/f") > 3 << 20 }
        begun.cancel()
        let data = try #require(await begun.outcome.resumeData)
        #expect(data.ranges.ranges.count > 1)
        first.stop()
        let kept = try #require(ResumeData(bytes: data.bytes))
        let before = second.bodyBytesSent(for: "/f")
        let file = try await manager.download(asked, to: place.target(digest: digest), resumingWith: kept).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(file.isVerified)
        #expect(second.bodyBytesSent(for: "/f") - before <= resource.size - data.ranges.count + 4 << 20)
    }
}
