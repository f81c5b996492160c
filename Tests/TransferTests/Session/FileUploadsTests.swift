import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Uploads of files and forms in one call", .timeLimit(.minutes(1)))
struct FileUploadsTests {
    private let place: TemporaryDirectory
    private let manager: SessionManager

    init() throws {
        place = try TemporaryDirectory()
        manager = try SessionManager(configuration: .test())
    }

    @Test("a file is sent from its path or its URL, with the method and the header fields beside it")
    func files() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let (url, path) = (server.url("/in"), try place.write("content", to: "a file"))
        let file = URL(filePath: path)
        let put = TransferRequest(url: url, method: .put)
        _ = try await manager.upload(fileAt: path, to: url).validate().value
        _ = try await manager.upload(fileAt: path, to: url, method: .put, headers: ["X-Trace": "7"]).validate().value
        _ = try await manager.upload(file, to: url).validate().value
        _ = try await manager.upload(file, to: url, method: .patch, headers: ["X-Trace": "8"]).validate().value
        _ = try await manager.upload(fileAt: path, with: url).validate().value
        _ = try await manager.upload(fileAt: path, with: put) { $0.headerFields[.userAgent] = "own" }.validate().value
        _ = try await manager.upload(file, with: url).validate().value
        let last = manager.upload(file, with: put)
        _ = try await last.validate().value
        #expect(server.requests().map(\.method) == ["POST", "PUT", "POST", "PATCH", "POST", "PUT", "POST", "PUT"])
        #expect(server.requests().allSatisfy { $0.body == Array("content".utf8) })
        #expect(server.requests().map { $0.header("x-trace") } == [nil, "7", nil, "8", nil, nil, nil, nil])
        #expect(server.requests()[5].header("user-agent") == "own")
        #expect(last.uploadProgress.completedBytes == 7 && last.uploadProgress.totalBytes == 7)
    }

    @Test("a file that cannot be opened fails the request, and the error names the path")
    func unopened() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let (url, missing) = (server.url("/in"), place.file("missing"))
        for upload in [
            manager.upload(fileAt: missing, to: url), manager.upload(URL(filePath: missing), to: url),
            manager.upload(fileAt: missing, with: url), manager.upload(URL(filePath: missing), with: url),
        ] {
            let error = await upload.outcome.error
            #expect(error?.code == .sourceChanged && error?.message.contains(missing) == true)
        }
        let directory = await manager.upload(fileAt: place.path, to: url).outcome.error
        #expect(directory?.code == .invalidRequest && directory?.message.contains(place.path) == true)
        #expect(await manager.upload(fileAt: "a\0b", to: url).outcome.error?.code == .invalidRequest)
        let other = await manager.upload(try #require(URL(string: "https://u:pw@h/f?t=secret")), to: url).outcome.error
        #expect(other?.code == .invalidRequest)
        #expect(other?.message == "https://h/f?t=… is not the URL of a file")
        #expect(server.requests().isEmpty)
    }

    @Test("an invalid URL or header field is reported before the file")
    func invalid() async throws {
        let path = try place.write("content", to: "file")
        #expect(await manager.upload(fileAt: path, to: "no URL").outcome.error?.code == .invalidRequest)
        let error = await manager.upload(fileAt: place.file("none"), to: "http://h/", headers: ["X-A": "b\nc"])
            .outcome.error
        #expect(error?.code == .invalidRequest)
    }

    @Test("a form, or a closure that fills one, is sent with a method and header fields")
    func forms() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let url = server.url("/in")
        let file = URL(filePath: try place.write("content", to: "photo.jpg"))
        var form = MultipartFormData()
        form.append("a title", name: "title")
        form.append(file, name: "photo")
        _ = try await manager.upload(multipartFormData: form, to: url).validate().value
        _ = try await manager.upload(
            multipartFormData: { form in
                form.append("a title", name: "title")
                form.append(file, name: "photo", fileName: "other.png")
            }, to: url, usingThreshold: 0, method: .put, headers: ["X-Trace": "7"]
        ).validate().value
        let patch = TransferRequest(url: url, method: .patch)
        for request in [patch, TransferRequest(url: url, method: .post)] {
            let upload = manager.upload(multipartFormData: { $0.append("a", name: "b") }, with: request)
            _ = try await upload.validate().value
        }
        _ = try await manager.upload(multipartFormData: { $0.append("a", name: "b") }, with: url).validate().value
        #expect(server.requests().map(\.method) == ["POST", "PUT", "PATCH", "POST", "POST"])
        let requests = server.requests().prefix(2)
        #expect(requests.first?.body == (try form.encode()))
        #expect(requests.first?.header("content-type") == form.contentType)
        let text = String(decoding: try #require(requests.last).body, as: UTF8.self)
        #expect(text.contains("name=\"photo\"; filename=\"other.png\"\r\nContent-Type: image/png\r\n\r\ncontent\r\n"))
        #expect(requests.last?.header("x-trace") == "7")
    }

    @Test("a file URL in a form is named by its path, and one that cannot be opened fails the request")
    func formErrors() async throws {
        var form = MultipartFormData()
        form.append(URL(filePath: try place.write("x", to: "a b.txt")), name: "f")
        #expect(String(decoding: try form.encode(), as: UTF8.self).contains("filename=\"a b.txt\""))
        for (url, code) in [
            (URL(filePath: place.file("missing")), TransferError.Code.sourceChanged),
            (try #require(URL(string: "http://h/f")), .invalidRequest),
        ] {
            var form = MultipartFormData()
            form.append(url, name: "f")
            #expect(form.failure?.code == code)
            let upload = manager.upload(multipartFormData: form, to: "http://h/")
            #expect(await upload.outcome.error?.code == code)
        }
    }
}
