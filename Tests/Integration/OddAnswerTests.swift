import ControlProtocol
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// Answers of servers that are odd and real: pages in the place of files, ranges that nobody asked for, codings that
/// are none, and names in many forms.
@Suite("Odd answers", .serialized, .timeLimit(.minutes(4)))
struct OddAnswerTests {
    private static let image = Resource(size: 3 * mebibyte, seed: 71)
    private static let typed = ["Content-Type: application/x-iso9660-image"]
    private static let login = "<html>please log in</html>"
    private static let page = MisbehavingResponse(200, ["Content-Type: text/html"], text: login)

    /// Returns the honest answer to a request for the image, cut in the middle where it is the first one.
    private static func honest(_ question: MisbehavingServer.Question, isCut: Bool) -> MisbehavingResponse {
        let answer = MisbehavingResponse(honest: image, to: question, fields: typed)
        return isCut ? answer.cut(after: image.size / 2) : answer
    }

    private func detail(_ id: TaskID, of daemon: DaemonProcess) throws -> TaskDetail {
        try daemon.call(.taskGet, TaskGetParameters(id: id))
    }

    // MARK: Pages in the place of files

    @Test("F71: a login page in the place of the rest costs one attempt and no byte", arguments: [false, true])
    func loginPage(isRedirected: Bool) async throws {
        let server = try MisbehavingServer { question in
            if question.path == "/login" { return Self.page }
            guard question.number == 1 else { return Self.honest(question, isCut: question.number == 0) }
            guard isRedirected else { return Self.page }
            let port = question.request.header("host")?.split(separator: ":").last ?? ""
            return MisbehavingResponse(302, ["Location: http://localhost:\(port)/login"])
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started("retry: {attempts: 5, base-delay: 300ms, max-delay: 1s}\n")
        let id = try await daemon.add("--connections", "1", server.url("/big.iso"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(Self.image.difference(fromFileAt: daemon.path("big.iso")) == nil)
        let task = try detail(id, of: daemon)
        #expect(task.status.bytesFetched < Self.image.size + 100_000)
        let failure = try #require(task.history.compactMap(\.error).last { $0.code == .remoteChanged })
        #expect(failure.message.contains("200, text/html, 26 bytes"), "\(failure.message)")
        #expect(task.history.last?.warning == nil)
        daemon.expectTidy()
    }

    @Test("F71: a second page that agrees with the first replaces the part, also after a kill, and show warns of it")
    func agreeingPages() async throws {
        let server = try MisbehavingServer { question in
            question.number == 0 ? Self.honest(question, isCut: true) : Self.page
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started("retry: {attempts: 9, base-delay: 1s, max-delay: 2s}\n")
        let id = try await daemon.add("--connections", "1", server.url("/big.iso"))
        try await daemon.state(of: id, "to have had the page") { $0.error?.code == .remoteChanged }
        #expect(try daemon.task(id).bytesDone == Self.image.size / 2)
        try await daemon.kill()
        try await daemon.start()
        #expect(try await daemon.settled(id).state == .completed)
        #expect(try text(of: daemon.path("big.iso")) == Self.login)
        let shown = try await daemon.dlctl("show", "\(id)")
        #expect(shown.output.contains("the server sent a web page (text/html) for big.iso"), "\(shown.output)")
        daemon.expectTidy()
    }

    @Test("F71: a page under the name of an archive is kept on a fresh task, with a warning in show and the log")
    func freshPage() async throws {
        let server = try MisbehavingServer { _ in Self.page }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        let named = try await daemon.add(server.url("/a.tar.gz"))
        let accepting = try await daemon.add("--header", "Accept: image/*", server.url("/b"))
        let wanted = try await daemon.add(server.url("/c.html"))
        for id in [named, accepting, wanted] { #expect(try await daemon.settled(id).state == .completed) }
        #expect(try detail(named, of: daemon).history.last?.warning?.contains("for a.tar.gz") == true)
        #expect(try detail(accepting, of: daemon).history.last?.warning?.contains("accepts image/*") == true)
        #expect(try detail(wanted, of: daemon).history.last?.warning == nil)
        #expect(daemon.log.contains("task \(named) completed: a.tar.gz, 26 B in"), "\(daemon.log.suffix(2000))")
        #expect(daemon.log.contains("; warning: the server sent a web page (text/html) for a.tar.gz"))
        daemon.expectTidy()
    }

    // MARK: Ranges

    @Test("F72: a 206 of the whole file to a request without Range is the file")
    func wholeAsPart() async throws {
        let server = try MisbehavingServer { question in
            var answer = Self.honest(question, isCut: false)
            guard !question.asksForRange else { return answer }
            answer.status = 206
            let size = Self.image.size
            answer.set("Content-Range", "bytes 0-\(size - 1)/\(size)")
            if question.path == "/half.iso" {
                answer = answer.cut(after: size / 2, .open)
                answer.set("Content-Length", "\(size / 2)")
                answer.set("Content-Range", "bytes 0-\(size / 2 - 1)/\(size)")
            }
            return answer
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        let whole = try await daemon.add(server.url("/whole.iso"))
        #expect(try await daemon.settled(whole).state == .completed)
        #expect(Self.image.difference(fromFileAt: daemon.path("whole.iso")) == nil)
        #expect(server.requests.count == 1)
        let half = try await daemon.settled(try await daemon.add(server.url("/half.iso")))
        #expect(half.state == .failed && half.error?.code == .remoteChanged)
        daemon.expectTidy()
    }

    // MARK: Codings

    @Test("F73: words that name no coding, and the file's own format, leave the bytes as they are")
    func codings() async throws {
        let cases = [
            ("/a.bin", "none"), ("/b.bin", "UTF-8"), ("/c.bin", "gzip, aws-chunked"), ("/d.zip", "zip"),
            ("/e.xz", "xz"), ("/f.Z", "x-compress"), ("/g.bz2", "bzip2"), ("/h.bin", "binary"),
            ("/i.bin", "identity, identity"), ("/j.tgz", "gzip"), ("/k.js", "br"),
        ]
        let server = try MisbehavingServer { question in
            let coding = cases.first { $0.0 == question.path }?.1 ?? ""
            let answer = MisbehavingResponse(
                honest: Self.image, to: question, fields: ["Content-Encoding: \(coding)"])
            // Ranges go on.
            return question.asksForRange ? answer : answer.cut(after: Self.image.size / 2)
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        for (path, coding) in cases {
            let id = try await daemon.add("--connections", "1", server.url(path))
            let task = try await daemon.settled(id)
            #expect(task.state == .completed, "\(coding): \(String(describing: task.error))")
            #expect(Self.image.difference(fromFileAt: daemon.path(String(path.dropFirst()))) == nil, "\(coding)")
            #expect(task.bytesFetched == Self.image.size, "\(coding)")
            let warning = try detail(id, of: daemon).history.last?.warning
            #expect((warning != nil) == (coding == "br"), "\(coding): \(warning ?? "")")
        }
        daemon.expectTidy()
    }

    @Test("F73: an archive that is compressed once more on its way fits its checksum after it is decoded")
    func compressedTwice() async throws {
        let place = try TemporaryDirectory()
        let plain = place.file("a.tgz")
        try Self.image.write(to: plain)
        let packed = try await run(["sh", "-c", "gzip -1 -c \(plain) > \(plain).gz && sha256sum < \(plain)"])
        let digest = try #require(packed.output.split(separator: " ").first.map(String.init))
        let sent = try Array(Data(contentsOf: URL(filePath: "\(plain).gz")))
        let server = try MisbehavingServer { _ in
            var answer = MisbehavingResponse(200, ["Content-Encoding: gzip"])
            answer.set("Content-Length", "\(sent.count)")
            answer.body = [.bytes(sent)]
            return answer
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add("--checksum", "sha256:\(digest)", server.url("/a.tgz"))
        let task = try await daemon.settled(id)
        #expect(task.state == .completed && task.verified, "\(String(describing: task.error))")
        #expect(Self.image.difference(fromFileAt: daemon.path("a.tgz")) == nil)
        #expect(task.bytesDone == Self.image.size && server.requests.count == 1)
        daemon.expectTidy()
    }

    // MARK: Names

    @Test("F74: names come in the forms that servers send, and from the URL after redirects")
    func names() async throws {
        let content = Resource(size: 1_000)
        let dispositions = [
            "/1": #"attachment; filename="C:\dir\name.png""#, "/2": #"filename="a.mp4""#,
            "/3": "attachment; filename*=iso-8859-1'en'%A3%20rates.txt", "/4": "attachment; filename=na%C3%AFve.txt",
            "/5": #"attachment; filename="=?UTF-8?B?4oKsLnR4dA==?=""#,
        ]
        let server = try MisbehavingServer { question in
            if question.path.hasPrefix("/download") {
                return MisbehavingResponse(302, ["Location: /files/a.iso?sig=s3cret"])
            }
            let fields = dispositions[question.path].map { ["Content-Disposition: \($0)"] } ?? []
            return MisbehavingResponse(honest: content, to: question, fields: fields)
        }
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        func name(_ arguments: String...) async throws -> String? {
            let outcome = try await daemon.dlctl(["add", "--wait"] + arguments)
            #expect(outcome.succeeded, "\(outcome.error)")
            return try daemon.tasks().last?.name
        }
        #expect(try await name(server.url("/1")) == "name.png")
        #expect(try await name(server.url("/2")) == "a.mp4")
        #expect(try await name(server.url("/3")) == "£ rates.txt")
        #expect(try await name(server.url("/4")) == "naïve.txt")
        #expect(try await name(server.url("/5")) == "€.txt")
        #expect(try await name(server.url("/download?id=1")) == "a.iso")
        #expect(try await name("--name-from", "url", server.url("/download?id=1")) == "download")
        #expect(try await name("--name-from", "final", server.url("/download.img")) == "a (1).iso")
        #expect(try await name("--name-from", "url", server.url("/1")) == "1")
        let wrong = try await daemon.dlctl("add", "--name-from", "guess", server.url("/1"))
        #expect(wrong.status == .exited(64) && wrong.error.contains("url, final, header"), "\(wrong.error)")
        daemon.expectTidy()
    }
}
