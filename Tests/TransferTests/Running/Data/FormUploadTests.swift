import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Forms as requests")
struct FormUploadTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func form(_ size: Int) -> MultipartFormData {
        var form = MultipartFormData()
        form.append("value", name: "field")
        form.append([UInt8](repeating: 7, count: size), name: "file", fileName: "a.bin")
        return form
    }

    private func send(
        _ form: MultipartFormData, to url: String, threshold: Int64 = 10_000
    ) -> UploadRequest {
        manager.upload(
            multipartFormData: form, threshold: threshold, temporaryDirectory: place.temporary.path,
            with: TransferRequest(url: url, method: .post)
        ).validate()
    }

    @Test("K19: the threshold counts headers and boundaries; up to it the form is in memory, above it on disk")
    func threshold() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        #expect(SessionManager.multipartFormDataEncodingMemoryThreshold == 10_000_000)
        let form = form(5000)
        for isInMemory in [true, false] {
            let request = send(form, to: server.url("/in"), threshold: form.contentLength - (isInMemory ? 0 : 1))
            #expect(await request.outcome.head?.status == 201)
            let seen = try #require(server.requests().last)
            #expect(seen.body == (try form.encode()))
            #expect(seen.header("content-type") == form.contentType)
            #expect(seen.header("content-length") == "\(form.contentLength)")
            switch try #require(request.multipartEncoding) {
            case .inMemory(let body, let type):
                #expect(isInMemory && body == seen.body && type == form.contentType)
            case .onDisk(let path, let type, let size):
                #expect(!isInMemory && type == form.contentType && size == form.contentLength)
                #expect(path.hasPrefix(place.temporary.path))
            }
            #expect(request.uploadProgress.completedBytes == form.contentLength)
            #expect(place.names.isEmpty)
        }
    }

    @Test("K19: the file stays over all attempts and is gone before a handler hears of the end")
    func retried() async throws {
        let server = try ScriptedServer(["/in": [.status(503), .status(503), .status(201)]])
        manager.retrier = CountingRetrier(limit: 5)
        let form = form(50_000)
        let names = Notes<Int>()
        manager.delegate.taskDidFinishCollectingMetrics = { [place] _, _ in names.add(place.names.count) }
        let request = send(form, to: server.url("/in")).response(queue: .inline) { [place] _ in
            names.add(place.names.count)
        }
        #expect(await request.outcome.head?.status == 201)
        let body = try form.encode()
        #expect(server.requests().map { $0.body == body } == [true, true, true])
        #expect(names.all == [1, 1, 1, 0])
    }

    @Test("K19: the file is gone after a failure, too, and after a cancel")
    func ended() async throws {
        let server = try ScriptedServer(["/gone": [.status(404)], "/hang": [.hang]])
        #expect(await send(form(50_000), to: server.url("/gone")).outcome.error?.httpStatus == 404)
        #expect(place.names.isEmpty)
        let request = send(form(50_000), to: server.url("/hang")).resume()
        try await eventually(that: "the server has it") { !server.requests(for: "/hang").isEmpty }
        #expect(place.names.count == 1)
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        #expect(place.names.isEmpty)
    }

    @Test(
        "cancelled while it is put together, the form is put together no further, and leaves nothing",
        .timeLimit(.minutes(1)))
    func cancelledEncoding() async throws {
        final class Endless: MultipartReader {
            let count = Atomic<Int>(0)
            func read(into space: UnsafeMutableRawBufferPointer) throws -> Int {
                count.wrappingAdd(1, ordering: .relaxed)
                usleep(1000)
                return min(16, space.count)
            }
        }
        let reader = Endless()
        var form = MultipartFormData()
        form.append(length: 1 << 40, name: "f") { reader }
        let request = send(form, to: "http://127.0.0.1:1/").resume()
        try await eventually(that: "it is being read") { reader.count.load(ordering: .relaxed) > 2 }
        request.cancel()
        #expect(await request.outcome.error?.code == .cancelled)
        try await eventually(that: "its file is gone") { place.names.isEmpty }
        #expect(request.multipartEncoding == nil)
    }

    @Test("K1: what stands in the way of encoding arrives through the handlers")
    func failing() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        var missing = MultipartFormData()
        missing.append(fileAt: place.temporary.file("none"), name: "f")
        #expect(await send(missing, to: server.url("/in")).outcome.error?.code == .sourceChanged)
        let nowhere = manager.upload(
            multipartFormData: form(100), threshold: 0, temporaryDirectory: place.temporary.file("none"),
            with: TransferRequest(url: server.url("/in"), method: .post))
        #expect(await nowhere.outcome.error != nil)
        #expect(await send(form(1), to: "no URL").outcome.error?.code == .invalidRequest)
        #expect(server.requests().isEmpty && place.names.isEmpty)
        #expect(manager.delegate.requestCount == 0)
    }

    @Test("a form is put together by a closure on another thread, once, when the request starts")
    func closure() async throws {
        let server = try ScriptedServer(["/in": [.status(503), .status(201)]])
        manager.retrier = CountingRetrier(limit: 5)
        let threads = Notes<pthread_t>()
        let caller = pthread_self()
        let request = manager.upload(with: TransferRequest(url: server.url("/in"), method: .post)) { form in
            threads.add(pthread_self())
            form.append("value", name: "field")
        }.validate()
        #expect(threads.all.isEmpty)
        #expect(await request.outcome.head?.status == 201)
        #expect(threads.all.count == 1 && threads.all.first != caller)
        #expect(server.requests().map { $0.body.isEmpty } == [false, false])
        #expect(server.requests().first?.header("content-type")?.hasPrefix("multipart/form-data; boundary=") == true)
    }

    @Test("an adapter sees the form's type, and a request that is let go of leaves no file")
    func adapted() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let types = Notes<String?>()
        manager.adapter = ClosureAdapter { (request: inout TransferRequest) throws(TransferError) in
            types.add(request.headerFields[.contentType])
        }
        let form = form(10)
        _ = await send(form, to: server.url("/in")).outcome
        #expect(types.all == [form.contentType])
    }

    @Test("M18: a stream is made anew for each attempt")
    func streams() async throws {
        let server = try ScriptedServer(["/in": [.status(503), .status(201)]])
        manager.retrier = CountingRetrier(limit: 5)
        let made = Notes<Int>()
        let stream = BodyStream(length: 6) {
            made.add(1)
            return AsyncStream<[UInt8]> { continuation in
                continuation.yield([1, 2, 3])
                continuation.yield([4, 5, 6])
                continuation.finish()
            }
        }
        let request = manager.upload(.stream(stream), with: TransferRequest(url: server.url("/in"), method: .put))
        #expect(await request.validate().outcome.head?.status == 201)
        #expect(server.requests().map(\.body) == [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]])
        #expect(made.all.count == 2)
    }
}
