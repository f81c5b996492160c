import CLinux
import Glibc
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("The recorded versions of files")
struct FileVersionTests {
    private let place: Place
    private let manager: SessionManager
    private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    /// Downloads as an update of the file `f`, with its condition.
    private func update(_ url: String, digest: FileDigest? = nil) async -> DownloadRequest.Response {
        let directory = place.directory
        let target = DownloadTarget(directory: directory, partName: Place.partName, owner: "test-1") {
            (resource: ResourceMetadata) throws(TransferError) in
            var destination = FileDestination(
                name: "f", conflict: .overwrite, digest: digest, modificationTime: resource.lastModified)
            destination.keepsCurrentFile = true
            return destination
        }
        var request = TransferRequest(url: url)
        if let condition = directory.version(of: "f", from: url)?.condition {
            request.headerFields[condition.name] = condition.value
        }
        return await manager.download(request, to: target).outcome
    }

    @Test(
        "a file is asked for by its ETag, and kept on a 304; another version replaces it",
        arguments: ["\"1\"", "W/\"1\""])
    func unchanged(tag: String) async throws {
        let server = try ScriptedServer([
            "/f": [
                .status(200, headers: ["ETag: \(tag)"], body: "abc"), .status(304, headers: ["ETag: \(tag)"]),
                .status(200, headers: ["ETag: \"2\""], body: "other"),
            ]
        ])
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
        let kept = try await update(server.url("/f")).result.get()
        #expect(kept == PublishedFile(path: place.temporary.file("f"), size: 3, isVerified: false, wasPresent: true))
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
        #expect(try place.content(of: "f") == Array("other".utf8))
        #expect(server.requests().map { $0.header("if-none-match") } == [nil, tag, tag])
        #expect(place.names == ["f"])
    }

    @Test("a file without a record is compared with the response by date and size, and gets a record")
    func unrecorded() async throws {
        let (head, other) = (["Last-Modified: \(date)"], ["Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT"])
        let server = try ScriptedServer([
            "/f": [.status(200, headers: head, body: "abc"), .status(200, headers: head, body: "abc"), .status(304)],
            // Another file of an earlier time, and one of the same time and another size.
            "/g": [.status(200, headers: other, body: "xyz")], "/h": [.status(200, headers: head, body: "longer")],
        ])
        func forget() throws {
            let file = try #require(place.directory.open(reading: "f")?.0)
            #expect(linux_fremovexattr(file.raw, "user.dld.version") == 0 || errno == ENODATA)
        }
        _ = try await update(server.url("/f")).result.get()
        try forget()
        #expect(try await update(server.url("/f")).result.get().wasPresent)
        #expect(try await update(server.url("/f")).result.get().wasPresent)
        #expect(server.requests().map { $0.header("if-modified-since") } == [nil, nil, date])
        for (path, text) in [("/g", "xyz"), ("/f", "abc"), ("/h", "longer")] {
            try forget()
            _ = try await update(server.url(path)).result.get()
            if path != "/f" { #expect(try place.content(of: "f") == Array(text.utf8)) }
        }
    }

    @Test("without an ETag the date is the condition")
    func date() async throws {
        let server = try ScriptedServer([
            "/f": [.status(200, headers: ["Last-Modified: \(date)"], body: "abc"), .status(304)]
        ])
        _ = try await update(server.url("/f")).result.get()
        for _ in 0..<2 { #expect(try await update(server.url("/f")).result.get().wasPresent) }
        #expect(server.requests().map { $0.header("if-modified-since") } == [nil, date, date])
    }

    @Test(
        "of a server that ignores the condition, no body of the same version is read", arguments: ["ETag: \"1\"", ""])
    func ignored(tag: String) async throws {
        let body = String(repeating: "x", count: 8 << 20)
        let headers = [tag.isEmpty ? "Last-Modified: \(date)" : tag]
        let server = try ScriptedServer(["/f": [.status(200, headers: headers, body: body)]])
        _ = try await update(server.url("/f")).result.get()
        #expect(try await update(server.url("/f")).result.get().wasPresent)
        #expect(server.bodyBytesSent(for: "/f") < 2 * body.utf8.count)
        #expect(try place.content(of: "f").count == body.utf8.count)
    }

    @Test("a changed file, and one of another URL, are fetched again without a condition")
    func changed() async throws {
        let answer = ScriptedAnswer.status(200, headers: ["ETag: \"1\""], body: "abc")
        let server = try ScriptedServer(["/f": [answer], "/g": [answer]])
        _ = try await update(server.url("/f")).result.get()
        try place.temporary.write("abd", to: "f")
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
        #expect(try await !update(server.url("/g")).result.get().wasPresent)
        #expect(server.requests().allSatisfy { $0.header("if-none-match") == nil })
    }

    @Test("the file stays until the new one is whole and right")
    func whole() async throws {
        let wrong = FileDigest(algorithm: .md5, hex: "00000000000000000000000000000000")
        let server = try ScriptedServer([
            "/f": [
                .status(200, headers: ["ETag: \"1\""], body: "abc"),
                .status(200, headers: ["ETag: \"2\""], body: "other"),
                .status(404), .status(304),
            ]
        ])
        _ = try await update(server.url("/f")).result.get()
        #expect(await update(server.url("/f"), digest: wrong).result.error?.code == .checksumMismatch)
        #expect(await update(server.url("/f")).result.error?.httpStatus == 404)
        #expect(try place.content(of: "f") == Array("abc".utf8))
        // The digest counts for a file that is unchanged too.
        #expect(await update(server.url("/f"), digest: wrong).result.error?.code == .nameConflict)
    }

    @Test("a file of a file server is compared by size and time")
    func fileServer() async throws {
        let server = try ScriptedFTPServer(.init(files: ["f": [1, 2, 3]]))
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
        #expect(try await update(server.url("/f")).result.get().wasPresent)
        server.manner.time = "20240301120000"
        server.manner.files["f"] = [4, 5, 6]
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
        #expect(try place.content(of: "f") == [4, 5, 6])
        server.manner.time = nil
        #expect(try await !update(server.url("/f")).result.get().wasPresent)
    }

    @Test("a redirect to another origin keeps the condition")
    func redirect() async throws {
        let other = try ScriptedServer(["/f": [.status(200, headers: ["ETag: \"1\""], body: "abc"), .status(304)]])
        let server = try ScriptedServer(["/f": [.redirect(other.url("/f"))]])
        _ = try await update(server.url("/f")).result.get()
        #expect(try await update(server.url("/f")).result.get().wasPresent)
        #expect(other.requests().map { $0.header("if-none-match") } == [nil, "\"1\""])
    }

    @Test("a 304 that nobody asked for is an error")
    func unasked() async throws {
        let server = try ScriptedServer(["/f": [.status(304)]])
        let outcome = await manager.download(TransferRequest(url: server.url("/f")), to: place.target()).outcome
        #expect(outcome.result.error?.httpStatus == 304)
    }

    @Test("a tag that cannot be sent back is not recorded")
    func tags() {
        func condition(_ tag: String, _ date: String? = nil) -> HTTPField? {
            FileVersion(size: 1, url: "http://h/f", ResourceValidator(entityTag: tag, lastModified: date)).condition
        }
        for tag in ["\"a b\"", "a", "\"\u{e9}\"", "\"" + String(repeating: "x", count: 300) + "\""] {
            #expect(condition(tag) == nil)
            #expect(condition(tag, date)?.value == date)
        }
        #expect(condition("\"a\"", date) == HTTPField(name: .ifNoneMatch, value: "\"a\""))
    }
}
