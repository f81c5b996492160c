import TestSupport
import Testing

@testable import Transfer

@Suite("Files that come coded though asked for as they are")
struct DecodedDownloadTests {
    private let place: Place
    private let packed: TemporaryDirectory
    private let manager: SessionManager
    private let restarts = Notes<String>()

    init() throws {
        place = try Place()
        packed = try TemporaryDirectory()
        manager = try SessionManager(configuration: .test())
        manager.delegate.downloadTaskDidRestart = { [restarts] _, reason in restarts.add(reason) }
    }

    /// Returns the gzip-compressed output of a command.
    private func zipped(_ command: String) async throws -> [UInt8] {
        let path = packed.file("packed")
        let outcome = try await run(["sh", "-c", "\(command) | gzip -c > \(path)"])
        try #require(outcome.succeeded)
        return try bytes(ofFileAt: path)
    }

    private static func digest(of bytes: [UInt8]) -> FileDigest {
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return FileDigest(algorithm: .sha256, bytes: digest.value)
    }

    private func zipped(_ resource: Resource) async throws -> [UInt8] {
        let path = packed.file("plain")
        try resource.write(to: path)
        return try await zipped("cat \(path)")
    }

    private func answer(_ bytes: [UInt8], _ fields: [String] = ["ETag: \"coded\""]) -> MisbehavingResponse {
        var answer = MisbehavingResponse(200, ["Content-Encoding: gzip"] + fields)
        answer.set("Content-Length", "\(bytes.count)")
        answer.body = [.bytes(bytes)]
        return answer
    }

    private func download(_ liar: MisbehavingServer, _ path: String = "/f") async -> Result<
        PublishedFile, TransferError
    > {
        let request = TransferRequest(url: liar.url(path))
        return await manager.download(request, to: place.target()).outcome.result
    }

    @Test("F44: the file is decoded on its way", arguments: [0, 1, 700_000, 9_000_000] as [Int64])
    func whole(size: Int64) async throws {
        let resource = Resource(size: size, seed: 3)
        let bytes = try await zipped(resource)
        let liar = try MisbehavingServer { _ in answer(bytes) }
        let file = try await download(liar).get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(file.size == size)
    }

    @Test("F44: the whole is asked for again after a break, and never a part")
    func cut() async throws {
        let resource = Resource(size: 2_000_000, seed: 3)
        let bytes = try await zipped(resource)
        let asked = Notes<String>()
        let liar = try MisbehavingServer { question in
            asked.add(question.asksForRange ? "a part" : "the whole")
            return question.number < 2 ? answer(bytes).cut(after: 1_000_000) : answer(bytes)
        }
        for _ in 0..<2 {
            let error = try #require(await download(liar).error)
            #expect(error.code == .truncated)
            #expect(error.resumeData == nil)
        }
        let request = manager.download(TransferRequest(url: liar.url()), to: place.target())
        #expect(resource.difference(fromFileAt: try await request.value.path) == nil)
        #expect(Set(asked.all) == ["the whole"])
        // The bytes received over the line.
        #expect(request.progress.transferredBytes == Int64(bytes.count))
    }

    @Test(
        "F73: a digest decides whether the file is what came or what it decodes to",
        arguments: ["/f", "/f.tgz"], ["raw", "decoded", "twice", "neither"])
    func digestDecides(path: String, wanted: String) async throws {
        let resource = Resource(size: 700_000, seed: 5)
        let once = try await zipped(resource)
        let twice = try await zipped("gzip -c \(packed.file("plain"))")
        let codings = wanted == "twice" ? "gzip, gzip" : "gzip"
        let sent = wanted == "twice" ? twice : once
        let liar = try MisbehavingServer { _ in
            var answer = answer(sent)
            answer.set("Content-Encoding", codings)
            return answer
        }
        let digest: FileDigest =
            switch wanted {
            case "raw": Self.digest(of: sent)
            case "decoded", "twice": sha256(of: resource)
            default: sha256(of: Resource(size: 9, seed: 6))
            }
        let request = TransferRequest(url: liar.url(path))
        let result = await manager.download(request, to: place.target(digest: digest)).outcome.result
        guard wanted != "neither" else {
            #expect(result.error?.code == .checksumMismatch)
            return #expect(!place.names.contains("file"))
        }
        let file = try result.get()
        #expect(file.isVerified && place.names == ["file"])
        #expect(try bytes(ofFileAt: file.path) == (wanted == "raw" ? sent : resource.bytes))
        #expect(liar.requests.count == 1)
    }

