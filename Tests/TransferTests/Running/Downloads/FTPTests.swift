import Glibc
import TestSupport
import Testing

@testable import Transfer

// The tests are serialized because each starts its own servers.
@Suite("FTP and FTPS", .serialized)
struct FTPTests {
    private let fixture: RemoteFixture
    private var manager: SessionManager { fixture.manager }
    private var place: Place { fixture.place }

    init() throws {
        fixture = try RemoteFixture()
    }

    /// The security mode of a server, and the request options that it requires.
    enum Door: CaseIterable {
        case plain, explicit, implicit

        func open(_ login: Vsftpd.Login = .anonymous(), allowingTLS13: Bool = false) async throws -> Vsftpd {
            let identity = try await TestCertificates.shared.server
            let security: Vsftpd.Security =
                switch self {
                case .plain: .plain
                case .explicit: .explicit(identity)
                case .implicit: .implicit(identity)
                }
            return try await Vsftpd(login: login, security: security, allowingTLS13: allowingTLS13)
        }

        func request(_ url: String) async throws -> TransferRequest {
            var request = TransferRequest(url: url)
            request.caCertificates = try await TestCertificates.shared.authority.text
            if self == .explicit { request.transportSecurity = .required }
            return request
        }
    }

    /// A size larger than one turn of a loop receives from one connection.
    private static let long: Int64 = 48 << 20

    // MARK: Downloads

