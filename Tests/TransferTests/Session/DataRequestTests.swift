import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Data and upload requests: what comes back, and how it is taken")
struct DataRequestTests {
    private let manager: SessionManager

    init() throws {
        manager = try SessionManager(configuration: .test())
    }

    private struct Person: Decodable, Equatable, Sendable {
        var name: String
        var age: Int
    }

    // MARK: Values

    @Test("an answer is data, text, JSON of any shape, or a value of one's own")
    func serializers() async throws {
        let server = try ScriptedServer([
            "/p": [.status(200, headers: ["Content-Type: application/json"], body: #"{"name": "Ada", "age": 36}"#)]
        ])
        let url = server.url("/p")
        #expect(try await manager.request(url).value.count == 26)
        #expect(try await manager.request(url).string.hasPrefix("{"))
        #expect(try await manager.request(url).decoded(as: Person.self) == Person(name: "Ada", age: 36))
        let json = await manager.request(url).serialized(using: JSONSerializer())
        #expect(json.value?["age"] == .number(36) && json.data?.count == 26 && json.head?.status == 200)
        let heard = Notes<String>()
        let request = manager.request(url)
            .responseData(queue: .inline) { heard.add("\($0.value?.count ?? 0)") }
            .responseString(queue: .inline) { heard.add($0.value ?? "") }
            .responseJSON(queue: .inline) { heard.add("\($0.value?["name"] == .string("Ada"))") }
            .responseDecodable(of: Person.self, queue: .inline) { heard.add($0.value?.name ?? "") }
        await request.completion()
        #expect(heard.all == ["26", #"{"name": "Ada", "age": 36}"#, "true", "Ada"])
    }

    @Test(
        "K22: an empty answer is empty data and text, and JSON only with 204 and 205", arguments: [204, 205, 200, 404])
    func empty(status: Int) async throws {
        let server = try ScriptedServer(["/e": [.status(status)]])
        let url = server.url("/e")
        let isEmptySuccess = status == 204 || status == 205
        #expect(try await manager.request(url).string.isEmpty)
        #expect(await manager.request(url).serialized(using: DataSerializer()).value?.count == 0)
        #expect(await manager.request(url).serialized(using: JSONSerializer()).value == (isEmptySuccess ? .null : nil))
        #expect(try await manager.request(url).value.isEmpty)
    }

    @Test("what cannot be made into the value is the response's error, and the data are there all the same")
    func wrongForm() async throws {
        let server = try ScriptedServer(["/p": [.status(200, body: "{\"name\": 1}")]])
        let response = await manager.request(server.url("/p")).serialized(using: DecodableSerializer<Person>())
        #expect(response.error?.code == .serializationFailed && response.error?.underlying is DecodingError)
        #expect(response.data?.isEmpty == false)
    }

    @Test("text is read in the encoding that the answer names")
    func charset() async throws {
        let server = try RawServer([
            Array(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=\"ISO-8859-1\"\r\nContent-Length: 2\r\n\r\n".utf8)
                + [0xE4, 0x62],
            Array("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n".utf8) + [0xE4, 0x62],
        ])
        #expect(try await manager.request(server.url()).string == "äb")
        #expect(
            await manager.request(server.url()).serialized(using: StringSerializer()).error?.code
                == .serializationFailed)
    }

    @Test("windows-1252 is not ISO 8859-1, and UTF-16 is not read as UTF-8")
    func otherCharsets() throws {
        func text(_ bytes: [UInt8], _ charset: String) throws -> String {
            let line = "Content-Type: text/plain; charset=\(charset)\r\n"
            let head = ResponseHead(status: 200, version: "", lines: Array(line.utf8))
            return try StringSerializer().serialize(Data(bytes), of: head)
        }
        #expect(try text([0x80, 0x99, 0x9F, 0xE4], "windows-1252") == "€™Ÿä")
        #expect(try text([0x61, 0, 0xE4, 0], "UTF-16LE") == "aä")
        #expect(try text([0, 0x61, 0, 0xE4], "UTF-16BE") == "aä")
    }

    @Test("JSON as deep as the decoder goes is read wherever handlers run", arguments: ["[]", "{}"])
    func deepJSON(brackets: String) async throws {
        let (depth, isList) = (500, brackets == "[]")
        let text =
            String(repeating: isList ? "[" : "{\"a\":", count: depth) + (isList ? "" : "1")
            + String(repeating: isList ? "]" : "}", count: depth)
        let server = try ScriptedServer(["/f": [.status(200, body: text)]])
        for queue in [HandlerQueue.shared, .inline] {
            let isRead = await withCheckedContinuation { continuation in
                manager.request(server.url("/f")).responseJSON(queue: queue) {
                    continuation.resume(returning: $0.value != nil)
                }
            }
            #expect(isRead)
        }
    }

    @Test("an answer that is coded for the way arrives decoded")
    func decoded() async throws {
        let nginx = try await Nginx([.compressed("/z/")])
        let text = String(repeating: "all work and no play ", count: 5_000)
        try text.write(toFile: "\(nginx.root)/t.txt", atomically: false, encoding: .utf8)
        let request = manager.request(nginx.url("/z/t.txt"))
        #expect(try await request.string == text)
        #expect(request.response?.contentCoding == "gzip")
    }

    @Test("an answer that is larger than the session keeps fails, and does not fill the memory")
    func tooLarge() async throws {
        let server = try ScriptedServer(["/f": [.chunked(Resource(size: 3_000_000))]])
        let manager = try SessionManager(configuration: .test { $0.maximumCollectedBytes = 1_000_000 })
        #expect(await manager.request(server.url("/f")).outcome.error?.code == .tooLarge)
    }

    // MARK: Validation

    @Test("K8: validate() wants 2xx and what Accept names; an empty body is of every type")
    func validation() async throws {
        let server = try ScriptedServer([
            "/json": [.status(200, headers: ["Content-Type: application/json; charset=utf-8"], body: "{}")],
            "/404": [.status(404, headers: ["Content-Type: application/json"], body: "{}")],
            "/empty": [.status(200, headers: ["Content-Type: text/html"])],
            "/untyped": [.status(200, body: "abc")],
        ])
        func code(_ path: String, accept: String?) async -> TransferError.Code? {
            var request = TransferRequest(url: server.url(path))
            request.headerFields[.accept] = accept
            return await manager.request(request).validate().outcome.error?.code
        }
        for accept in [nil, "*/*", "application/*", "text/html, application/json;q=0.5"] {
            #expect(await code("/json", accept: accept) == nil, "\(accept ?? "-")")
        }
        #expect(await code("/json", accept: "text/*, image/png") == .unacceptableContentType)
        #expect(await code("/404", accept: nil) == .httpStatus)
        #expect(await code("/empty", accept: "application/json") == nil)
        #expect(await code("/untyped", accept: "application/json") == .unacceptableContentType)
        #expect(await code("/untyped", accept: "*/*") == nil)
        #expect(await manager.request(server.url("/404")).outcome.error == nil, "nothing is demanded unless asked for")
        #expect(await manager.request(server.url("/404")).validate(statusCode: [404]).outcome.error == nil)
    }

    @Test("a validator of one's own sees the answer, and its error is kept")
    func ownValidator() async throws {
        struct TooShort: Error {}
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let response = await manager.request(server.url("/f")).validate { _, head, data in
            head.status == 200 && data?.count == 3 ? .failure(TooShort()) : .success(())
        }.outcome
        #expect(response.error?.code == .validationFailed && response.error?.underlying is TooShort)
    }

    // MARK: Streamed bodies

    @Test("a body that is read as it comes is whole, and the server waits for a slow reader")
    func body() async throws {
        let resource = Resource(size: 8_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let request = manager.request(server.url("/f"))
        var (taken, isSame) = (0, true)
        for try await bytes in request.body {
            // The reader pauses at first: the sockets and the channel bound the bytes buffered.
            if taken == 0 {
                try await eventually(that: "the server stands still") {
                    let before = server.bodyBytesSent(for: "/f")
                    try? await Task.sleep(for: .milliseconds(100))
                    return before == server.bodyBytesSent(for: "/f")
                }
                // The bytes read at first, and the same amount again.
                #expect(request.progress.completedBytes <= 2 * Int64(BodyChannel.capacity) + (1 << 17))
            }
            isSame = isSame && resource.bytes(Int64(taken)..<Int64(taken + bytes.count)) == bytes
            taken += bytes.count
        }
        #expect(taken == 8_000_000 && isSame)
        #expect(await request.outcome.data == nil && request.delegate.isComplete)
    }

    @Test("letting go of a body, or cancelling who reads it, ends the request", arguments: [true, false])
    func abandonedBody(breaks: Bool) async throws {
        let server = try ScriptedServer(["/f": [.drip(Resource(size: 1 << 30), bytesPerSecond: 1 << 20)]])
        let request = manager.request(server.url("/f"))
        let reader = Task {
            for try await _ in request.body where breaks { break }
        }
        try await eventually(that: "bytes come") { request.progress.completedBytes > 0 || request.delegate.isComplete }
        if !breaks { reader.cancel() }
        _ = await reader.result
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("who reads a body while its request waits for another attempt can be cancelled", .timeLimit(.minutes(1)))
    func cancelledBetweenAttempts() async throws {
        let server = try ScriptedServer(["/f": [.status(503)]])
        let asked = Notes<Int>()
        manager.retrier = ClosureRetrier { request, _ in
            asked.add(request.retryCount)
            return .retry(after: 3_000_000)
        }
        let request = manager.request(server.url("/f")).validate()
        let reader = Task { for try await _ in request.body {} }
        try await eventually(that: "it waits") { asked.all == [0] }
        reader.cancel()
        _ = await reader.result
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(server.requests().count == 1)
    }

    @Test("a body that is asked for late is whole all the same", .timeLimit(.minutes(1)), arguments: [true, false])
    func lateBody(isOver: Bool) async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "whole")]])
        let request = manager.request(server.url("/f")).resume()
        if isOver { _ = await request.outcome }
        var bytes: [UInt8] = []
        for try await piece in request.body { bytes += piece }
        #expect(String(decoding: bytes, as: UTF8.self) == "whole")
    }

    @Test("a second reader of a body gets an error, and the first one its end again", arguments: [true, false])
    func secondReader(isReleased: Bool) async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "whole")]])
        let request = manager.request(server.url("/f")).resume()
        _ = await request.outcome
        var first: BodySequence.Iterator? = request.body.makeAsyncIterator()
        #expect(try await first?.next() == Array("whole".utf8))
        if isReleased {
            first = nil
        } else {
            #expect(try await first?.next() == nil)
        }
        let error = await #expect(throws: TransferError.self) { for try await _ in request.body {} }
        #expect(error?.message == "the body was already read; it can be read once")
        #expect(try await first?.next() == nil)
    }

    @Test("a body that broke is an error for its reader, after what had come")
    func brokenBody() async throws {
        let server = try ScriptedServer(["/f": [.serveThenCut(Resource(size: 100_000), after: 50_000)]])
        manager.retrier = CountingRetrier(limit: 3)
        var taken = 0
        await #expect(throws: TransferError.self) {
            for try await bytes in manager.request(server.url("/f")).body { taken += bytes.count }
        }
        #expect(taken == 50_000)
        #expect(server.requests().count == 1, "what has been handed out cannot be taken back")
    }

    @Test("a stream closure gets every piece, and nothing is kept")
    func streamClosure() async throws {
        let resource = Resource(size: 500_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let pieces = Notes<[UInt8]>()
        let response = await manager.request(server.url("/f")).stream { pieces.add($0) }.outcome
        #expect(pieces.all.flatMap(\.self) == resource.bytes)
        #expect(response.data == nil)
    }

    // MARK: Progress

    @Test("M20: progress is one value over all attempts, a sequence of what is new, and ends with the request")
    func progress() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/f": [.status(503), .serve(resource)]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.request(server.url("/f")).validate()
        let progress = request.progress
        let seen = Task {
            var seen: [TransferProgress.Snapshot] = []
            for await snapshot in request.progress { seen.append(snapshot) }
            return seen
        }
        _ = try await request.value
        let all = await seen.value
        #expect(request.progress === progress)
        #expect(all.last?.completedBytes == 300_000 && all.last?.fractionCompleted == 1)
        #expect(zip(all, all.dropFirst()).allSatisfy { $0 != $1 })
    }

    @Test("an answer to an upload is empty where it is, however much was sent, and the upload is tried again till then")
    func streamedAnswers() async throws {
        let server = try ScriptedServer(["/f": [.status(503), .status(204)]])
        manager.retrier = CountingRetrier(limit: 1)
        let request = manager.upload(.data(Array(repeating: 1, count: 100_000)), with: server.url("/f"))
            .stream { _ in }.validate(statusCode: 200..<300).validate(contentType: ["text/plain"])
        #expect(await request.outcome.head?.status == 204)
        #expect(await request.outcome.error == nil)
        #expect(server.requests().count == 2)
    }

    @Test("who reads the progress of a request sets it going, and no one else", .timeLimit(.minutes(1)))
    func readingStarts() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let request = manager.request(server.url("/f"))
        #expect(!request.delegate.isStarted)
        for await _ in request.progress {}
        #expect(request.response?.status == 200)

        let held = try SessionManager(configuration: .test(), startRequestsImmediately: false)
        let other = held.request(server.url("/f"))
        let reader = Task { for await _ in other.progress {} }
        #expect(!other.delegate.isStarted)
        other.resume()
        await reader.value
        #expect(server.requests().count == 2)
    }

    @Test("progress that a second request goes on with ends with that one", .timeLimit(.minutes(1)))
    func progressOfTwo() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "x")]])
        let progress = TransferProgress()
        func send() -> UploadRequest { manager.upload(.data([1]), with: server.url("/f"), progress: progress) }
        _ = await send().outcome
        let second = send()
        for await _ in second.uploadProgress {}
        #expect(second.delegate.isComplete)
    }

    @Test("a progress that nobody finishes lets go of one who is cancelled", .timeLimit(.minutes(1)))
    func cancelledProgress() async {
        let progress = TransferProgress()
        let reader = Task { for await _ in progress {} }
        await Task.yield()
        reader.cancel()
        await reader.value
    }

    // MARK: Uploads

    @Test("K18: a body goes up from data, from a file, and from a stream", arguments: 0..<4)
    func uploads(form: Int) async throws {
        let place = try Place()
        let resource = Resource(size: 700_001)
        let server = try ScriptedServer(["/in": [.status(201)]])
        let bytes = resource.bytes
        let body: RequestBody
        switch form {
        case 0: body = .data(bytes)
        case 1:
            try resource.write(to: place.temporary.file("source"))
            body = .file(try UploadSource(path: place.temporary.file("source")))
        default:
            body = .stream(
                BodyStream(length: form == 2 ? Int64(bytes.count) : nil) {
                    AsyncStream<[UInt8]> { continuation in
                        for start in stride(from: 0, to: bytes.count, by: 10_000) {
                            continuation.yield(Array(bytes[start..<min(start + 10_000, bytes.count)]))
                        }
                        continuation.finish()
                    }
                })
        }
        let request = manager.upload(body, with: TransferRequest(url: server.url("/in"), method: .post))
        #expect(await request.validate().outcome.head?.status == 201)
        let seen = try #require(server.requests().first)
        #expect(seen.body == bytes)
        #expect(seen.header("content-length") == (form == 3 ? nil : "700001"))
        #expect(request.uploadProgress.completedBytes == 700_001)
    }

    @Test("M18: a stream is made anew for each attempt, redirect and challenge")
    func streamAgain() async throws {
        let server = try ScriptedServer([
            "/in": [
                .status(503), .status(401, headers: ["WWW-Authenticate: Basic realm=\"x\""]),
                .status(307, headers: ["Location: /there"]),
            ], "/there": [.status(201)],
        ])
        manager.retrier = CountingRetrier(limit: 1)
        let made = Notes<Bool>()
        let body = BodyStream(length: 30_000) {
            made.add(true)
            return AsyncStream<[UInt8]> { continuation in
                for _ in 0..<3 { continuation.yield([UInt8](repeating: 5, count: 10_000)) }
                continuation.finish()
            }
        }
        let request = manager.upload(.stream(body), with: TransferRequest(url: server.url("/in"), method: .put))
        #expect(await request.authenticate(user: "u", password: "p").validate().outcome.head?.status == 201)
        #expect(server.requests(for: "/there").first?.body == [UInt8](repeating: 5, count: 30_000))
        #expect(made.all.count == 4)
    }

    @Test(
        "a stream that fails, or is longer or shorter than it said, fails the request", .timeLimit(.minutes(1)),
        arguments: 0..<3)
    func wrongStream(form: Int) async throws {
        struct Broken: Error {}
        let server = try ScriptedServer(["/in": [.status(201)]])
        let body = BodyStream(length: 20_000) {
            AsyncThrowingStream<[UInt8], any Error> { continuation in
                continuation.yield([UInt8](repeating: 1, count: form == 1 ? 30_000 : 10_000))
                continuation.finish(throwing: form == 0 ? Broken() : nil)
            }
        }
        let outcome = await manager.upload(
            .stream(body), with: TransferRequest(url: server.url("/in"), method: .put)
        ).outcome
        #expect(outcome.error?.code == .bodyStreamFailed)
        if form == 0 { #expect(outcome.error?.underlying is Broken) }
        #expect(server.requests().allSatisfy { $0.body.count < 20_000 })
    }

    @Test(
        "a stream longer than it said fails the request, also if its length is that of libcurl's buffer",
        .timeLimit(.minutes(1)), arguments: [16 << 10, 64 << 10, 256 << 10, 512 << 10])
    func longStream(length: Int) async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let body = BodyStream(length: Int64(length)) {
            AsyncStream<[UInt8]> { continuation in
                continuation.yield([UInt8](repeating: 1, count: length + 1))
                continuation.finish()
            }
        }
        let request = TransferRequest(url: server.url("/in"), method: .put)
        #expect(await manager.upload(.stream(body), with: request).outcome.error?.code == .bodyStreamFailed)
        #expect(server.requests().allSatisfy { $0.body.count < length })
    }

    @Test("parameters go into the query or the body, and a URL that is none arrives through the handlers")
    func parameters() async throws {
        let server = try ScriptedServer([
            "/q?a=1&b%5B%5D=x": [.status(200, body: "q")], "/p": [.status(200, body: "p")],
        ])
        #expect(try await manager.request(server.url("/q"), parameters: ["a": 1, "b": ["x"]]).string == "q")
        let posted = manager.request(
            server.url("/p"), method: .post, parameters: ["a": "b c"], encoding: JSONEncoding())
        #expect(try await posted.string == "p")
        let seen = try #require(server.requests(for: "/p").first)
        #expect(seen.body == Array(#"{"a":"b c"}"#.utf8) && seen.header("content-type") == "application/json")
        #expect(await manager.request("no URL at all").outcome.error?.code == .invalidRequest)
    }

    @Test("a densely packed body outlasts a pause", .timeLimit(.minutes(1)))
    func dense() async throws {
        let place = try Place()
        let path = place.temporary.file("zeros.gz")
        try #require(system("head -c 80000000 /dev/zero | gzip > '\(path)'") == 0)
        let packed = try bytes(ofFileAt: path)
        let fields = "Content-Encoding: gzip\r\nContent-Length: \(packed.count)"
        let server = try RawServer([Array("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n".utf8) + packed])
        let request = manager.request(server.url()).resume().suspend()
        try await eventually(that: "the head is there") { request.response != nil }
        request.resume()
        #expect(try await request.value.count == 80_000_000)
    }
}