    @Test("F73: words that name no coding leave the bytes as they are, and ranges go on", arguments: ["none", "UTF-8"])
    func noCoding(word: String) async throws {
        let resource = Resource(size: 2_000_000, seed: 3)
        let liar = try MisbehavingServer { question in
            let answer = MisbehavingResponse(honest: resource, to: question, fields: ["Content-Encoding: \(word)"])
            return question.number == 0 ? answer.cut(after: 1_000_000) : answer
        }
        let request = TransferRequest(url: liar.url())
        let error = try #require(await manager.download(request, to: place.target()).outcome.error)
        let response = await manager.download(request, to: place.target(), resumingWith: error.resumeData).outcome
        #expect(resource.difference(fromFileAt: try response.result.get().path) == nil)
        #expect(restarts.all.isEmpty && liar.bodyBytesSent == resource.size)
    }

    @Test("F44: what was begun plain and comes coded is fetched anew")
    func later() async throws {
        let resource = Resource(size: 2_000_000, seed: 3)
        let bytes = try await zipped(resource)
        let liar = try MisbehavingServer { question in
            question.number == 0 ? MisbehavingResponse(whole: resource).cut(after: 1_000_000) : answer(bytes)
        }
        let request = TransferRequest(url: liar.url())
        let error = try #require(await manager.download(request, to: place.target()).outcome.error)
        let resumeData = try #require(error.resumeData)
        let response = await manager.download(request, to: place.target(), resumingWith: resumeData).outcome
        #expect(resource.difference(fromFileAt: try response.result.get().path) == nil)
        #expect(restarts.all.count == 1)
    }

    @Test("A21, F44: what grows past all measure is refused, and what grows a lot is not")
    func bomb() async throws {
        let bomb = try await zipped("head -c 400000000 /dev/zero")
        let liar = try MisbehavingServer { _ in answer(bomb) }
        let error = try #require(await download(liar).error)
        #expect(error.code == .tooLarge)
        let zeros = try await zipped("head -c 60000000 /dev/zero")
        let dense = try MisbehavingServer { _ in answer(zeros) }
        #expect(try await download(dense).get().size == 60_000_000)
    }

    @Test("F44: a body that is not what it says is no file", arguments: ["garbage", "cut short", "wrong sum"])
    func broken(how: String) async throws {
        var bytes = try await zipped(Resource(size: 500_000, seed: 3))
        switch how {
        case "garbage": bytes = Resource(size: 10_000, seed: 4).bytes
        case "cut short": bytes.removeLast(20_000)
        default: bytes[bytes.count - 8] ^= 1
        }
        let liar = try MisbehavingServer { [bytes] _ in answer(bytes) }
        #expect(await download(liar).error?.code == .truncated)
        #expect(!place.names.contains("file"))
    }

    @Test(
        "a transfer coding that nobody asked for is refused, whole or cut",
        arguments: [nil, 0, 1, 20_000] as [Int?], [false, true])
    func transferCoding(cut: Int?, isChunked: Bool) async throws {
        let bytes = try await zipped(Resource(size: 700_000, seed: 3))
        let liar = try MisbehavingServer { _ in
            var answer = MisbehavingResponse(200, ["ETag: \"coded\""])
            answer.body = [.bytes(Array(bytes.prefix(cut ?? bytes.count)))]
            if isChunked { answer = answer.chunked() }
            answer.ending = .close
            return answer.with("Transfer-Encoding", isChunked ? "gzip, chunked" : "gzip")
        }
        let error = try #require(await download(liar).error)
        #expect(error.code == .truncated)
        #expect(error.message.contains("gzip"))
        let data = await manager.request(TransferRequest(url: liar.url("/f"))).serialized(using: StringSerializer())
        #expect(data.result.error?.code == .truncated)
    }
}
