import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("FTP with servers of all kinds")
struct FTPServerTests {
    private let fixture: RemoteFixture
    private var manager: SessionManager { fixture.manager }
    private var place: Place { fixture.place }

    init() throws {
        fixture = try RemoteFixture()
    }

    private let resource = Resource(size: 1_000_000)

    private func scripted(_ change: (inout ScriptedFTPServer.Manner) -> Void = { _ in }) throws -> ScriptedFTPServer {
        var manner = ScriptedFTPServer.Manner(files: ["file": resource.bytes])
        change(&manner)
        return try ScriptedFTPServer(manner)
    }

    @Test(
        "a cut file goes on a little before where it was cut, whatever the server says of the cut",
        arguments: ["426 sorry", "226 done"])
    func cut(reply: String) async throws {
        let server = try scripted {
            $0.cuts = [300_001, 400_000]
            $0.replyAfterCut = reply
        }
        manager.retrier = CountingRetrier(limit: 5)
        let download = fixture.download(TransferRequest(url: server.url("/file")))
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(download.retryCount == 2)
        #expect(server.commands.filter { $0.hasPrefix("REST") } == ["REST 291809", "REST 683617"])
        #expect(server.bytesSent == 1_000_000 + 2 * 8_192)
    }

    @Test("a server that leaves QUIT unanswered does not hold a whole file for long")
    func silentGoodbye() async throws {
        let server = try scripted { $0.replies["QUIT"] = "" }
        let begin = ContinuousClock.now
        let download = fixture.download(TransferRequest(url: server.url("/file")))
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(begin.duration(to: .now) < .seconds(8))
    }

    @Test("nor an upload, whose file has its name by then")
    func silentGoodbyeToUploads() async throws {
        let server = try scripted { $0.replies["QUIT"] = "" }
        let begin = ContinuousClock.now
        #expect(try await fixture.upload(resource, TransferRequest(url: server.url("/new"))) == nil)
        #expect(server.manner.files["new"] == resource.bytes)
        #expect(begin.duration(to: .now) < .seconds(8))
    }

    @Test("uploads of one server do not wait for each other's last replies")
    func silentEnds() async throws {
        let server = try scripted { $0.replies["RNFR"] = "" }
        let source = try fixture.source(resource)
        var uploads: [UploadRequest] = []
        for number in 0..<3 {
            let upload = manager.upload(source, with: TransferRequest(url: server.url("/new\(number)")))
            upload.resume()
            uploads.append(upload)
        }
        try await eventually(that: "all are at their ends", within: .seconds(10)) {
            server.commands.filter { $0.hasPrefix("RNFR") }.count == 3
        }
        for upload in uploads { upload.cancel() }
        for upload in uploads { #expect(await upload.outcome.result.error?.code == .cancelled) }
    }

    @Test("without times a part of what is there is fetched again and compared")
    func noTimes() async throws {
        let server = try scripted {
            $0.time = nil
            $0.cuts = [700_000]
        }
        let request = TransferRequest(url: server.url("/file"))
        let first = await fixture.outcome(request)
        #expect(first.result.error?.code == .truncated)
        let second = fixture.download(request, first.resumeData)
        #expect(resource.difference(fromFileAt: try await second.value.path) == nil)
        #expect(server.commands.contains("REST \(700_000 - 262_144)"))
        #expect(fixture.restarts.all.isEmpty)
    }

    @Test("without times a file that changed is told by its bytes, and fetched from the start")
    func noTimesChanged() async throws {
        let server = try scripted {
            $0.time = nil
            $0.cuts = [700_000]
        }
        let request = TransferRequest(url: server.url("/file"))
        let first = await fixture.outcome(request)
        let other = Resource(size: 1_000_000, seed: 9)
        server.manner.files["file"] = other.bytes
        let file = try await fixture.outcome(request, first.resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.count == 1)
    }

    @Test("without sizes nothing is joined, and the end is the server's word")
    func noSizes() async throws {
        let server = try scripted {
            $0.tellsSizes = false
            $0.cuts = [700_000]
        }
        let request = TransferRequest(url: server.url("/file"))
        let first = await fixture.outcome(request)
        #expect(first.result.error?.code == .truncated)
        let file = try await fixture.outcome(request, first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(!server.commands.contains { $0.hasPrefix("REST") })
    }

    @Test(
        "a server that lies about the size is not believed",
        arguments: ["213 1000001", "213 2000000", "213 999999", "213 262144", "213 1", "213 0"])
    func wrongSize(reply: String) async throws {
        let server = try scripted { $0.replies["SIZE"] = reply }
        let error = await fixture.outcome(TransferRequest(url: server.url("/file"))).result.error
        #expect(error?.code == .truncated || error?.code == .remoteChanged)
        #expect(!place.names.contains("file"))
    }

    @Test("a size that is none is not told", arguments: ["213 lots", "213 -5", "213 99999999999999999999999"])
    func noSize(reply: String) async throws {
        let server = try scripted { $0.replies["SIZE"] = reply }
        let file = try await fixture.outcome(TransferRequest(url: server.url("/file"))).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.isEmpty)
    }

    @Test("where SIZE is unknown the word that begins the file may say how long it is")
    func announcedSize() async throws {
        let server = try scripted {
            $0.tellsSizes = false
            $0.opening = "150 here it comes (1000000 bytes)."
            $0.cuts = [700_000]
            $0.replyAfterCut = "226 that was it"
        }
        let first = await fixture.outcome(TransferRequest(url: server.url("/file")))
        #expect(first.result.error?.code == .truncated && first.resumeData?.version.total == 1_000_000)
    }

    @Test(
        "F62: a server that knows no REST sends the file from its beginning",
        arguments: ["500 what?", "501 no", "502 no REST", "504 no", "550 no"])
    func noRest(reply: String) async throws {
        let server = try scripted {
            $0.cuts = [700_000]
            $0.replies["REST"] = reply
        }
        let request = TransferRequest(url: server.url("/file"))
        let first = await fixture.outcome(request)
        let file = try await fixture.outcome(request, first.resumeData).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all == ["127.0.0.1 can only send files from their first byte"])
    }

