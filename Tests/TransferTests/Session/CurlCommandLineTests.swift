import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Requests as curl commands", .timeLimit(.minutes(2)))
struct CurlCommandLineTests {
    private let server: ScriptedServer
    private let manager: SessionManager

    init() throws {
        server = try ScriptedServer(["/r": [.redirect("/c")]].merging(Self.paths.map { ($0, [.status(200)]) }) { $1 })
        manager = try SessionManager(
            configuration: .test {
                $0.additionalHeaders = ["X-Session: it's", "X-Empty;", "Accept-Language: de"]
                $0.userAgent = "tester/1 (\"$HOME\")"
            })
    }

    private static let paths = ["/c", "/c?q=a%20b&list%5B%5D=1", "/c/", "/c?a=[1]"]

    /// Sends the request and its command, and compares what the server received.
    private func compare(
        _ request: Request, _ end: () async -> Void, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let earlier = server.requests().count
        let command = request.cURLDescription(includingSecrets: true)
        await end()
        let sent = server.requests().dropFirst(earlier)
        #expect(sent.count == 1, sourceLocation: sourceLocation)
        let outcome = try await run(["sh", "-c", command], environment: ["http_proxy": "http://127.0.0.1:9"])
        #expect(outcome.succeeded, "\(command): \(outcome.error)", sourceLocation: sourceLocation)
        let repeated = server.requests().dropFirst(earlier + 1)
        #expect(repeated.map(Self.text) == sent.map(Self.text), "\(command)", sourceLocation: sourceLocation)
    }

    /// The request as text, without the field by which curl(1) announces a long body.
    private static func text(_ request: ScriptedServer.Request) -> String {
        let fields = request.headers.filter { $0.name != "expect" }.map { "\($0.name): \($0.value)" }.sorted()
        return "\(request.method) \(request.path)\n" + fields.joined(separator: "\n")
            + "\n\n\(request.body.map { String($0) }.joined(separator: " "))"
    }

    @Test(
        "method, fields and the session's defaults are repeated",
        arguments: paths, ["GET", "HEAD", "DELETE", "OPTIONS"])
    func fields(path: String, method: String) async throws {
        let method = try #require(HTTPRequest.Method(method))
        let headers: HTTPHeaders = [
            .accept("text/plain"), .authorization(user: "a", password: "b'c$d"), HTTPHeader(name: "X-Empty", value: ""),
            HTTPHeader(name: "X-Hard", value: "`id` $(id) \\ \" ' ü !"),
        ]
        let request = manager.request(server.url(path), method: method, headers: headers)
        try await compare(request) { _ = await request.outcome }
    }

    @Test(
        "bodies are repeated byte for byte",
        arguments: [
            "", "a=1&b=2", "@file", "it's \"$HOME\" \\n `id`\nsecond\r\nthird ü", "\u{0}\u{1}%s%%\\0'\u{7F}", "--x",
            "--x\u{0}",
            String(repeating: "0123456789", count: 6_000),
        ], ["POST", "PUT", "PATCH", "GET"])
    func bodies(text: String, method: String) async throws {
        let method = try #require(HTTPRequest.Method(method))
        let request = manager.upload(.data(Array(text.utf8)), to: server.url("/c"), method: method)
        try await compare(request) { _ = await request.outcome }
    }

    @Test("every byte is repeated")
    func binaryBody() async throws {
        let request = manager.upload(
            .data(Array(0...255)), to: server.url("/c"), headers: [.contentType("application/x-binary")])
        try await compare(request) { _ = await request.outcome }
    }

    @Test("JSON and form parameters are repeated")
    func parameters() async throws {
        let json: JSONValue = ["a": ["it's", nil]]
        let request = manager.request(server.url("/c"), method: .post, parameters: json, encoder: .json)
        try await compare(request) { _ = await request.outcome }
        let form = manager.request(server.url("/c"), method: .put, parameters: ["a": "b c"], headers: ["X-A": "é"])
        try await compare(form) { _ = await form.outcome }
    }

    @Test("a file is sent from its path")
    func files() async throws {
        let place = try Place()
        try place.temporary.write("the \0 file", to: "it's a file")
        let source = try UploadSource(path: place.temporary.file("it's a file"))
        let upload = manager.upload(.file(source), to: server.url("/c"), method: .put)
        try await compare(upload) { _ = await upload.outcome }
    }

    @Test("cookies are repeated")
    func cookies() async throws {
        var request = TransferRequest(url: server.url("/c"))
        let cookies = CookieStorage()
        cookies.receive(
            ["a=b; path=/", "c=\"d e\"; path=/"],
            from: CookieOrigin(host: "127.0.0.1", path: "/", isSecure: false), now: 0)
        request.cookies = cookies
        let sent = manager.request(request)
        #expect(sent.cURLDescription(includingSecrets: true).contains("a=b"))
        #expect(!sent.cURLDescription().contains("a=b"))
        try await compare(sent) { _ = await sent.outcome }
    }

