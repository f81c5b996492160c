import Crypto
import Curl
import FoundationEssentials
import TestSupport
import Testing

@testable import Transfer

@Suite("Files that are held against their digests")
struct VerificationTests {
    private let place: Place
    private let manager: SessionManager
    private let doubts = Notes<String>()

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
        manager.delegate.downloadTaskDidDoubt = { [doubts] _, reason in doubts.add(reason) }
    }

    private func digest(_ resource: Resource) -> FileDigest {
        FileDigest(algorithm: .sha256, bytes: SHA256.hash(data: resource.bytes))
    }

    private func field(_ resource: Resource) -> String {
        "Repr-Digest: sha-256=:\(Data(SHA256.hash(data: resource.bytes)).base64EncodedString()):"
    }

    private func pieces(_ resource: Resource, length: Int64) throws -> PieceDigests {
        let hashes = stride(from: 0, to: resource.size, by: Int64.Stride(length)).flatMap { start in
            Array(Insecure.SHA1.hash(data: resource.bytes(start..<min(resource.size, start + length))))
        }
        return try #require(PieceDigests(algorithm: .sha1, length: length, hashes: hashes))
    }

    private func download(
        _ server: ScriptedServer, digest: FileDigest? = nil, pieces: PieceDigests? = nil,
        _ resumeData: ResumeData? = nil
    ) async -> DownloadRequest.Response {
        await manager.download(
            TransferRequest(url: server.url("/f")), to: place.target(digest: digest, pieces: pieces),
            resumingWith: resumeData
        ).outcome
    }

    @Test("the front is hashed as it moves on, whatever the steps", arguments: [1, 2, 3, 4] as [UInt64])
    func front(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let resource = Resource(size: 20 << 20, seed: seed)
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        let threads = WorkerThreads(name: "test", limit: 2)
        defer { threads.stop() }
        let verification = Verification(of: part, against: digest(resource), on: threads)
        var front: Int64 = 0
        while front < resource.size {
            let end = min(resource.size, front + Int64.random(in: 1...5_000_000, using: &random))
            try resource.bytes(front..<end).withUnsafeBytes { try part.write($0, at: front) }
            front = end
            if Bool.random(using: &random) { verification.advance(to: front) }
        }
        let error = await withCheckedContinuation { continuation in
            verification.finish(size: resource.size) { continuation.resume(returning: $0) }
        }
        #expect(error == nil)
    }

    @Test("a part that was cut short meanwhile ends the verification with a word")
    func cutShort() async throws {
        let resource = Resource(size: 3 << 20)
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "test-1")
        try resource.bytes.withUnsafeBytes { try part.write($0, at: 0) }
        try part.truncate(to: 1000)
        let threads = WorkerThreads(name: "test", limit: 2)
        defer { threads.stop() }
        let verification = Verification(of: part, against: digest(resource), on: threads)
        verification.advance(to: 2 << 20)
        let error = await withCheckedContinuation { continuation in
            verification.finish(size: resource.size) { continuation.resume(returning: $0) }
        }
        #expect(error?.code == .remoteChanged)
    }

    @Test("what its server stated of a version stands for it, also where it is not said again")
    func statedOnce() async throws {
        let resource = Resource(size: 300_000)
        var wrong = resource
        wrong.wrongByte = 1000
        let server = try ScriptedServer(["/f": [.serve(wrong, headers: [field(resource)]), .serve(wrong)]])
        manager.retrier = CountingRetrier(limit: 3)
        #expect(await download(server).result.error?.code == .checksumMismatch)
        #expect(!place.names.contains("file"))
        let healed = try ScriptedServer(["/f": [.serve(wrong, headers: [field(resource)]), .serve(resource)]])
        let file = try await download(healed).result.get()
        #expect(file.isVerified)
    }

    @Test("F47: what its server states of a file is held against it", arguments: [nil, 500_000] as [Int64?])
    func statedDigest(wrongByte: Int64?) async throws {
        let resource = Resource(size: 1_000_000)
        var sent = resource
        sent.wrongByte = wrongByte
        let server = try ScriptedServer(["/f": [.serve(sent, headers: [field(resource)])]])
        let outcome = await download(server)
        #expect(server.requests().allSatisfy { $0.header("want-repr-digest") == "sha-256=10, sha-512=5" })
        if wrongByte == nil {
            #expect(try outcome.result.get().isVerified)
        } else {
            #expect(outcome.result.error?.code == .checksumMismatch)
            #expect(place.names.isEmpty)
        }
    }

    @Test("F48: a person's digest outranks the server's, and the difference is told")
    func doubt() async throws {
        let resource = Resource(size: 1_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource, headers: [field(Resource(size: 5))])]])
        #expect(try await download(server, digest: digest(resource)).result.get().isVerified)
        #expect(doubts.all.count == 1)
    }

    @Test("a stated digest that is another one shows that the file has changed")
    func changed() async throws {
        var (one, other) = (Resource(size: 1_000_000, seed: 1), Resource(size: 1_000_000, seed: 2))
        (one.entityTag, other.entityTag) = ("\"same\"", "\"same\"")
        let server = try ScriptedServer([
            "/f": [.serveThenCut(one, after: 600_000, headers: [field(one)]), .serve(other, headers: [field(other)])]
        ])
        let first = await download(server)
        #expect(first.resumeData?.ranges.count == 600_000)
        let file = try await download(server, first.resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
    }

    @Test("F47: of a file with digests for its pieces only the wrong ones are fetched again")
    func wrongPiece() async throws {
        let resource = Resource(size: 1_000_000)
        var wrong = resource
        wrong.wrongByte = 450_000
        let server = try ScriptedServer(["/f": [.serve(wrong), .serve(resource)]])
        let pieces = try pieces(resource, length: 100_000)
        let first = await download(server, digest: digest(resource), pieces: pieces)
        #expect(first.result.error?.code == .checksumMismatch)
        #expect(first.resumeData?.ranges.ranges == [0..<400_000, 500_000..<1_000_000])
        let data = ResumeData(bytes: try #require(first.resumeData).bytes)
        #expect(try await download(server, digest: digest(resource), pieces: pieces, data).result.get().isVerified)
        #expect(resource.difference(fromFileAt: place.temporary.file("file")) == nil)
        #expect(server.requests()[1].header("range") == "bytes=400000-499999")
    }

    @Test(
        "F47: the wrong pieces alone are fetched also from a mirror, or where nothing tells versions apart",
        arguments: [nil, "\"a\"", "\"b\""] as [String?], [false, true])
    func wrongPiecesElsewhere(tag: String?, hasMirror: Bool) async throws {
        var resource = Resource(size: 8 << 20)
        resource.entityTag = tag
        var wrong = resource
        wrong.wrongByte = 2_450_000
        wrong.entityTag = tag == nil ? nil : "\"a\""
        let server = try ScriptedServer([
            "/f": hasMirror ? [.serve(wrong)] : [.serve(wrong), .serve(wrong), .serve(resource)]
        ])
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        let pieces = try pieces(resource, length: 1_000_000)
        var request = TransferRequest(url: server.url("/f"))
        request.segments = .one
        if hasMirror { request.mirrors = [mirror.url("/f")] }
        manager.retrier = CountingRetrier(limit: 3)
        let file = try await manager.download(
            request, to: place.target(digest: digest(resource), pieces: pieces)
        ).value
        #expect(file.isVerified && resource.difference(fromFileAt: file.path) == nil)
        let asked = (server.requests() + mirror.requests()).compactMap { $0.header("range") }
        #expect(asked == ["bytes=2000000-2999999", "bytes=2000000-2999999"])
    }

    @Test("digests of pieces alone verify a file too, and what they do not fit is refused")
    func piecesAlone() async throws {
        let resource = Resource(size: 1_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        #expect(try await download(server, pieces: pieces(resource, length: 300_000)).result.get().isVerified)
        let others = try pieces(Resource(size: 1_000_001), length: 300_000)
        #expect(await download(server, pieces: others).result.error?.code == .checksumMismatch)
    }
}