    @Test("a server that says more is left of a file than a number holds does not end the process")
    func hugeRest() async throws {
        let server = try scripted { $0.cuts = [300_000] }
        let request = TransferRequest(url: server.url("/file"))
        let first = await fixture.outcome(request)
        server.manner.tellsSizes = false
        server.manner.opening = "150 here it comes (9223372036854775807 bytes)."
        #expect(first.resumeData != nil)
        #expect(await fixture.outcome(request, first.resumeData).result.error != nil)
        #expect(server.commands.contains("REST 291808") && fixture.resumes.all.isEmpty)
    }

    @Test(
        "F9: a disk that fails while others write to it in the loop's place ends the download with its error",
        .enabled(if: geteuid() == 0, "only root can mount"))
    func slowDiskFails() async throws {
        let mounted = try place.temporary.makeDirectory("mounted")
        let mount = try await Mount.tmpfs(at: mounted, bytes: 2 << 20)
        let directory = try Directory.open(root: mounted)
        let server = try scripted {
            $0.files["file"] = Resource(size: 32 << 20).bytes
            $0.tellsSizes = false
        }
        let target = DownloadTarget(directory: directory, partName: Place.partName, owner: "test-1") {
            (_: ResourceMetadata) throws(TransferError) in FileDestination(name: "file", conflict: .fail)
        }
        manager.session.resources.disk(of: nil, or: target).record(write: Disk.slowWrite)
        let outcome = await manager.download(TransferRequest(url: server.url("/file")), to: target).outcome
        #expect(outcome.result.error?.code == .diskFull)
        withExtendedLifetime(mount) {}
    }

