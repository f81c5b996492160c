import Foundation
import Glibc
import TestSupport
import Testing

@testable import Transfer

// The tests are serialized because each starts its own server with new keys.
@Suite("SFTP", .serialized)
struct SFTPTests {
    private let fixture: RemoteFixture
    private let server: SFTPServer
    private var manager: SessionManager { fixture.manager }

    init() async throws {
        server = try await SFTPServer()
        let home = try server.makeHome(knowing: server.hostKeys)
        fixture = try RemoteFixture { $0.hostKeys = .knownHosts(path: home + "/.ssh/known_hosts") }
    }

    private func request(_ path: String, key: SFTPServer.KeyPair? = nil, passphrase: String = "") -> TransferRequest {
        var request = TransferRequest(url: server.url(path))
        request.credential = .privateKey(
            user: server.user, path: (key ?? server.clientKey).privateKey, passphrase: passphrase)
        return request
    }

    private func text(of file: String) throws -> String { String(decoding: try bytes(ofFileAt: file), as: UTF8.self) }

    /// A size larger than one turn of a loop receives from one connection.
    private static let long: Int64 = 24 << 20

    // MARK: Downloads

    @Test("a file arrives byte for byte, with its time", arguments: [0, 1, 3 << 20 | 1] as [Int64])
    func download(size: Int64) async throws {
        let resource = Resource(size: size)
        try server.publish(resource, as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        let seen = Notes<Int64?>()
        var target = fixture.place.target()
        target.destination = { (metadata: ResourceMetadata) throws(TransferError) in
            seen.add(metadata.lastModified)
            return FileDestination(name: "file", conflict: .fail)
        }
        let download = manager.download(request("/file"), to: target)
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(seen.all == [1_700_000_000])
        #expect(download.progress.completedBytes == size && download.progress.totalBytes == size)
        #expect(download.progress.transferredBytes == size)
        #expect(fixture.place.names == ["file"])
    }

    @Test("a file is read into memory, and as it comes")
    func memory() async throws {
        let resource = Resource(size: 1_500_001)
        try server.publish(resource, as: "file")
        #expect(Array(try await manager.request(request("/file")).value) == resource.bytes)
        var bytes: [UInt8] = []
        for try await piece in manager.request(request("/file")).body { bytes += piece }
        #expect(bytes == resource.bytes)
    }

    @Test("K14, M17: a cancelled download goes on at its offset, and fetches again only what tells its version")
    func resume() async throws {
        let resource = Resource(size: 6 << 20 | 1)
        try server.publish(resource, as: "file")
        var request = request("/file")
        request.hostKeys = .fingerprint(try await server.sha256(of: server.hostKeys[0]))
        let resumeData = try await fixture.interrupted(request, after: 1 << 20)
        let have = resumeData.ranges.contiguousEnd
        #expect(have >= 1 << 20 && have < resource.size)
        let second = fixture.download(request, resumeData)
        #expect(resource.difference(fromFileAt: try await second.value.path) == nil)
        #expect(second.progress.transferredBytes == resource.size - have + 8_192)
        #expect(fixture.resumes.all == [have])
    }

    @Test("a file that changed on the server, in size or in time alone, is fetched from the start", arguments: 0..<3)
    func changed(how: Int) async throws {
        try server.publish(Resource(size: 6 << 20, seed: 1), as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        var request = request("/file")
        request.hostKeys = .fingerprint(try await server.sha256(of: server.hostKeys[0]))
        let resumeData = try await fixture.interrupted(request, after: 1 << 20)
        // Longer than the part file, shorter than it, and of the original length.
        let other = Resource(size: [7 << 20, 1000, 6 << 20][how], seed: 2)
        try server.publish(other, as: "file")
        setTime(how == 2 ? 1_700_000_001 : 1_700_000_000, of: "\(server.root)/file")
        let file = try await fixture.outcome(request, resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.count == 1)
    }

    @Test("a suspended download costs no processor time, and goes on")
    func suspendedIdleness() async throws {
        let resource = Resource(size: Self.long)
        try server.publish(resource, as: "file")
        let download = manager.download(request("/file"), to: fixture.place.target())
        let written = Notes<Int64>()
        manager.delegate.downloadTaskDidWriteData = { [manager] task, _, total, _ in
            if written.all.isEmpty { manager.delegate[task]?.suspend() }
            written.add(total)
        }
        download.resume()
        try await eventually(that: "bytes come") { !written.all.isEmpty }
        _ = try await fixture.standstill(of: download)
        let loops = ThreadProbe.all(prefix: "dld-loop-")
        let before = loops.reduce(0) { $0 + ($1.processorTime ?? 0) }
        try await Task.sleep(for: .milliseconds(500))
        let used = loops.reduce(0) { $0 + ($1.processorTime ?? 0) } - before
        #expect(!loops.isEmpty && used < 50_000_000, "\(used) ns")
        download.resume()
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
    }

    @Test("a suspended download stands still; a file that changes meanwhile is fetched anew")
    func suspend() async throws {
        let resource = Resource(size: Self.long)
        try server.publish(resource, as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        for other in [nil, Resource(size: Self.long, seed: 2)] {
            let download = manager.download(request("/file"), to: fixture.place.target(conflict: .overwrite))
            let written = Notes<Int64>()
            manager.delegate.downloadTaskDidWriteData = { [manager] task, _, total, _ in
                if written.all.isEmpty { manager.delegate[task]?.suspend() }
                written.add(total)
            }
            download.resume()
            try await eventually(that: "bytes come") { !written.all.isEmpty }
            #expect(try await fixture.standstill(of: download) < resource.size)
            if let other {
                try other.write(to: "\(server.root)/file")
                setTime(1_700_000_001, of: "\(server.root)/file")
            }
            download.resume()
            let file = try await download.value
            #expect((other ?? resource).difference(fromFileAt: file.path) == nil)
            #expect(fixture.restarts.all.count == (other == nil ? 0 : 1))
        }
    }

    @Test("what is not there, or not for this user, is told apart from a login that fails")
    func missing() async throws {
        let error = await fixture.outcome(request("/none")).result.error
        #expect(error?.code == .notFound)
        #expect(error.map(RetryClass.init) == .never)
        #expect(await fixture.outcome(request("/")).result.error?.code == .invalidRequest)
    }

    // MARK: Host keys

    @Test("A26: a server that no file knows is refused, whatever keys it has, and the refusal names its key")
    func unknown() async throws {
        try server.publish(Resource(size: 10), as: "file")
        let strangers = try server.makeHome(knowing: [server.strangerKey]) + "/.ssh/known_hosts"
        for path in ["/nonexistent/known_hosts", "/dev/null", strangers] {
            var request = request("/file")
            request.hostKeys = .knownHosts(path: path)
            let error = await fixture.outcome(request).result.error
            #expect(error?.code == .hostKey && error?.code.rawValue == "tls")
            #expect(error?.message.contains("SHA256:") == true && error?.message.contains(path) == true)
            #expect(error.map(RetryClass.init) == .never)
        }
        #expect(!server.log.contains("Accepted"))
        #expect(try text(of: strangers).split(separator: "\n").count == 1)
    }

    @Test("without a policy no server is trusted, and the user's own file is the default")
    func noPolicy() async throws {
        try server.publish(Resource(size: 10), as: "file")
        let manager = try SessionManager(configuration: .test { $0.hostKeys = nil })
        let error = await manager.request(request("/file")).outcome.result.error
        #expect(error?.code == .hostKey)
        #expect(SessionConfiguration().hostKeys == .userKnownHosts)
        #expect(!server.log.contains("Connection from") || !server.log.contains("Accepted"))
    }

    @Test("the right fingerprint lets in, whichever of the server's keys it is of; a wrong one does not")
    func fingerprint() async throws {
        try server.publish(Resource(size: 10), as: "file")
        let both = try await SFTPServer(allowingSHA1: true)
        try both.publish(Resource(size: 10), as: "file")
        for key in both.hostKeys {
            var request = TransferRequest(url: both.url("/file"))
            request.credential = .privateKey(user: both.user, path: both.clientKey.privateKey)
            request.hostKeys = .fingerprint("SHA256:" + (try await both.sha256(of: key)))
            #expect(try await manager.request(request).value.count == 10, "\(key.type)")
        }
        var wrong = request("/file")
        wrong.hostKeys = .fingerprint(try await server.sha256(of: server.strangerKey))
        let error = await fixture.outcome(wrong).result.error
        #expect(error?.code == .hostKey)
        #expect(error?.message.contains("does not have the host key") == true)
        #expect(!server.log.contains("Accepted"))
    }

    @Test("of several known keys one that both sides can use is asked for, whatever stands first in the file")
    func severalKeys() async throws {
        try server.publish(Resource(size: 10), as: "file")
        for keys in [server.hostKeys, server.hostKeys.reversed()] {
            var request = request("/file")
            request.hostKeys = .knownHosts(path: try server.makeHome(knowing: keys) + "/.ssh/known_hosts")
            #expect(try await manager.request(request).value.count == 10)
        }
    }

    @Test("A26: a server whose key is another than the known one, or revoked, is refused at once")
    func changedKey() async throws {
        try server.publish(Resource(size: 10), as: "file")
        let host = "[127.0.0.1]:\(server.port)"
        let lines = [
            "\(host) \(server.strangerKey.line)\n",
            "\(host) \(server.hostKeys[0].line)\n@revoked * \(server.hostKeys[0].line)\n",
        ]
        for (line, word) in zip(lines, ["another machine answers", "revoked"]) {
            var request = request("/file")
            request.hostKeys = .knownHosts(path: try fixture.place.temporary.write(line, to: "known"))
            let error = await fixture.outcome(request).result.error
            #expect(error?.code == .hostKey)
            #expect(error?.message.contains(word) == true)
        }
        #expect(!server.log.contains("Accepted"))
    }

    @Test(
        "A26: another server that answers a later attempt or a resumed download gets no login, and the bytes stay",
        arguments: [true, false])
    func changedBetween(resuming: Bool) async throws {
        let resource = Resource(size: 6 << 20)
        try server.publish(resource, as: "file")
        var request = request("/file")
        request.hostKeys = .knownHosts(path: try server.makeHome(knowing: server.hostKeys) + "/.ssh/known_hosts")
        request.maximumRate = 4 << 20
        let manager = try SessionManager(configuration: .test())
        let (place, server) = (fixture.place, server)
        var resumeData: ResumeData?
        if resuming {
            resumeData = try await fixture.interrupted(request, after: 1 << 20)
            server.stop()
        } else {
            let retrier = CountingRetrier(limit: 20, delay: 200)
            manager.retrier = retrier
        }
        let begun = manager.download(request, to: place.target(), resumingWith: resumeData)
        if !resuming {
            begun.resume()
            try await eventually(that: "bytes come") { begun.progress.completedBytes >= 1 << 20 }
            // The server stops during the first attempt.
            server.stop()
        }
        let impostor = try await SFTPServer(port: server.port)
        try impostor.publish(Resource(size: 6 << 20, seed: 2), as: "file")
        let outcome = await begun.outcome
        #expect(outcome.result.error?.code == .hostKey)
        #expect(outcome.result.error.map(RetryClass.init) == .never)
        #expect(outcome.result.error?.message.contains("another machine answers") == true)
        #expect(impostor.log.contains("Connection from") && !impostor.log.contains("Accepted"))
        #expect(outcome.resumeData?.ranges.contiguousEnd ?? 0 >= 1 << 20)
    }

    @Test("A25: who was trusted for one request is judged anew for the next")
    func noReuse() async throws {
        try server.publish(Resource(size: 10), as: "file")
        #expect(try await manager.request(request("/file")).value.count == 10)
        var stranger = request("/file")
        stranger.hostKeys = .knownHosts(path: "/dev/null")
        #expect(await manager.request(stranger).outcome.result.error?.code == .hostKey)
        #expect(
            await manager.request(request("/file", key: server.strangerKey)).outcome.result.error?.code == .loginRefused
        )
    }

    // MARK: Logins

    @Test("a key with a passphrase opens, a wrong key, passphrase or password does not")
    func login() async throws {
        try server.publish(Resource(size: 10), as: "file")
        let key = server.encryptedClientKey
        #expect(try await manager.request(request("/file", key: key, passphrase: server.passphrase)).value.count == 10)
        func inMemory(_ key: SFTPServer.KeyPair, passphrase: String = "") throws -> TransferRequest {
            var request = request("/file")
            request.credential = .privateKey(
                user: server.user, text: try text(of: key.privateKey), passphrase: passphrase)
            return request
        }
        #expect(try await manager.request(inMemory(server.clientKey)).value.count == 10)
        #expect(try await manager.request(inMemory(key, passphrase: server.passphrase)).value.count == 10)
        var password = request("/file")
        password.credential = Credential(user: server.user, password: "secret")
        var nobody = request("/file")
        nobody.credential = nil
        for request in [
            request("/file", key: key, passphrase: "wrong"), request("/file", key: server.strangerKey), password,
            nobody, try inMemory(server.strangerKey), try inMemory(key, passphrase: "wrong"),
        ] {
            let error = await manager.request(request).outcome.result.error
            #expect(error?.code == .loginRefused)
            #expect(error.map(RetryClass.init) == .whenAuthorised)
        }
        var missing = request("/file")
        missing.credential = .privateKey(user: server.user, path: "/nonexistent/key")
        #expect(await manager.request(missing).outcome.result.error?.message.contains("/nonexistent/key") == true)
    }

    @Test("neither a credential nor an error shows a secret")
    func secrets() {
        let credential = Credential.privateKey(user: "me", path: "/key", passphrase: "secret")
        #expect(!"\(credential)".contains("secret"))
        #expect(credential.password.isEmpty)
    }

    @Test("an SSH key's passphrase is nothing that HTTP sends")
    func overHTTP() async throws {
        let server = try ScriptedServer(["/f": [.status(401, headers: ["WWW-Authenticate: Basic realm=x"])]])
        var request = TransferRequest(url: server.url("/f"))
        request.credential = .privateKey(user: "me", path: "/key", passphrase: "secret")
        _ = await manager.request(request).outcome
        #expect(!server.requests().isEmpty)
        #expect(server.requests().allSatisfy { $0.header("authorization") == nil })
    }

    // MARK: Uploads

    @Test(
        "a file arrives byte for byte, and nothing of its temporary name stays",
        arguments: [0, 1, 3 << 20 | 1] as [Int64])
    func upload(size: Int64) async throws {
        let resource = Resource(size: size)
        let upload = manager.upload(try fixture.source(resource), with: request("/file"))
        #expect(await upload.outcome.result.error == nil)
        #expect(resource.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
        #expect(upload.uploadProgress.completedBytes == size && upload.uploadProgress.totalBytes == size)
    }

    @Test("a file that is there is replaced, and stays what it was where the upload fails")
    func replace() async throws {
        let (old, new) = (Resource(size: 1000, seed: 1), Resource(size: 2 << 20, seed: 2))
        try server.publish(old, as: "file")
        let path = fixture.place.temporary.file("source")
        manager.delegate.taskDidSendBodyData = { _, _, _, _ in truncate(path, 10) }
        #expect(try await fixture.upload(new, request("/file"))?.code == .sourceChanged)
        #expect(old.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
        manager.delegate.taskDidSendBodyData = nil
        #expect(try await fixture.upload(new, request("/file")) == nil)
        #expect(new.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
    }

    @Test("names go both ways as they are, also where a file of that name is there")
    func names() async throws {
        for (number, name) in hostileNames.enumerated() {
            let resource = Resource(size: 1000, seed: UInt64(number))
            let request = request("/" + escaped(name))
            for _ in 0..<2 { #expect(try await fixture.upload(resource, request) == nil, "\(name)") }
            #expect(fixture.names(beneath: server.root) == Set(hostileNames[...number]))
            #expect(Array(try await manager.request(request).value) == resource.bytes, "\(name)")
        }
    }

    /// Uploads `resource` over a connection that breaks `cuts` times, each time after 3 MiB more have been sent.
    ///
    /// - Parameter between: called before each further attempt with the temporary file's path.
    /// - Returns: the error of the upload, and the number of bytes with which each attempt began.
    private func upload(
        _ resource: Resource, cuts: Int, attempts: Int = 9,
        between: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws -> (error: TransferError?, beginnings: [Int64]) {
        let sent = Notes<(attempt: Int, total: Int64)>()
        let cut = Notes<Int>()
        let upload = manager.upload(try fixture.source(resource), with: request("/file"))
        manager.delegate.taskDidSendBodyData = { [server] task, count, total, _ in
            let attempt = upload.retryCount
            let begun = sent.all.first { $0.attempt == attempt }?.total
            sent.add((attempt, begun == nil ? total - count : total))
            if cut.all.count < cuts, cut.all.last != attempt, total >= (begun ?? total) + 3 << 20 {
                cut.add(attempt)
                server.cutConnections()
            }
        }
        let root = server.root
        _ = upload.retry(
            with: ClosureRetrier { request, _ in
                guard request.retryCount + 1 < attempts else { return .doNotRetry }
                for name in TemporaryDirectory.names(beneath: root) where name.hasSuffix(".tmp") {
                    between("\(root)/\(name)")
                }
                return .retry(after: 0)
            })
        let error = await upload.outcome.result.error
        let all = sent.all
        return (error, (0...upload.retryCount).compactMap { number in all.first { $0.attempt == number }?.total })
    }

    @Test("F61: an upload that broke goes on behind what came, and is whole")
    func goesOn() async throws {
        let resource = Resource(size: 12 << 20 | 1)
        let (error, beginnings) = try await upload(resource, cuts: 2)
        #expect(error == nil)
        #expect(resource.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
        try #require(beginnings.count == 3, "\(beginnings)")
        // Bytes that sshd had not yet written when it was killed are sent again.
        #expect(beginnings[0] == 0 && beginnings[1] >= 1 << 20 && beginnings[2] > beginnings[1], "\(beginnings)")
    }

    @Test("F61: a rest that is not the file's any more is written anew", arguments: 0..<3)
    func otherRest(harm: Int) async throws {
        let resource = Resource(size: 8 << 20)
        let (error, beginnings) = try await upload(resource, cuts: 1) { path in
            switch harm {
            case 0:
                let file = open(path, O_WRONLY)
                pwrite(file, "?", 1, lseek(file, 0, SEEK_END) - 1)
                close(file)
            case 1: truncate(path, 0)
            default: unlink(path)
            }
        }
        #expect(error == nil && beginnings == [0, 0])
        #expect(resource.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
    }

    @Test("what the last attempt left is removed when no other follows")
    func givenUp() async throws {
        let (error, beginnings) = try await upload(Resource(size: 30 << 20), cuts: 9, attempts: 2)
        #expect(error != nil && beginnings.count == 2)
        try await eventually(that: "the rest is gone") { fixture.names(beneath: server.root).isEmpty }
    }

    @Test("cancelled between two attempts, an upload leaves nothing behind")
    func cancelledBetween() async throws {
        let upload = manager.upload(try fixture.source(Resource(size: 8 << 20)), with: request("/file"))
        manager.delegate.taskDidSendBodyData = { [server] _, _, total, _ in
            if total >= 3 << 20 { server.cutConnections() }
        }
        let isAsked = Notes<Bool>()
        _ = upload.retry(
            with: ClosureRetrier { _, _ in
                isAsked.add(true)
                return .retry(after: 3_600_000)
            })
        upload.resume()
        try await eventually(that: "it waits") { !isAsked.all.isEmpty }
        #expect(fixture.names(beneath: server.root).count == 1)
        upload.cancel()
        #expect(await upload.outcome.result.error?.code == .cancelled)
        try await eventually(that: "the rest is gone") { fixture.names(beneath: server.root).isEmpty }
    }

    @Test("a suspended upload stands still, and a cancelled one leaves nothing behind")
    func suspendUpload() async throws {
        let resource = Resource(size: Self.long)
        let upload = manager.upload(try fixture.source(resource), with: request("/file"))
        let sent = Notes<Int64>()
        manager.delegate.taskDidSendBodyData = { task, _, total, _ in
            if sent.all.isEmpty { task.suspend() }
            sent.add(total)
        }
        upload.resume()
        try await eventually(that: "the upload stands still") { !sent.all.isEmpty }
        try await Task.sleep(for: .milliseconds(200))
        let count = sent.all.count
        try await Task.sleep(for: .milliseconds(100))
        #expect(sent.all.count == count)
        #expect(upload.uploadProgress.completedBytes < resource.size)
        upload.task?.resume()
        #expect(await upload.outcome.result.error == nil)
        #expect(resource.difference(fromFileAt: "\(server.root)/file") == nil)

        manager.delegate.taskDidSendBodyData = { task, _, _, _ in task.cancel() }
        #expect(try await fixture.upload(resource, request("/second"))?.code == .cancelled)
        // The file is removed after the task is complete: completion does not wait for the server.
        try await eventually(that: "the temporary file is gone") { fixture.names(beneath: server.root) == ["file"] }
    }

    @Test("what a request of the same name left makes way, and is not written over while somebody else writes to it")
    func sameName() async throws {
        let left = "\(server.root)/.file.dld-ab12-7.tmp"
        try Data(repeating: 7, count: 5_000).write(to: URL(filePath: left))
        let writer = try #require(FileHandle(forUpdatingAtPath: left))
        chmod(left, 0o666)
        let resource = Resource(size: 100_000)
        var request = request("/file")
        request.uploadName = "ab12-7"
        #expect(try await fixture.upload(resource, request) == nil)
        #expect(fixture.names(beneath: server.root) == ["file"])
        #expect(resource.difference(fromFileAt: "\(server.root)/file") == nil)
        #expect(try writer.readToEnd() == Data(repeating: 7, count: 5_000))
    }

    @Test("where there is no such directory the upload says so, and a directory is not replaced")
    func noDirectory() async throws {
        #expect(try await fixture.upload(Resource(size: 10), request("/none/file"))?.code == .notFound)
        var creating = request("/none/in/file")
        creating.createsRemoteDirectories = true
        #expect(try await fixture.upload(Resource(size: 10), creating) == nil)
        #expect(fixture.names(beneath: "\(server.root)/none/in") == ["file"])
        mkdir("\(server.root)/directory", 0o700)
        #expect(try await fixture.upload(Resource(size: 10), request("/directory")) != nil)
        #expect(fixture.names(beneath: server.root).allSatisfy { !$0.contains(".tmp") })
    }

    @Test("a directory is no file, which asking for it once more would not change", arguments: [false, true])
    func directory(isEmpty: Bool) async throws {
        mkdir("\(server.root)/directory", 0o700)
        if !isEmpty { try Resource(size: 10).write(to: "\(server.root)/directory/file") }
        let error = try #require(await fixture.outcome(request("/directory")).result.error)
        #expect(error.code == .permissionDenied && error.message.contains("is a directory"))
    }

    // MARK: Failing servers

    @Test("a connection that is spoiled once the file is open is one that broke, and no directory")
    func spoiled() async throws {
        try server.publish(Resource(size: 1 << 20), as: "file")
        let port = server.port
        // The key exchange, the login and the file's attributes take less; the first bytes of the file take more.
        let relay = try TalkingPeer { try $0.relay(to: port, spoilingAfter: 12_000) }
        var request = request("/file")
        request.url = request.url.replacing(":\(port)", with: ":\(relay.port)")
        let home = try server.makeHome(knowing: server.hostKeys, port: relay.port)
        request.hostKeys = .knownHosts(path: home + "/.ssh/known_hosts")
        let error = try #require(await fixture.outcome(request).result.error)
        #expect(error.code == .truncated, "\(error.message)")
        #expect(error.message.contains("was lost before") && !error.message.contains("directory"), "\(error.message)")
    }

    @Test(
        "a server that falls silent ends in the stall timeout, before and after it proved itself",
        arguments: [true, false])
    func silent(atOnce: Bool) async throws {
        let fixture = try RemoteFixture {
            $0.stallTimeout = 500
            $0.hostKeys = .fingerprint(String(repeating: "A", count: 43))
        }
        if atOnce {
            // The server sends no bytes: a silent FTP server that waits for a command serves the purpose.
            var manner = ScriptedFTPServer.Manner()
            manner.replies["connect"] = ""
            let server = try ScriptedFTPServer(manner)
            var request = TransferRequest(url: "sftp://127.0.0.1:\(server.port)/file")
            request.credential = Credential(user: "me", password: "x")
            #expect(await fixture.outcome(request).result.error?.code == .stalled)
        } else {
            try server.publish(Resource(size: Self.long), as: "file")
            var request = request("/file")
            request.hostKeys = .fingerprint(try await server.sha256(of: server.hostKeys[0]))
            let download = fixture.download(request)
            let written = Notes<Bool>()
            fixture.manager.delegate.downloadTaskDidWriteData = { [server] _, _, _, _ in
                if written.all.isEmpty { server.freeze() }
                written.add(true)
            }
            let outcome = await download.outcome
            server.thaw()
            #expect(outcome.result.error?.code == .stalled)
            #expect(outcome.resumeData != nil)
        }
    }

    @Test("what speaks no SSH is no SFTP server")
    func noSSH() async throws {
        let fixture = try RemoteFixture { $0.connectTimeout = 500 }
        let server = try ScriptedFTPServer(.init(files: ["file": [1]]))
        var request = TransferRequest(url: "sftp://127.0.0.1:\(server.port)/file")
        request.credential = Credential(user: "me", password: "secret")
        request.hostKeys = .fingerprint(String(repeating: "A", count: 43))
        let error = await fixture.outcome(request).result.error
        #expect(error?.code == .cannotConnect || error?.code == .timedOut)
        #expect(!server.commands.contains { $0.contains("secret") })
    }
}
