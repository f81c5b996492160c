import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Destinations of downloads")
struct DownloadDestinationTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func path(_ name: String) -> String { place.temporary.file(name) }

    // MARK: Destinations

    @Test("a path, as text or as a file URL, is the file's")
    func paths() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let text = try await manager.download(server.url("/f"), to: path("text")).value
        let url = try await manager.download(
            TransferRequest(url: server.url("/f")), to: URL(filePath: path("u r%20l"))
        ).value
        #expect(text.path == path("text") && url.path == path("u r%20l"))
        for file in [text, url] { #expect(resource.difference(fromFileAt: file.path) == nil) }
        #expect(place.names == ["text", "u r%20l"])
    }

    @Test("K10: a closure is told of a temporary place and of the answer, and says place and options")
    func closure() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/a/some%20file.bin": [.serve(resource)]])
        let seen = Notes<(TemporaryFile, Int)>()
        let request = manager.download(
            server.url("/a/some%20file.bin"),
            to: DownloadDestination { [place] temporary, head in
                seen.add((temporary, head.status))
                let path = place.temporary.file("new/deep/" + temporary.suggestedName)
                return (path, [.createIntermediateDirectories])
            })
        let file = try await request.value
        #expect(file.path == path("new/deep/some file.bin"))
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(seen.all.count == 1)
        let (temporary, status) = try #require(seen.all.first)
        #expect(status == 200 && temporary.size == resource.size)
        #expect(temporary.path.hasPrefix(FileManager.default.temporaryDirectory.path(percentEncoded: false)))
        #expect(place.names == ["new", "new/deep", "new/deep/some file.bin"])
        let delegate = try #require(request.delegate as? DownloadTaskDelegate)
        #expect(delegate.finalPath == file.path && delegate.destination != nil)
    }

    @Test("without a destination the file is temporary, for its owner alone; a closure may leave it there")
    func temporary() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let first = try await manager.download(server.url("/f")).value
        let second = try await manager.download(
            server.url("/f"), to: DownloadDestination { temporary, _ in (temporary.path, []) }
        ).value
        defer { for file in [first, second] { unlink(file.path) } }
        #expect(first.path != second.path)
        for file in [first, second] {
            #expect(try bytes(ofFileAt: file.path) == Array("abc".utf8))
            var information = stat()
            #expect(lstat(file.path, &information) == 0 && information.st_mode & 0o777 == 0o600)
        }
    }

    @Test(
        "in a directory the file has the name that the server suggests, else the URL's, and never another place",
        arguments: [
            ("attachment; filename=\"../../evil\"", "/x/f.iso?q=/r", "evil"),
            ("attachment; filename*=UTF-8''%2Fetc%2Fna%C3%AFve.txt", "/f", "naïve.txt"),
            ("attachment; filename=\"..\"", "/x/f.iso?q=/r", "f.iso"), (nil, "/x/f.iso?q=/r", "f.iso"),
            (nil, "/..%2f..%2f.profile", "profile"), (nil, "/", "download"),
        ])
    func suggested(disposition: String?, target: String, expected: String) async throws {
        let fields = disposition.map { ["Content-Disposition: \($0)"] } ?? []
        let server = try ScriptedServer([target: [.status(200, headers: fields, body: "abc")]])
        let file = try await manager.download(
            server.url(target), to: .suggested(in: place.temporary.path)
        ).value
        #expect(file.path == path(expected))
        #expect(place.names == [expected])
    }

    @Test("a relative path is relative to the process's directory")
    func relative() throws {
        let decision = try DownloadDecision(path: "a/b", options: [], isPrivate: false)
        #expect(decision.path == FileManager.default.currentDirectoryPath + "/a/b")
        #expect(decision.name == "b" && decision.isSound)
        #expect(try DownloadDecision(path: "/b", options: [], isPrivate: false).path == "/b")
    }

    @Test(
        "what is the path of no file is refused before anybody is asked",
        arguments: ["", "/", "/tmp/", "/tmp/.", "/tmp/..", "/tmp/a\u{0}b", "/" + String(repeating: "a", count: 256)])
    func noPath(path: String) async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        #expect(await manager.download(server.url("/f"), to: path).outcome.error?.code == .pathNotAllowed)
        #expect(server.requests().isEmpty)
    }

    @Test("a URL that is no file's is refused before anybody is asked")
    func noFileURL() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let url = try #require(URL(string: "http://h/f"))
        #expect(await manager.download(server.url("/f"), to: url).outcome.error?.code == .pathNotAllowed)
        #expect(server.requests().isEmpty)
    }

    @Test("an empty file is a file, told to be empty or found out")
    func empty() async throws {
        let server = try ScriptedServer(["/f": [.status(200)], "/chunked": [.chunked(Resource(size: 0))]])
        for name in ["f", "chunked"] {
            let file = try await manager.download(server.url("/" + name), to: path(name)).validate().value
            #expect(file.size == 0)
        }
        #expect(place.names == ["f", "chunked"])
    }

    // MARK: Response heads

    @Test("M11: for an error page no destination is asked and nothing is made", arguments: [204, 401, 404, 500])
    func errorPages(status: Int) async throws {
        let server = try ScriptedServer(["/f": [.status(status, body: status == 204 ? "" : "<html>")]])
        let asked = Notes<Int>()
        let request = manager.download(
            server.url("/f"),
            to: DownloadDestination { [place] _, head in
                asked.add(head.status)
                return (place.temporary.file("new/f"), [.createIntermediateDirectories])
            }
        ).validate(statusCode: 200..<204)
        let outcome = await request.outcome
        #expect(outcome.error?.code == .httpStatus && outcome.resumeData == nil)
        #expect(asked.all.isEmpty)
        #expect(place.names.isEmpty)
    }

    @Test("M11: an answer of the wrong type is judged first, also where only its first byte tells that it matters")
    func wrongType() async throws {
        let known = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
        let unknown =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n<html>\r\n0\r\n\r\n"
        for answer in [known, unknown] {
            let server = try RawServer([Array(answer.utf8)])
            let asked = Notes<Int>()
            let request = manager.download(
                server.url(),
                to: DownloadDestination { [place] _, head in
                    asked.add(head.status)
                    return (place.temporary.file("new/f"), [.createIntermediateDirectories])
                }
            ).validate(contentType: ["application/zip"])
            #expect(await request.outcome.error?.code == .unacceptableContentType)
            #expect(asked.all.isEmpty)
            #expect(place.names.isEmpty)
        }
        let server = try RawServer([Array(unknown.utf8)])
        let file = try await manager.download(server.url(), to: path("f")).validate(contentType: ["text/*"]).value
        #expect(try bytes(ofFileAt: file.path) == Array("<html>".utf8))
    }

    private struct Refusal: Error {}

    @Test("a closure's error fails the request before a byte is taken")
    func refusal() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1_000_000))]])
        let request = manager.download(server.url("/f"), to: DownloadDestination { _, _ in throw Refusal() })
        let error = await request.outcome.error
        #expect(error?.code == .destinationRefused && error?.underlying is Refusal)
        #expect(request.progress.transferredBytes == 0)
        let own = TransferError(.tooLarge, "not here")
        let other = manager.download(server.url("/f"), to: DownloadDestination { _, _ in throw own })
        #expect(await other.outcome.error == own)
    }

    // MARK: Existing files

    @Test("K13: a name that is taken is an error before a byte is taken, and stays as it is")
    func occupied() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1_000_000))]])
        try place.temporary.write("mine", to: "f")
        symlink("/nonexistent", path("link"))
        try place.temporary.makeDirectory("directory")
        for (name, options) in [
            ("f", []), ("link", []), ("directory", []), ("directory", .removePreviousFile),
        ] as [(String, DownloadDestination.Options)] {
            let request = manager.download(server.url("/f"), to: path(name), options: options)
            let outcome = await request.outcome
            #expect(outcome.error?.code == .nameConflict && outcome.resumeData == nil)
            #expect(request.progress.transferredBytes == 0)
        }
        #expect(try place.content(of: "f") == Array("mine".utf8))
        #expect(place.names == ["f", "link", "directory"])
    }

    @Test("K13: a directory that is missing is an error without the option, and is made with it")
    func missingDirectory() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let request = manager.download(server.url("/f"), to: path("a/b/f"))
        #expect(await request.outcome.error?.code == .directoryMissing)
        #expect(place.names.isEmpty)
        _ = try await manager.download(
            server.url("/f"), to: path("a/b/f"), options: .createIntermediateDirectories
        ).value
        #expect(try place.content(of: "a/b/f") == Array("abc".utf8))
        // A file exists where a directory is required.
        let beneath = manager.download(
            server.url("/f"), to: path("a/b/f/g"), options: .createIntermediateDirectories)
        #expect(await beneath.outcome.error?.code == .pathNotAllowed)
    }

    @Test("K13: a name that is taken on the way is never overwritten, and what came can go elsewhere")
    func takenOnTheWay() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        manager.delegate.downloadTaskDidReceiveAll = { [place] _ in
            _ = try? place.temporary.write("mine", to: "f")
        }
        let outcome = await manager.download(server.url("/f"), to: path("f")).outcome
        #expect(outcome.error?.code == .nameConflict)
        #expect(try place.content(of: "f") == Array("mine".utf8))
        let resumeData = try #require(outcome.resumeData)
        #expect(resumeData.ranges.contiguousEnd == resource.size)
        let file = try await manager.download(resumingWith: resumeData, to: .path(path("g"))).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests().count == 1)
        #expect(place.names == ["f", "g"])
    }

    @Test("M12: the file that is there is replaced in one step, and only by a whole one")
    func replaced() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/f": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        try place.temporary.write("before", to: "f")
        link(path("f"), path("old"))
        let cut = await manager.download(server.url("/f"), to: path("f"), options: .removePreviousFile).outcome
        #expect(cut.error?.code == .truncated)
        #expect(try place.content(of: "f") == Array("before".utf8))
        let until = Notes<[UInt8]?>()
        manager.delegate.downloadTaskDidReceiveAll = { [place] _ in until.add(try? place.content(of: "f")) }
        let file = try await manager.download(resumingWith: try #require(cut.resumeData)).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(until.all == [Array("before".utf8)])
        // A process that has the old file open still has it.
        #expect(try place.content(of: "old") == Array("before".utf8))
        #expect(place.names == ["f", "old"])
    }

    // MARK: The part

    @Test("the part is hidden, beside the file, its owner's alone, and each request has its own")
    func part() async throws {
        let resource = Resource(size: 1_000_000)
        let server = try ScriptedServer(["/f": [.drip(resource, after: 600_000, bytesPerSecond: 1)]])
        let parts = Notes<(name: String, mode: mode_t)>()
        manager.delegate.downloadTaskDidWriteData = { [place] task, _, _, _ in
            guard let name = task.target?.partName, let status = try? place.status(of: name) else { return }
            parts.add((name, status.st_mode & 0o777))
        }
        let requests = ["f", "f", "g"].map { manager.download(server.url("/f"), to: path($0)) }
        for request in requests { request.resume() }
        try await eventually(that: "all have written") { Set(parts.all.map(\.name)).count == 3 }
        for part in parts.all {
            #expect(part.name.hasPrefix(".f.") || part.name.hasPrefix(".g."))
            #expect(part.name.hasSuffix(".part") && part.name.utf8.count == 16)
            #expect(part.mode == 0o600)
        }
        for request in requests { request.cancel(keepingBytes: false) }
        for request in requests { #expect(await request.outcome.error?.code == .cancelled) }
        #expect(place.names.isEmpty)
    }

    @Test("the longest name leaves room for its part's")
    func longestName() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 600_000))]])
        for name in [String(repeating: "a", count: 255), String(repeating: "漢", count: 85)] {
            let file = try await manager.download(server.url("/f"), to: path(name)).value
            #expect(file.path == path(name))
        }
    }

    // MARK: From data to download

    @Test("a data task becomes a download to a destination, which is asked as any other's")
    func dataBecomesDownload() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/f.bin": [.serve(resource)], "/none": [.status(404)]])
        let files = Notes<PublishedFile>()
        manager.delegate.dataTaskDidReceiveResponse = { [place] _, _ in
            .download(to: .suggested(in: place.temporary.path))
        }
        manager.delegate.downloadTaskDidFinishDownloading = { _, file in files.add(file) }
        let error = await manager.request(server.url("/f.bin")).outcome.error
        #expect(error == nil)
        #expect(files.all.map(\.path) == [path("f.bin")])
        #expect(resource.difference(fromFileAt: path("f.bin")) == nil)
        #expect(await manager.request(server.url("/none")).outcome.error?.code == .httpStatus)
        #expect(await manager.request(server.url("/f.bin")).outcome.error?.code == .nameConflict)
        #expect(place.names == ["f.bin"])
    }

    @Test("what a data task began is resumed from the error's resume data")
    func dataBecomesDownloadAndStops() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer(["/f.bin": [.serveThenCut(resource, after: 300_000), .serve(resource)]])
        manager.delegate.dataTaskDidReceiveResponse = { [place] _, _ in
            .download(to: .suggested(in: place.temporary.path))
        }
        let error = await manager.request(server.url("/f.bin")).outcome.error
        let file = try await manager.download(resumingWith: try #require(error?.resumeData)).value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests()[1].header("range") == "bytes=300000-")
    }
}