    @Test("a redirect is followed as often as the engine follows it")
    func redirects() async throws {
        #expect(manager.request(server.url("/r")).cURLDescription().contains("--location --max-redirs 20"))
        var stopping = TransferRequest(url: server.url("/r"))
        stopping.redirects = .stop
        #expect(!manager.request(stopping).cURLDescription().contains("--location"))
    }

    @Test("a download is repeated with the fields that the engine adds")
    func downloads() async throws {
        let place = try Place()
        let request = manager.download(server.url("/c"), to: place.temporary.file("file"))
        try await compare(request) { _ = await request.outcome }
    }

    @Test("secrets are omitted unless they are asked for, also in debugDescription")
    func secrets() throws {
        var request = TransferRequest(
            url: "http://ada:secret1@h.example/p?token=secret2", method: .post,
            headerFields: try HTTPFields(["Authorization": "secret3", "X-Api-Key": "secret4"] as HTTPHeaders))
        request.proxy = "http://u:secret5@proxy.example:1/"
        let upload = manager.upload(Data("secret6".utf8), with: request).authenticate(user: "u", password: "secret7")
        let texts = [upload.cURLDescription(), upload.debugDescription, upload.description]
        for text in texts { #expect(!text.contains("secret"), "\(text)") }
        let full = upload.cURLDescription(includingSecrets: true)
        for number in 1...7 { #expect(full.contains("secret\(number)"), "\(full)") }
        #expect(full.contains("--anyauth --user 'u:secret7'"))
        #expect(full.contains("--proxy 'http://u:secret5@proxy.example:1/'"))
        #expect(upload.cURLDescription().contains("--proxy 'http://proxy.example:1/'"))
    }

    @Test("a line of the session that is no header field is neither sent nor part of the command")
    func invalidLines() async throws {
        let odd = try SessionManager(
            configuration: .test { $0.additionalHeaders = ["no colon", "@/etc/passwd", "X-Good: 1", "X-Odd; 2"] })
        let request = odd.request(server.url("/c"))
        let command = request.cURLDescription(includingSecrets: true)
        #expect(command.contains("X-Good: 1"))
        for word in ["no colon", "passwd", "X-Odd"] { #expect(!command.contains(word), "\(command)") }
        #expect(command.hasSuffix("  # invalid header lines of the session are left out"))
        try await compare(request) { _ = await request.outcome }
        let broken = try SessionManager(configuration: .test { $0.additionalHeaders = ["X-A: b\r\nX-Forged: 1"] })
        let failing = broken.request(server.url("/c"))
        #expect(!failing.cURLDescription(includingSecrets: true).contains("Forged"))
        #expect(await failing.outcome.error?.code == .invalidRequest)
    }

    @Test("the debug description and the log have the same command, without the body")
    func debugDescription() async throws {
        let lines = Notes<String>()
        let logged = try SessionManager(
            configuration: .test { $0.additionalHeaders = ["X-Own: 1"] },
            eventMonitors: [LoggingEventMonitor { lines.add($0) }])
        let upload = logged.upload(Data("content".utf8), to: server.url("/c"), method: .put)
        let text = upload.debugDescription
        #expect(text.hasPrefix("curl --include --request 'PUT'") && text.contains("--header 'X-Own: 1'"))
        #expect(!text.contains("--data") && !text.contains("#") && text.hasSuffix("'\(server.url("/c"))'"))
        _ = await upload.outcome
        try await eventually(that: "it is logged") { lines.all.contains { $0.hasSuffix("sends \(text)") } }
        let file = logged.upload(Data("content".utf8), with: TransferRequest(url: "ftp://h/f"))
        #expect(file.debugDescription == "curl --upload-file '…' --noproxy '*' 'ftp://h/f'")
    }

    @Test("the secrets of URLs in header fields are omitted too")
    func secretsInFields() throws {
        let headers: HTTPHeaders = [
            .referer("https://u:secret@h/?a=secret"), HTTPHeader(name: "Link", value: "secret"),
        ]
        let text = manager.request("http://h/", headers: headers).cURLDescription()
        #expect(!text.contains("secret") && text.contains("'Referer: https://h/?a=…'") && text.contains("'Link: …'"))
    }

    @Test("a URL that begins with a hyphen is no option of the command")
    func hyphen() {
        #expect(manager.request("-o/tmp/x").cURLDescription().contains("--url '-o/tmp/x'"))
        #expect(!manager.request("http://h/-o").cURLDescription().contains("--url"))
    }

    @Test("what a command cannot contain is a comment")
    func comments() throws {
        let stream = BodyStream {
            AsyncStream<[UInt8]> { $0.finish() }
        }
        #expect(manager.upload(.stream(stream), with: "http://h/").cURLDescription().contains("  # standard input is"))
        let large = manager.upload(.data([UInt8](repeating: 1, count: 100_000)), with: "http://h/")
        #expect(large.cURLDescription(includingSecrets: true).hasSuffix("# standard input is the body of 100000 bytes"))
        let form = manager.upload(with: "http://h/") { $0.append("a", name: "b") }
        #expect(form.cURLDescription().hasSuffix("# the body is a form that is not encoded yet"))
        var request = TransferRequest(url: "https://h/")
        request.identity = ClientIdentity(certificate: "secret", key: "secret")
        request.caCertificates = "pem"
        let text = manager.request(request).cURLDescription(includingSecrets: true)
        #expect(text.hasSuffix("# the request trusts certificates in memory; the request has a client identity"))
    }

    @Test("a form in memory is repeated, and is the same before and after the attempts", arguments: [0, 10_000])
    func forms(threshold: Int64) async throws {
        var form = MultipartFormData()
        form.append("it's @ü", name: "title")
        form.append([0, 1, 255], name: "file", fileName: "a.bin")
        let upload = manager.upload(multipartFormData: form, to: server.url("/c"), usingThreshold: threshold)
        let before = upload.cURLDescription(includingSecrets: true)
        #expect(before.contains("'Content-Type: \(form.contentType)'"))
        try await compare(upload) { _ = await upload.outcome }
        #expect(upload.cURLDescription(includingSecrets: true) == before)
        #expect(!upload.cURLDescription().contains("title"))
    }

    @Test("a form with a file, or one that is made by a closure, is repeated when it has been encoded")
    func encodedForms() async throws {
        let place = try Place()
        let path = try place.temporary.write("content", to: "file.txt")
        var form = MultipartFormData()
        form.append(fileAt: path, name: "file")
        let url = server.url("/c")
        let withFile = manager.upload(multipartFormData: form, to: url)
        let length = form.contentLength
        #expect(withFile.cURLDescription().hasSuffix("# standard input is the form of \(length) bytes"))
        #expect(withFile.cURLDescription().contains("'Content-Type: \(form.contentType)'"))
        let made = manager.upload(multipartFormData: { $0.append(fileAt: path, name: "file") }, to: url)
        let onDisk = manager.upload(multipartFormData: form, to: url, usingThreshold: 0)
        for upload in [withFile, made, onDisk] { _ = try await upload.value }
        for upload in [withFile, made] {
            let earlier = server.requests().count
            let command = upload.cURLDescription(includingSecrets: true)
            #expect(try await run(["sh", "-c", command]).succeeded, "\(command)")
            // Three requests were sent before the first command, in the same order as the commands.
            let texts = server.requests().map(Self.text)
            #expect(texts[earlier - 3] == texts[earlier], "\(command)")
        }
        #expect(onDisk.cURLDescription().hasSuffix("# standard input is the form of \(length) bytes"))
        let large = MultipartFormData.filled(with: [UInt8](repeating: 1, count: 100_000))
        let text = manager.upload(multipartFormData: large, to: url).cURLDescription(includingSecrets: true)
        #expect(text.hasSuffix("# standard input is the form of \(large.contentLength) bytes"))
    }

    @Test(
        "the version of HTTP is that of the request",
        arguments: [
            (.http1, "--http1.1"), (.http2, "--http2"), (.http2PriorKnowledge, "--http2-prior-knowledge"),
        ] as [(HTTPVersion, String)])
    func versions(version: HTTPVersion, option: String) throws {
        var request = TransferRequest(url: "https://h/")
        request.httpVersion = version
        #expect(manager.request(request).cURLDescription().split(separator: " ").contains(Substring(option)))
    }

    @Test("a request to a file server has its login and its options")
    func fileServers() throws {
        var request = TransferRequest(url: "ftp://h/f", credential: Credential(user: "u", password: "secret"))
        request.transportSecurity = .required
        #expect(
            manager.download(request).cURLDescription()
                == "curl --ssl-reqd --user '…' --noproxy '*' 'ftp://h/f'")
        request.url = "sftp://h/f"
        request.transportSecurity = .none
        request.credential = .privateKey(user: "u", path: "/k", passphrase: "p q")
        #expect(
            manager.download(request).cURLDescription(includingSecrets: true)
                == "curl --key '/k' --pass 'p q' --user 'u:' --noproxy '*' 'sftp://h/f'")
    }
}

extension MultipartFormData {
    /// Returns a form with one part of bytes.
    fileprivate static func filled(with bytes: [UInt8]) -> MultipartFormData {
        var form = MultipartFormData()
        form.append(bytes, name: "bytes")
        return form
    }
}