    @Test(
        "a file arrives byte for byte, in the open and by TLS, with its time",
        arguments: Door.allCases, [0, 1, 3 << 20 | 1] as [Int64])
    func download(door: Door, size: Int64) async throws {
        let server = try await door.open()
        let resource = Resource(size: size)
        try server.publish(resource, as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        let seen = Notes<Int64?>()
        var target = place.target()
        target.destination = { (metadata: ResourceMetadata) throws(TransferError) in
            seen.add(metadata.lastModified)
            return FileDestination(name: "file", conflict: .fail)
        }
        let request = manager.download(try await door.request(server.url("/file")), to: target)
        let file = try await request.value
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(seen.all == [1_700_000_000])
        #expect(request.progress.completedBytes == size && request.progress.totalBytes == size)
        #expect(request.progress.transferredBytes == size)
        #expect(place.names == ["file"])
        #expect(!server.commands.contains { $0.hasPrefix("LIST") || $0.hasPrefix("PORT") || $0.hasPrefix("EPRT") })
    }

    @Test("a file is read into memory, and as it comes")
    func memory() async throws {
        let server = try await Vsftpd()
        let resource = Resource(size: 700_001)
        try server.publish(resource, as: "file")
        #expect(Array(try await manager.request(TransferRequest(url: server.url("/file"))).value) == resource.bytes)
        var bytes: [UInt8] = []
        for try await piece in manager.request(TransferRequest(url: server.url("/file"))).body { bytes += piece }
        #expect(bytes == resource.bytes)
        var small = TransferRequest(url: server.url("/file"))
        small.maximumBodySize = 700_000
        #expect(await manager.request(small).outcome.result.error?.code == .tooLarge)
        #expect(await fixture.outcome(small).result.error?.code == .tooLarge)
    }

    @Test(
        "K14, M17: a cancelled download goes on at its offset, and fetches again only what tells its version",
        arguments: Door.allCases
    )
    func resume(door: Door) async throws {
        let server = try await door.open()
        let resource = Resource(size: 6 << 20 | 1)
        try server.publish(resource, as: "file")
        let request = try await door.request(server.url("/file"))
        let resumeData = try await fixture.interrupted(request, after: 1 << 20)
        let have = resumeData.ranges.contiguousEnd
        #expect(have >= 1 << 20 && have < resource.size)
        let second = fixture.download(request, resumeData)
        #expect(resource.difference(fromFileAt: try await second.value.path) == nil)
        #expect(second.progress.transferredBytes == resource.size - have + 8_192)
        #expect(fixture.resumes.all == [have])
        #expect(server.commands.contains("REST \(have - 8_192)"))
    }

    @Test("a file that changed on the server, in size or in time alone, is fetched from the start", arguments: 0..<3)
    func changed(how: Int) async throws {
        let server = try await Vsftpd()
        try server.publish(Resource(size: 6 << 20, seed: 1), as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        let request = TransferRequest(url: server.url("/file"))
        let resumeData = try await fixture.interrupted(request, after: 1 << 20)
        // Longer than the part file, shorter than it, and of the original length.
        let other = Resource(size: [7 << 20, 1000, 6 << 20][how], seed: 2)
        try server.publish(other, as: "file")
        setTime(how == 2 ? 1_700_000_001 : 1_700_000_000, of: "\(server.root)/file")
        let file = try await fixture.outcome(request, resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.count == 1)
    }

    @Test(
        "a file replaced within the second, by one of its size, is fetched from the start", arguments: [1 << 20, 5000])
    func changedWithinTheSecond(have: Int64) async throws {
        let server = try await Vsftpd()
        try server.publish(Resource(size: 6 << 20, seed: 1), as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        let request = TransferRequest(url: server.url("/file"))
        let resumeData = try await fixture.interrupted(request, after: have)
        let other = Resource(size: 6 << 20, seed: 2)
        try server.publish(other, as: "file")
        setTime(1_700_000_000, of: "\(server.root)/file")
        let file = try await fixture.outcome(request, resumeData).result.get()
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.count == 1)
    }

    @Test("a file that changes while it is fetched is fetched anew")
    func changesMeanwhile() async throws {
        let server = try await Vsftpd()
        try server.publish(Resource(size: Self.long, seed: 1), as: "file")
        let path = "\(server.root)/file"
        setTime(1_700_000_000, of: path)
        let download = fixture.download(TransferRequest(url: server.url("/file")))
        let other = Resource(size: Self.long, seed: 2)
        let written = Notes<Bool>()
        manager.delegate.downloadTaskDidWriteData = { task, _, _, _ in
            guard written.all.isEmpty else { return }
            written.add(true)
            task.suspend()
        }
        download.resume()
        try await eventually(that: "the download stands still") { !written.all.isEmpty }
        // The file is replaced in one step: the server would take the current end of a growing file for its end.
        try server.publish(other, as: "other")
        setTime(1_700_000_001, of: "\(server.root)/other")
        try #require(rename("\(server.root)/other", path) == 0)
        download.task?.resume()
        let file = try await download.value
        #expect(other.difference(fromFileAt: file.path) == nil)
        #expect(fixture.restarts.all.count == 1)
    }

    @Test("a suspended download stands still, and is whole in the end")
    func suspend() async throws {
        let server = try await Vsftpd()
        let resource = Resource(size: Self.long)
        try server.publish(resource, as: "file")
        let download = fixture.download(TransferRequest(url: server.url("/file")))
        let written = Notes<Int64>()
        manager.delegate.downloadTaskDidWriteData = { [manager] task, _, total, _ in
            if written.all.isEmpty { manager.delegate[task]?.suspend() }
            written.add(total)
        }
        download.resume()
        try await eventually(that: "bytes come") { !written.all.isEmpty }
        #expect(try await fixture.standstill(of: download) < resource.size)
        download.resume()
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
    }

    @Test("what is not there, or not for this user, is an error that is not tried again by itself")
    func missing() async throws {
        let server = try await Vsftpd()
        let error = await fixture.outcome(TransferRequest(url: server.url("/none"))).result.error
        #expect(error?.code == .notFound)
        #expect(error.map(RetryClass.init) == .never)
        #expect(place.names.isEmpty)
    }

    @Test("a directory is not listed", arguments: ["/", "/upload/", "/%2F"])
    func directory(path: String) async throws {
        let server = try await Vsftpd()
        let error = await fixture.outcome(TransferRequest(url: server.url(path))).result.error
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("directory") == true)
        #expect(
            await manager.request(TransferRequest(url: server.url(path))).outcome.result.error?.code == .invalidRequest)
        #expect(
            try await fixture.upload(Resource(size: 1), TransferRequest(url: server.url(path)))?.code == .invalidRequest
        )
        #expect(server.commands.isEmpty)
    }

    // MARK: Logins

    @Test("a wrong password needs a person, and the right one is taken from the request or the URL")
    func password() async throws {
        let server = try await Vsftpd(login: .anonymous(password: "right@pass word"))
        try server.publish(Resource(size: 10), as: "file")
        for (password, url) in [("wrong", server.url("/file")), (nil, server.url("/file"))] {
            var request = TransferRequest(url: url)
            request.credential = password.map { Credential(user: "ftp", password: $0) }
            let error = await fixture.outcome(request).result.error
            #expect(error?.code == .loginRefused)
            #expect(error.map(RetryClass.init) == .whenAuthorised)
        }
        var request = TransferRequest(url: server.url("/file"))
        request.credential = Credential(user: "ftp", password: "right@pass word")
        #expect(try await manager.request(request).value.count == 10)
        let url = server.url("/file").replacing("ftp://", with: "ftp://ftp:right%40pass%20word@")
        #expect(try await manager.request(TransferRequest(url: url)).value.count == 10)
    }

    // MARK: TLS

    @Test(
        "a server whose certificate nobody vouches for is refused before anyone logs in",
        arguments: [Door.explicit, .implicit])
    func unknownAuthority(door: Door) async throws {
        let server = try await door.open()
        try server.publish(Resource(size: 10), as: "file")
        var request = try await door.request(server.url("/file"))
        request.caCertificates = nil
        request.credential = Credential(user: "ftp", password: "secret")
        #expect(await fixture.outcome(request).result.error?.code == .tls)
        request = try await door.request(server.url("/file"))
        #expect(await fixture.outcome(request).result.error == nil)
        #expect(!server.commands.contains("USER ftp"))
    }

    @Test("a server that takes nobody in without TLS gets it, though it was not asked for")
    func demandsTLS() async throws {
        let server = try await Door.explicit.open()
        let resource = Resource(size: 100_000)
        try server.publish(resource, as: "file")
        var request = try await Door.explicit.request(server.url("/file"))
        request.transportSecurity = .none
        let file = try await fixture.outcome(request).result.get()
        #expect(resource.difference(fromFileAt: file.path) == nil)
        #expect(server.commands.contains("AUTH SSL"))
        request.caCertificates = nil
        #expect(await fixture.outcome(request).result.error?.code == .tls)
    }

    @Test("a server that speaks before TLS begins, as one without room does, is asked again later")
    func clearTextBeforeTLS() async throws {
        let server = try await Door.plain.open()
        try server.publish(Resource(size: 10), as: "file")
        let url = server.url("/file").replacing("ftp://", with: "ftps://", maxReplacements: 1)
        let error = await fixture.outcome(try await Door.implicit.request(url)).result.error
        #expect(error?.code == .cannotConnect)
        #expect(error?.message.contains("clear text") == true)
        #expect(error.map { RetryClass($0) } == .soon)
    }

    @Test("a session's trust policies hold for FTPS, and one that would judge after the login is refused")
    func policies() async throws {
        let made = try await TestCertificates.shared
        let server = try await Vsftpd(security: .implicit(made.selfSigned))
        try server.publish(Resource(size: 10), as: "file")
        let right = try #require(PublicKeyPin(certificate: made.selfSigned.certificate.text))
        let wrong = try #require(PublicKeyPin(certificate: made.server.certificate.text))
        func code(_ policy: ServerTrustPolicy) async throws -> TransferError.Code? {
            let policies = ServerTrustPolicyManager(policies: ["127.0.0.1": policy])
            let manager = try SessionManager(configuration: .test { $0.trustPolicies = policies })
            return await manager.request(TransferRequest(url: server.url("/file"))).outcome.result.error?.code
        }
        #expect(try await code(.performDefaultEvaluation(validateHost: true)) == .tls)
        #expect(try await code(.disableEvaluation) == nil)
        for (key, expected) in [(right, nil), (wrong, .tls)] as [(PublicKeyPin, TransferError.Code?)] {
            let policy = ServerTrustPolicy.pinPublicKeys(
                publicKeys: [key], validateCertificateChain: false, validateHost: false)
            #expect(try await code(policy) == expected)
        }
        #expect(try await code(.customEvaluation { _, _ in true }) == .tls)
        #expect(server.commands.filter { $0.hasPrefix("USER") }.count == 2)
    }

    @Test("uploads by TLS are whole with servers that lose them in TLS 1.3", arguments: [Door.explicit, .implicit])
    func uploadTLS13(door: Door) async throws {
        let server = try await door.open(allowingTLS13: true)
        let resource = Resource(size: 300_000)
        for number in 0..<10 {
            let request = try await door.request(server.url("/upload/\(number)"))
            #expect(try await fixture.upload(resource, request) == nil)
            #expect(resource.difference(fromFileAt: "\(server.uploads)/\(number)") == nil)
        }
    }

    // MARK: Uploads

    @Test(
        "a file arrives byte for byte, and nothing of its temporary name stays",
        arguments: Door.allCases, [0, 1, 3 << 20 | 1] as [Int64])
    func upload(door: Door, size: Int64) async throws {
        let server = try await door.open()
        let resource = Resource(size: size)
        let upload = manager.upload(
            try fixture.source(resource), with: try await door.request(server.url("/upload/file")))
        #expect(await upload.outcome.result.error == nil)
        #expect(resource.difference(fromFileAt: "\(server.uploads)/file") == nil)
        #expect(fixture.names(beneath: server.uploads) == ["file"])
        #expect(upload.uploadProgress.completedBytes == size && upload.uploadProgress.totalBytes == size)
        #expect(server.commands.contains { $0.hasPrefix("STOR upload/.file.dld-") })
        #expect(!server.commands.contains("STOR upload/file"))
    }

    @Test("a file that is there is replaced in one step, and stays what it was where the upload fails")
    func replace() async throws {
        let server = try await Vsftpd()
        let (old, new) = (Resource(size: 1000, seed: 1), Resource(size: 2 << 20, seed: 2))
        try server.publish(old, as: "upload/file")
        chown("\(server.uploads)/file", getpwnam("ftp").pointee.pw_uid, gid_t.max)
        let request = TransferRequest(url: server.url("/upload/file"))
        let path = place.temporary.file("source")
        manager.delegate.taskDidSendBodyData = { _, _, _, _ in truncate(path, 10) }
        #expect(try await fixture.upload(new, request)?.code == .sourceChanged)
        #expect(old.difference(fromFileAt: "\(server.uploads)/file") == nil)
        #expect(fixture.names(beneath: server.uploads) == ["file"])
        manager.delegate.taskDidSendBodyData = nil
        #expect(try await fixture.upload(new, request) == nil)
        #expect(new.difference(fromFileAt: "\(server.uploads)/file") == nil)
        #expect(!server.commands.contains("DELE upload/file"))
        #expect(fixture.names(beneath: server.uploads) == ["file"])
    }

    @Test("a cancelled upload leaves nothing behind")
    func cancelUpload() async throws {
        let server = try await Vsftpd()
        manager.delegate.taskDidSendBodyData = { task, _, _, _ in task.cancel() }
        #expect(
            try await fixture.upload(Resource(size: 8 << 20), TransferRequest(url: server.url("/upload/file")))?.code
                == .cancelled)
        // The file is removed after the task is complete: completion does not wait for the server.
        try await eventually(that: "the temporary file is gone") { fixture.names(beneath: server.uploads).isEmpty }
    }

    @Test("names go both ways as they are")
    func names() async throws {
        let server = try await Vsftpd()
        for (number, name) in hostileNames.enumerated() {
            let resource = Resource(size: 1000, seed: UInt64(number))
            let request = TransferRequest(url: server.url("/upload/" + escaped(name)))
            #expect(try await fixture.upload(resource, request) == nil, "\(name)")
            #expect(fixture.names(beneath: server.uploads) == Set(hostileNames[...number]))
            #expect(Array(try await manager.request(request).value) == resource.bytes, "\(name)")
        }
    }

    @Test("a stream of unknown length is an upload too")
    func stream() async throws {
        let server = try await Vsftpd()
        let body = RequestBody.stream(
            BodyStream {
                AsyncStream { continuation in
                    for _ in 0..<10 { continuation.yield([UInt8](repeating: 7, count: 10_000)) }
                    continuation.finish()
                }
            })
        let outcome = await manager.upload(body, with: TransferRequest(url: server.url("/upload/file"))).outcome
        #expect(outcome.result.error == nil)
        #expect(try bytes(ofFileAt: "\(server.uploads)/file") == [UInt8](repeating: 7, count: 100_000))
    }
}