    @Test("A27: the data connection goes to the server's own address, wherever it points")
    func passiveElsewhere() async throws {
        // 192.0.2.1 is reserved for documentation (RFC 5737).
        let server = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        server.manner.replies["EPSV"] = "500 what?"
        server.manner.passiveAddress = "192,0,2,1"
        #expect(Array(try await manager.request(TransferRequest(url: server.url("/file"))).value) == [1, 2, 3])
        #expect(server.commands.contains("PASV"))
        #expect(
            await manager.request(TransferRequest(url: server.url("/file"))).outcome.metrics.last?.remoteAddress
                == "127.0.0.1")
    }

    @Test(
        "A27: a reply to PASV that names no place to go to ends the attempt, and nothing is asked for",
        arguments: [
            "227 come", "227 (1,2,3,4,5)", "227 (127,0,0,1,999,999)", "227 (300,0,0,1,4,5)", "227 (-1,0,0,1,4,5)",
            "227 " + String(repeating: "9", count: 5_000), "227 (127,0,0,1,0,0)",
        ])
    func passiveGarbage(reply: String) async throws {
        let server = try scripted {
            $0.replies = ["EPSV": "500 what?", "PASV": reply]
        }
        #expect(await fixture.outcome(TransferRequest(url: server.url("/file"))).result.error != nil)
        #expect(server.bytesSent == 0)
        #expect(!server.commands.contains { $0.hasPrefix("PORT") || $0.hasPrefix("EPRT") })
    }

    @Test("A27: a server that refuses passive mode is not told to connect to us")
    func noPassive() async throws {
        let server = try scripted {
            $0.replies = ["EPSV": "500 no", "PASV": "500 no"]
        }
        #expect(await fixture.outcome(TransferRequest(url: server.url("/file"))).result.error?.code == .cannotConnect)
        #expect(!server.commands.contains { $0.hasPrefix("PORT") || $0.hasPrefix("EPRT") })
    }

    @Test(
        "a server that falls silent ends in the stall timeout, wherever that is",
        arguments: ["connect", "USER", "SIZE", "RETR", "STOR", "RNFR", "RNTO", "QUIT"])
    func silent(word: String) async throws {
        let fixture = try RemoteFixture { $0.stallTimeout = 300 }
        let server = try scripted { $0.replies[word] = "" }
        if ["STOR", "RNFR", "RNTO", "QUIT"].contains(word) {
            let error = try await fixture.upload(resource, TransferRequest(url: server.url("/new")))
            #expect(word == "QUIT" || error?.code == .stalled)
            if word == "QUIT" { #expect(error == nil) }
        } else {
            #expect(await fixture.outcome(TransferRequest(url: server.url("/file"))).result.error?.code == .stalled)
        }
    }

    @Test("a server that is silent after the last byte is waited for by nobody who was cancelled")
    func silentAtTheEnd() async throws {
        let server = try scripted { $0.replies["RNFR"] = "" }
        let upload = manager.upload(try fixture.source(resource), with: TransferRequest(url: server.url("/new")))
        upload.resume()
        try await eventually(that: "it is to be renamed") { server.commands.contains { $0.hasPrefix("RNFR") } }
        upload.cancel()
        #expect(await upload.outcome.result.error?.code == .cancelled)
    }

    @Test(
        "a file is whole by its count of bytes, whatever follows the last one", arguments: ["", "426 sorry", "551 no"])
    func lastWords(reply: String) async throws {
        let fixture = try RemoteFixture { $0.stallTimeout = 1000 }
        let server = try scripted { $0.closing = reply }
        let file = try await fixture.outcome(TransferRequest(url: server.url("/file"))).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.commands.count { $0.hasPrefix("RETR") } == 1)
    }

    @Test("the reply tells whether it is worth another try")
    func replies() async throws {
        func error(_ word: String, _ reply: String) async throws -> TransferError? {
            let server = try scripted { $0.replies[word] = reply }
            return await fixture.outcome(TransferRequest(url: server.url("/file"))).result.error
        }
        let busy = try await error("PASS", "421 too many users")
        #expect(busy?.code == .cannotConnect)
        #expect(busy?.message.contains("421 too many users") == true)
        #expect(try await error("PASS", "530 no")?.code == .loginRefused)
        let full = "530 Sorry, the maximum number of clients (5) from your host are already connected."
        #expect(try await error("PASS", full)?.code == .cannotConnect)
        #expect(try await error("RETR", "550 no")?.code == .notFound)
        #expect(try await error("RETR", "450 busy")?.code == .cannotConnect)
        #expect(try await error("RETR", "553 no")?.code == .permissionDenied)
        #expect(try await error("connect", "421 full")?.code == .cannotConnect)
        let port = try FreePort.next()
        #expect(
            await fixture.outcome(TransferRequest(url: "ftp://127.0.0.1:\(port)/f")).result.error?.code
                == .cannotConnect)
    }

    @Test("where a file is in the way of renaming, it is removed first")
    func removesFirst() async throws {
        let server = try scripted { $0.keepsExistingFiles = true }
        let new = Resource(size: 1000, seed: 5)
        #expect(try await fixture.upload(new, TransferRequest(url: server.url("/file"))) == nil)
        #expect(server.manner.files == ["file": new.bytes])
        #expect(server.commands.contains("DELE file"))
    }

    @Test(
        "where nothing can be renamed, or the temporary name is not wanted, the file goes straight to its name",
        arguments: ["RNFR", "RNTO"])
    func direct(word: String) async throws {
        let server = try scripted { $0.replies[word] = "502 not here" }
        let new = Resource(size: 1000, seed: 5)
        #expect(try await fixture.upload(new, TransferRequest(url: server.url("/new"))) == nil)
        #expect(server.manner.files == ["file": resource.bytes, "new": new.bytes])
        #expect(server.commands.filter { $0.hasPrefix("STOR") }.count == 2)
    }

    @Test("what a request of the same name left is removed before anything is stored")
    func sameName() async throws {
        let server = try scripted { $0.files[".new.dld-ab12-7.tmp"] = [1, 2, 3] }
        let new = Resource(size: 1000, seed: 5)
        var request = TransferRequest(url: server.url("/new"))
        request.uploadName = "ab12-7"
        #expect(try await fixture.upload(new, request) == nil)
        #expect(server.manner.files == ["file": resource.bytes, "new": new.bytes])
        let words = server.commands.filter { $0.hasPrefix("DELE") || $0.hasPrefix("STOR") }
        #expect(words.first == "DELE .new.dld-ab12-7.tmp" && words.count == 2, "\(words)")
    }

    @Test("a server that takes nothing says why")
    func refusedUpload() async throws {
        let server = try scripted { $0.replies["STOR"] = "553 read only" }
        let error = try await fixture.upload(resource, TransferRequest(url: server.url("/new")))
        #expect(error?.code == .permissionDenied)
        #expect(error?.message.contains("553 read only") == true)
        #expect(server.commands.filter { $0.hasPrefix("STOR") }.count == 2)
    }

    @Test("a server without room for a file says so before or after its bytes", arguments: ["STOR", "stored"])
    func noRoom(word: String) async throws {
        let server = try scripted { $0.replies[word] = "552 quota exceeded" }
        let error = try await fixture.upload(resource, TransferRequest(url: server.url("/new")))
        #expect(error?.code == .remoteFull)
    }

    @Test("a server that lost bytes and says nothing of it is found out before anything is renamed")
    func lostBytes() async throws {
        let server = try scripted { $0.loses = 1 }
        let error = try await fixture.upload(Resource(size: 1000), TransferRequest(url: server.url("/file")))
        #expect(error?.code == .truncated)
        #expect(server.manner.files == ["file": resource.bytes])
        #expect(!server.commands.contains { $0.hasPrefix("RN") })
    }

    @Test(
        "K10: a destination decided by the response is asked once size and time are known, and resume data suffices"
    )
    func destination() async throws {
        let server = try scripted { $0.cuts = [400_000] }
        let heads = Notes<ResponseHead>()
        let directory = place.temporary.path
        let destination = DownloadDestination { file, head in
            heads.add(head)
            return ("\(directory)/\(file.suggestedName).iso", [])
        }
        var request = TransferRequest(url: server.url("/file"))
        request.transportSecurity = .try
        let first = await manager.download(request, to: destination).outcome
        #expect(first.result.error?.code == .truncated)
        let resumeData = try #require(first.resumeData.flatMap { ResumeData(bytes: $0.bytes) })
        let file = try await manager.download(resumingWith: resumeData, to: destination).value
        #expect(file.path == "\(directory)/file.iso")
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.commands.contains("REST 391808"))
        // The TLS mode requested is requested again when the download resumes.
        #expect(server.commands.filter { $0 == "AUTH SSL" }.count == 2)
        #expect(heads.all.first?.contentLength == resource.size)
        #expect(heads.all.first?.lastModified == 1_709_208_000)
        #expect(place.names == ["file.iso"])
    }

    @Test("a rate limit holds in both directions")
    func rate() async throws {
        let server = try scripted()
        let begun = ContinuousClock.now
        var request = TransferRequest(url: server.url("/file"))
        request.maximumRate = 2_000_000
        #expect(Array(try await manager.request(request).value) == resource.bytes)
        request.url = server.url("/new")
        #expect(try await fixture.upload(resource, request) == nil)
        #expect(server.manner.files["new"] == resource.bytes)
        // The token bucket's capacity may pass at once.
        #expect(ContinuousClock.now - begun > .milliseconds(300))
    }

    @Test(
        "A24: a server, or whoever is before it, that takes TLS out of an FTP session gets no user and no password",
        arguments: ["500 what?", "502 no", "534 no", "234 go on", "220 ready"])
    func stripped(reply: String) async throws {
        let server = try scripted {
            $0.replies["AUTH"] = reply
            $0.files["file"] = [1, 2, 3]
        }
        var request = TransferRequest(url: server.url("/file"))
        request.credential = Credential(user: "ben", password: "of-the-origin")
        request.transportSecurity = .required
        let error = await fixture.outcome(request).result.error
        #expect(error != nil)
        #expect(await manager.upload(.data([1]), with: request).outcome.result.error != nil)
        #expect(server.commands.contains { $0.hasPrefix("AUTH") })
        for word in ["USER", "PASS", "RETR", "STOR"] {
            #expect(!server.commands.contains { $0.hasPrefix(word) }, "\(word)")
        }
        // The control: a request without TLS uses the same server.
        request.transportSecurity = .none
        #expect(Array(try await manager.request(request).value) == [1, 2, 3])
        #expect(server.commands.contains("PASS of-the-origin"))
    }

    @Test("A25: no connection is used twice: who was let in is nobody else")
    func noReuse() async throws {
        let server = try scripted()
        for user in ["one", "two", "one"] {
            var request = TransferRequest(url: server.url("/file"))
            request.credential = Credential(user: user, password: "x")
            _ = try await manager.request(request).value
        }
        #expect(server.commands.filter { $0.hasPrefix("USER") } == ["USER one", "USER two", "USER one"])
        #expect(server.commands.filter { $0 == "QUIT" }.count == 3)
    }
}
