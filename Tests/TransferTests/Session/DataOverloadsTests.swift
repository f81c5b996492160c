import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Data in place of arrays of bytes", .timeLimit(.minutes(1)))
struct DataOverloadsTests {
    private let data = Data([0, 1, 255])
    private let bytes: [UInt8] = [0, 1, 255]

    @Test("bodies of requests are made of data")
    func bodies() async throws {
        let server = try ScriptedServer(["/u": [.status(200)]])
        let (manager, url) = (try SessionManager(configuration: .test()), server.url("/u"))
        _ = try await manager.upload(data, with: url).value
        _ = try await manager.upload(data, to: url, method: .put).value
        _ = try await manager.upload(.data(data), with: url).value
        _ = try await manager.upload(.data([0, 1, 255]), with: url).value
        let stream = BodyStream { [data] in
            AsyncStream<Data> { continuation in
                continuation.yield(data)
                continuation.finish()
            }
        }
        _ = try await manager.upload(.stream(stream), with: url).value
        #expect(server.requests().map(\.body) == Array(repeating: bytes, count: 5))
        #expect(server.requests().map(\.method) == ["POST", "PUT", "POST", "POST", "POST"])
    }

    @Test("a body is passed on as data")
    func streamedBody() async throws {
        let server = try ScriptedServer(["/s": [.status(200, body: "abc")]])
        let manager = try SessionManager(configuration: .test())
        let received = Mutex(Data())
        _ = try await manager.request(server.url("/s")).stream { (piece: Data) in received.withLock { $0 += piece } }
            .value
        #expect(received.withLock { $0 } == Data("abc".utf8))
    }

    @Test("a body is awaited as data by either name, and its failure is thrown")
    func awaitedBody() async throws {
        let server = try ScriptedServer(["/s": [.status(200, body: "abc")], "/e": [.status(204)], "/x": [.status(404)]])
        let manager = try SessionManager(configuration: .test())
        let request = manager.request(server.url("/s"))
        #expect(try await request.data == Data("abc".utf8))
        #expect(try await request.data == request.value)
        #expect(try await manager.request(server.url("/e")).data.isEmpty)
        await #expect(throws: TransferError.self) { try await manager.request(server.url("/x")).validate().data }
    }

    @Test("forms, encoded requests and framed files take and return data")
    func formsAndEncodings() throws {
        var forms = (MultipartFormData(), MultipartFormData())
        forms.0 = MultipartFormData(boundary: forms.1.boundary)
        forms.0.append(data, name: "d", fileName: "f", mimeType: "a/b")
        forms.1.append(bytes, name: "d", fileName: "f", mimeType: "a/b")
        #expect(try forms.0.encodedData() == Data(try forms.1.encode()))

        var encoded = EncodedRequest(request: TransferRequest(url: "http://h/"), body: data)
        #expect(encoded.body == bytes && encoded.data == data)
        encoded.data = nil
        #expect(encoded.body == nil)

        let place = try Place()
        try place.temporary.write("x", to: "f")
        let source = try UploadSource(path: place.temporary.file("f"))
        let framed = FramedFile(before: data, source: source, after: data)
        #expect(framed.before == bytes && framed.after == bytes && framed.length == 7)
    }

    @Test("identities, resume data, digests and stored responses take and return data")
    func values() throws {
        #expect(ClientIdentity(pkcs12: data, passphrase: "p") == ClientIdentity(pkcs12: bytes, passphrase: "p"))
        #expect(ResumeData(bytes: data) == nil)
        let hashes = Data(repeating: 1, count: 64)
        let digests = PieceDigests(algorithm: .sha256, length: 1, hashes: hashes)
        #expect(digests == PieceDigests(algorithm: .sha256, length: 1, hashes: Array(hashes)))
        let evaluation = CacheEvaluation(method: .get, fields: [:], policy: .useProtocolCachePolicy)
        let head = ResponseHead(status: 200, version: "", lines: Array("Cache-Control: max-age=60\r\n".utf8))
        let stored = evaluation.stored(head, body: data, requestedAt: 0, now: 0)
        #expect(stored?.data == data && stored?.body == bytes)
    }

    @Test("resume data are stored as data")
    func resumeData() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 200_000), .serve(resource)]])
        let (manager, place) = (try SessionManager(configuration: .test()), try Place())
        let url = server.url("/f")
        let broken = await manager.download(url, to: place.temporary.file("file")).outcome
        let resumeData = try #require(broken.resumeData)
        let again = try #require(ResumeData(bytes: resumeData.data))
        #expect(again == resumeData && ResumeData(bytes: resumeData.bytes) == again)
        #expect(try await manager.download(resumingWith: again).value.path == place.temporary.file("file"))
    }
}
