import Crypto
import Curl
import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Downloads from the first byte to the name")
struct DownloadTests {
    private let place: Place
    private let manager: SessionManager

    init() throws {
        place = try Place()
        manager = try SessionManager(configuration: .test())
    }

    private func download(_ url: String, _ target: DownloadTarget? = nil) async -> DownloadRequest.Response {
        await manager.download(TransferRequest(url: url), to: target ?? place.target()).outcome
    }

    @Test(
        "files of every size arrive byte for byte",
        arguments: [0, 1, 262_143, 262_144, 262_145, 5_000_000] as [Int64])
    func sizes(size: Int64) async throws {
        let resource = Resource(size: size)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/chunked": [.chunked(resource)]])
        for path in ["/f", "/chunked"] {
            let target = place.target(String(path.dropFirst()))
            let request = manager.download(TransferRequest(url: server.url(path)), to: target)
            let file = try await request.outcome.result.get()
            #expect(file.size == size)
            #expect(resource.difference(fromFileAt: file.path) == nil)
            #expect(request.progress.completedBytes == size)
            #expect(request.progress.totalBytes == size)
            #expect(request.progress.transferredBytes == size)
        }
        #expect(place.names == ["f", "chunked"])
        #expect(
            server.requests().allSatisfy { $0.header("accept-encoding") == "identity" && $0.header("range") == nil })
    }

    @Test(
        "over a disk that another download found slow, files arrive byte for byte",
        arguments: [0, 1, 262_145, 5_000_000] as [Int64])
    func slowDisk(size: Int64) async throws {
        let disk = manager.session.resources.disk(of: nil, or: place.target())
        disk.record(write: Disk.slowWrite)
        let resource = Resource(size: size)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/chunked": [.chunked(resource)]])
        for path in ["/f", "/chunked"] {
            let outcome = await download(server.url(path), place.target(String(path.dropFirst())))
            #expect(resource.difference(fromFileAt: try outcome.result.get().path) == nil)
        }
        #expect(place.names == ["f", "chunked"])
        #expect(disk.isSlow)
    }

    @Test(
        "a status that is no success leaves no file, and its body is nobody's",
        arguments: [401, 403, 404, 410, 500, 503])
    func refusals(status: Int) async throws {
        let server = try ScriptedServer(["/f": [.status(status, body: "<html>an error page</html>")]])
        let outcome = await download(server.url("/f"))
        #expect(outcome.result.error?.code == .httpStatus)
        #expect(outcome.result.error?.httpStatus == status)
        #expect(outcome.head?.status == status)
        #expect(outcome.resumeData == nil)
        #expect(place.names.isEmpty)
        #expect(server.requests(for: "/f").count == 1)
    }

    @Test("an error page does not become part of a file that was begun")
    func errorPageInTheMiddle() async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer([
            "/f": [
                .serveThenCut(resource, after: 300_000), .status(503, body: String(repeating: "x", count: 70_000)),
                .serve(resource),
            ]
        ])
        manager.retrier = CountingRetrier(limit: 2)
        let outcome = await download(server.url("/f"))
        #expect(resource.difference(fromFileAt: try outcome.result.get().path) == nil)
        #expect(server.requests(for: "/f").count == 3)
        #expect(server.requests(for: "/f")[2].header("range") != nil)
    }

    @Test("a server that refuses to send parts is asked for the whole", arguments: [304, 400, 406, 501])
    func refusesParts(status: Int) async throws {
        let resource = Resource(size: 600_000)
        let server = try ScriptedServer([
            "/f": [.serveThenCut(resource, after: 300_000), .status(status), .serve(resource)]
        ])
        manager.retrier = CountingRetrier(limit: 1)
        let file = try await download(server.url("/f")).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests(for: "/f")[2].header("range") == nil)
    }

    /// The ways in which a person can change a part file.
    enum Harm: CaseIterable { case remove, cut, replace, write }

    @Test(
        "a part that someone takes away, cuts short or writes to while it is written is fetched anew",
        arguments: Harm.allCases, [262_144, 900_000])
    func harmedPart(harm: Harm, written: Int64) async throws {
        let resource = Resource(size: 900_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let part = place.temporary.file(Place.partName)
        let other = place.temporary.file("other")
        try place.temporary.write("junk", to: "other")
        let isDone = Atomic(false)
        manager.delegate.downloadTaskDidWriteData = { task, _, _, _ in
            guard task.progress.completedBytes == written else { return }
            guard isDone.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else { return }
            switch harm {
            case .remove: unlink(part)
            case .cut: truncate(part, 100_000)
            case .replace: rename(other, part)
            case .write: meddle(part)
            }
        }
        let outcome = await download(server.url("/f"))
        #expect(resource.difference(fromFileAt: try outcome.result.get().path) == nil)
        #expect(server.requests(for: "/f").count == 2)
        #expect(place.names.subtracting(["other"]) == ["file"])
        let wasHarmed = isDone.load(ordering: .relaxed)
        #expect(wasHarmed)
    }

    /// Changes a byte near the front, with a modification time that differs from the last write's.
    private func meddle(_ part: String) {
        let descriptor = open(part, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        #expect(pwrite(descriptor, "?", 1, 10) == 1)
        var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: time(nil) + 1, tv_nsec: 5)]
        #expect(futimens(descriptor, &times) == 0)
    }

    @Test("what someone writes into a part behind its digest's back does not become a verified file")
    func harmedAndVerified() async throws {
        let resource = Resource(size: 12 << 20)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let target = place.target(
            digest: FileDigest(algorithm: .sha256, bytes: Array(SHA256.hash(data: resource.bytes))))
        let part = place.temporary.file(Place.partName)
        manager.retrier = CountingRetrier(limit: 1)
        let isDone = Atomic(false)
        manager.delegate.downloadTaskDidWriteData = { task, _, _, _ in
            guard task.progress.completedBytes > 10 << 20,
                isDone.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
            else { return }
            meddle(part)
        }
        let file = try await download(server.url("/f"), target).result.get()
        #expect(file.isVerified && resource.difference(fromFileAt: file.path) == nil)
        #expect(server.requests(for: "/f").count == 2)
    }

    @Test("a body shorter than its length is no file")
    func truncated() async throws {
        let resource = Resource(size: 50_000)
        let server = try ScriptedServer(["/f": [.claim(resource, length: 60_000)]])
        let outcome = await download(server.url("/f"))
        #expect(outcome.result.error?.code == .truncated)
        #expect(!place.names.contains("file"))
    }

    @Test("a first header line that continues none fails the attempt, on the loop of other responses too")
    func foldedFirstLine() async throws {
        let answer = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nok"
        let folded = "HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 2\r\n\r\nok"
        let server = try RawServer([answer, folded, folded, answer].map { Array($0.utf8) })
        for isRight in [true, false, false, true] {
            let outcome = await download(server.url())
            #expect(outcome.result.error?.code == (isRight ? nil : .truncated))
            #expect(
                isRight || outcome.result.error?.message.contains("its first header line continues another") == true)
        }
    }

    @Test("a chunked body ends with its last chunk, whatever its Content-Length")
    func chunkedBesideLength() async throws {
        let answer =
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n0\r\n\r\n"
        let server = try RawServer([Array(answer.utf8)])
        let outcome = await download(server.url())
        let file = try outcome.result.get()
        #expect(FileManager.default.contents(atPath: file.path) == Data("01234567".utf8))
    }

    @Test("a digest is checked before the file gets its name, and the part of a wrong one is gone")
    func digest() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let right = FileDigest(algorithm: .md5, hex: "900150983cd24fb0d6963f7d28e17f72")
        let wrong = FileDigest(algorithm: .md5, hex: "00000000000000000000000000000000")
        #expect(try await download(server.url("/f"), place.target("a", digest: right)).result.get().isVerified)
        let outcome = await download(server.url("/f"), place.target("b", digest: wrong))
        #expect(outcome.result.error?.code == .checksumMismatch)
        #expect(outcome.resumeData == nil)
        #expect(place.names == ["a"])
    }

    @Test("skip: where the name is taken nothing is fetched, and the file there is held against the digest")
    func skip() async throws {
        let resource = Resource(size: 8 << 20)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        try place.temporary.write("abc", to: "f")
        func outcome(_ hex: String?) async -> DownloadRequest.Response {
            let digest = hex.map { FileDigest(algorithm: .md5, hex: $0) }
            return await download(server.url("/f"), place.target("f", conflict: .skip, digest: digest))
        }
        let path = place.temporary.file("f")
        let found = try await outcome(nil).result.get()
        #expect(found == PublishedFile(path: path, size: 3, isVerified: false, wasPresent: true))
        let right = try await outcome("900150983cd24fb0d6963f7d28e17f72").result.get()
        #expect(right == PublishedFile(path: path, size: 3, isVerified: true, wasPresent: true))
        let wrong = await outcome("00000000000000000000000000000000")
        #expect(wrong.result.error?.code == .nameConflict)
        #expect(place.names == ["f"])
        #expect(server.bodyBytesSent(for: "/f") < 3 * resource.size)
    }

    @Test("a redirect is followed; the credential stays within its origin")
    func redirect() async throws {
        let resource = Resource(size: 1000)
        let other = try ScriptedServer(["/f": [.serve(resource)]])
        let server = try ScriptedServer(["/away": [.redirect(other.url("/f"))], "/near": [.redirect("/away")]])
        let request = TransferRequest(url: server.url("/near"), credential: Credential(user: "u", password: "p"))
        let outcome = await manager.download(request, to: place.target()).outcome
        #expect(resource.difference(fromFileAt: try outcome.result.get().path) == nil)
        #expect(server.requests().map { $0.header("authorization") != nil } == [true, true])
        #expect(other.requests().map { $0.header("authorization") == nil } == [true])
    }

    @Test("redirects without end are refused")
    func redirectLoop() async throws {
        let server = try ScriptedServer(["/a": [.redirect("/b")], "/b": [.redirect("/a")]])
        #expect(await download(server.url("/a")).result.error?.code == .tooManyRedirects)
        #expect(server.requests().count == manager.session.configuration.maximumRedirects + 1)
    }

    @Test("a redirect to a local file is refused")
    func redirectToFile() async throws {
        let server = try ScriptedServer(["/f": [.redirect("file:///etc/passwd")]])
        #expect(await download(server.url("/f")).result.error?.code == .protocolNotAllowed)
        #expect(place.names.isEmpty)
    }

    @Test("a port that nobody listens on")
    func refusedConnection() async throws {
        let outcome = await download("http://127.0.0.1:\(try FreePort.next())/f")
        #expect(outcome.result.error?.code == .cannotConnect)
    }

    @Test("a name that does not exist, and one of which nothing is known")
    func names() async throws {
        let resolver = Resolver { $0 == "unknown.example" ? .failure(.unknownName) : .failure(.unavailable) }
        let delegate = SessionDelegate()
        let session = try Session(configuration: .test(), delegate: delegate, resolver: resolver)
        let manager = try #require(SessionManager(session: session, delegate: delegate))
        let codes = await [
            manager.download(TransferRequest(url: "http://unknown.example/"), to: place.target()).outcome,
            manager.download(TransferRequest(url: "http://silent.example/"), to: place.target()).outcome,
        ].map { $0.result.error?.code }
        #expect(codes == [.unknownHost, .resolverUnavailable])
        withExtendedLifetime(manager) {}
    }

    @Test("A12: the address that the resolver gave is the one that is connected to")
    func pinnedAddress() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let delegate = SessionDelegate()
        let session = try Session(
            configuration: .test(), delegate: delegate, resolver: Resolver { _ in .success(["127.0.0.1"]) })
        let manager = try #require(SessionManager(session: session, delegate: delegate))
        let url = "http://pinned.example:\(server.port)/f"
        let outcome = await manager.download(TransferRequest(url: url), to: place.target()).outcome
        #expect(try outcome.result.get().size == 3)
        #expect(server.requests().first?.header("host") == "pinned.example:\(server.port)")
        withExtendedLifetime(manager) {}
    }

    @Test("a server that says nothing has stalled, before its head and within its body")
    func stalls() async throws {
        let manager = try SessionManager(configuration: .test { $0.stallTimeout = 150 })
        let server = try ScriptedServer(["/hang": [.hang]])
        let silent = await manager.download(TransferRequest(url: server.url("/hang")), to: place.target()).outcome
        #expect(silent.result.error?.code == .stalled)
        // So slow that the first pieces arrive and the next one does not.
        let drip = try ScriptedServer(["/f": [.drip(Resource(size: 1_000_000), bytesPerSecond: 1)]])
        let slow = await manager.download(TransferRequest(url: drip.url("/f")), to: place.target()).outcome
        #expect(slow.result.error?.code == .stalled)
        withExtendedLifetime(manager) {}
    }

    @Test("a file larger than allowed is refused, told beforehand or found out")
    func tooLarge() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/f": [.serve(resource)], "/chunked": [.chunked(resource)]])
        for path in ["/f", "/chunked"] {
            var request = TransferRequest(url: server.url(path))
            request.maximumBodySize = 299_999
            let outcome = await manager.download(request, to: place.target()).outcome
            #expect(outcome.result.error?.code == .tooLarge)
            #expect(!place.names.contains("file"))
        }
    }

    @Test("room that a download under way has yet to fill is none for the next")
    func promisedRoom() async throws {
        let resource = Resource(size: 64 << 20)
        let server = try ScriptedServer([
            "/slow": [.drip(resource, after: 1 << 20, bytesPerSecond: 1_000)], "/f": [.serve(resource)],
        ])
        let free = try #require(place.directory.freeSpace())
        func target(_ name: String) -> DownloadTarget {
            place.target(name, owner: name, part: ".\(name)", reservedSpace: free - 100 << 20)
        }
        let slow = manager.download(TransferRequest(url: server.url("/slow")), to: target("a")).resume()
        try await eventually(that: "it is under way") { slow.progress.transferredBytes >= 1 << 20 }
        let second = await download(server.url("/f"), target("b"))
        #expect(second.result.error?.code == .diskFull)
        #expect(server.bodyBytesSent(for: "/f") < resource.size / 2)
        slow.cancel(keepingBytes: false)
        _ = await slow.outcome
        #expect(try await download(server.url("/f"), target("b")).result.get().size == resource.size)
    }

    @Test("where a directory has the part's name, the server is not asked")
    func directoryInThePartsPlace() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        let target = place.target()
        try #require(mkdir(target.directory.path(of: target.partName), 0o700) == 0)
        let error = await download(server.url("/f"), target).result.error
        #expect(error?.code == .nameConflict && error?.systemError == EISDIR)
        #expect(server.requests(for: "/f").isEmpty)
    }

    @Test("without room for it a file is not begun")
    func noRoom() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        let outcome = await download(server.url("/f"), place.target(reservedSpace: .max))
        #expect(outcome.result.error?.code == .diskFull)
        #expect(place.names.isEmpty)
    }

    @Test(
        "a disk that runs full in the middle ends the download with what was written, and with room it goes on",
        .enabled(if: geteuid() == 0))
    func diskFull() async throws {
        let temporary = try TemporaryDirectory()
        guard let mount = try? await Mount.tmpfs(at: temporary.path, bytes: 1 << 20) else { return }
        let directory = try Directory.open(root: temporary.path)
        let resource = Resource(size: 3 << 20)
        let server = try ScriptedServer(["/f": [.chunked(resource), .serve(resource)]])
        var target = place.target()
        target.directory = directory
        let first = await download(server.url("/f"), target)
        #expect(first.result.error?.code == .diskFull)
        #expect(TemporaryDirectory.names(beneath: temporary.path) == [Place.partName])
        try await mount.resize(bytes: 8 << 20)
        let second = await manager.download(
            TransferRequest(url: server.url("/f")), to: target, resumingWith: first.resumeData
        ).outcome
        #expect(resource.difference(fromFileAt: try second.result.get().path) == nil)
    }

    @Test(
        "protocols that the engine does not speak, and what is no URL",
        arguments: [
            "scp://127.0.0.1/f", "file:///etc/passwd", "gopher://127.0.0.1/", "", "not a URL", "http://",
            "http://a\r\nb/",
        ])
    func badURLs(url: String) async {
        let error = await download(url).result.error
        #expect(error?.code == .protocolNotAllowed || error?.code == .invalidRequest)
        #expect(place.names.isEmpty)
    }

    /// Returns a download that has not begun. A checkpoint is due after each million bytes, and it waits two million ahead
    /// of the last one that is confirmed.
    private func downloadWithCheckpoints(of url: String) throws -> (DownloadRequest, SessionManager) {
        let manager = try SessionManager(
            configuration: .test {
                $0.checkpointInterval = 1_000_000
                $0.checkpointLimit = 2_000_000
            }, startRequestsImmediately: false)
        var request = TransferRequest(url: url)
        request.segments = .one
        return (manager.download(request, to: place.target()), manager)
    }

    @Test("a download waits where it is too far ahead of its last confirmed checkpoint, and goes on from there")
    func checkpointLimit() async throws {
        let resource = Resource(size: 16_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let (request, manager) = try downloadWithCheckpoints(of: server.url("/f"))
        let ahead = Mutex((written: Int64(0), confirmed: Int64(0), most: Int64(0)))
        manager.delegate.downloadTaskDidWriteData = { _, count, _, _ in
            ahead.withLock {
                $0.written += count
                $0.most = max($0.most, $0.written - $0.confirmed)
            }
        }
        let due = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        request.onCheckpointDue { due.continuation.yield() }
        request.response { _ in due.continuation.finish() }
        request.resume()
        for await _ in due.stream {
            while let resumeData = try await request.checkpoint() {
                ahead.withLock { $0.confirmed = resumeData.ranges.count }
                request.confirm(resumeData)
                if request.unsyncedBytes < 1_000_000 { break }
            }
        }
        let file = try await request.value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        // The bytes gathered for one write are added to the limit.
        let most = ahead.withLock { $0.most }
        #expect(most >= 1_000_000 && most <= 2_000_000 + 262_144)
    }

    @Test("F87: checkpoints are confirmed in any order")
    func lateConfirmation() async throws {
        let resource = Resource(size: 8_000_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let (request, manager) = try downloadWithCheckpoints(of: server.url("/f"))
        // A manager that is released cancels its requests.
        defer { withExtendedLifetime(manager) {} }
        func pause(at count: Int64) async throws {
            try await eventually(that: "\(count) bytes are here") { request.progress.completedBytes >= count }
        }
        request.resume()
        // Bytes that are gathered for a write count towards the limit.
        try await pause(at: 1_700_000)
        let first = try #require(try await request.checkpoint())
        request.confirm(first)
        try await pause(at: first.ranges.count + 1_700_000)
        let second = try #require(try await request.checkpoint())
        request.confirm(second)
        request.confirm(first)
        try await pause(at: second.ranges.count + 1_700_000)
        request.cancel()
    }
}
