import TaskModel
import Testing

@Suite("What a person asked for")
struct TaskSpecificationTests {
    private typealias Change = (inout TaskSpecification) -> Void

    private static func field(of kind: TaskKind = .download, _ change: Change) -> String? {
        var specification = TaskSpecification(kind: kind, url: "https://example.org/a")
        if kind == .upload { specification.file = "/srv/a" }
        change(&specification)
        do throws(FieldError) {
            try specification.check()
            return nil
        } catch {
            return error.field
        }
    }

    private static func pieces(_ count: Int, length: Int64) -> PieceHashes {
        PieceHashes(algorithm: .md5, length: length, hashes: Array(repeating: 7, count: count * 16))
    }

    private static let long = String(repeating: "a", count: 262_145)

    @Test("a field that cannot stand is named")
    func refused() {
        let cases: [(String, Change)] = [
            ("url", { $0.url = "nowhere" }), ("url", { $0.url = "file:///a" }), ("file", { $0.file = "/a" }),
            ("method", { $0.method = "PUT" }), ("contentType", { $0.contentType = "a/b" }),
            ("output", { $0.output = "a/b" }), ("output", { $0.output = "" }), ("directory", { $0.directory = "../a" }),
            ("checksum", { $0.checksum = "sha-256:12" }), ("checksum", { $0.checksum = "" }),
            ("headers[0]", { $0.headers = ["Name"] }), ("headers[0]", { $0.headers = [": a"] }),
            ("headers[0]", { $0.headers = ["A : b"] }), ("headers[0]", { $0.headers = ["A b: c"] }),
            ("headers[1]", { $0.headers = ["A: b", "C: d\r\nE: f"] }), ("headers[0]", { $0.headers = ["A: b\n"] }),
            ("headers[0]", { $0.headers = ["A: b\r"] }), ("headers[0]", { $0.headers = ["A: \u{0}"] }),
            ("headers[0]", { $0.headers = ["A: \u{7F}"] }), ("headers[0]", { $0.headers = ["A\u{301}: b"] }),
            ("headers[0]", { $0.headers = ["A: " + String(repeating: "b", count: 8190)] }),
            ("headers", { $0.headers = Array(repeating: "A: b", count: 65) }),
            ("user", { $0.user = "a:b" }), ("user", { $0.user = "a\r\n" }), ("password", { $0.password = "b" }),
            (
                "password",
                {
                    $0.user = "a"
                    $0.password = "b\u{0}"
                }
            ),
            ("user", { $0.user = String(Self.long.prefix(4097)) }), ("userAgent", { $0.userAgent = "a\r\nB: c" }),
            ("referer", { $0.referer = "\n" }), ("batch", { $0.batch = "" }), ("batch", { $0.batch = "a\t" }),
            ("batch", { $0.batch = String(Self.long.prefix(256)) }), ("key", { $0.key = "" }),
            ("key", { $0.key = "\r\n" }),
            ("proxy", { $0.proxy = "" }), ("proxy", { $0.proxy = "h:1" }), ("proxy", { $0.proxy = "ftp://h" }),
            ("proxy", { $0.proxy = "http://" }), ("proxy", { $0.proxy = "socks5://h:0" }),
            ("proxy", { $0.proxy = "http://h\r\n" }), ("caCertificates", { $0.caCertificates = "no PEM" }),
            ("caCertificates", { $0.caCertificates = "-----BEGIN CERTIFICATE-----" + Self.long }),
            ("maxSize", { $0.maxSize = -1 }), ("limit", { $0.limit = 0 }), ("limit", { $0.limit = -1 }),
            ("startAt", { $0.startAt = -1 }),
            ("startAt", { $0.startAt = 253_402_300_800_000 }),
            ("mirrors[1]", { $0.mirrors = ["http://h/a", "file:///a"] }), ("mirrors[0]", { $0.mirrors = [""] }),
            ("mirrors[0]", { $0.mirrors = ["http://h/a\r\n"] }),
            ("mirrors", { $0.mirrors = Array(repeating: "http://h/a", count: 65) }),
            ("mirrors", { $0.mirrors = Array(repeating: "http://h/" + Self.long.prefix(8183), count: 9) }),
            ("checksumURL", { $0.checksumURL = "SHA256SUMS" }),
            (
                "checksumURL",
                {
                    $0.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
                    $0.checksumURL = "http://h/s"
                }
            ),
            (
                "checksumURL",
                {
                    $0.metalink = true
                    $0.checksumURL = "http://h/s"
                }
            ),
            ("connectTimeout", { $0.connectTimeout = 0 }), ("connectTimeout", { $0.connectTimeout = -1 }),
            ("stallTimeout", { $0.stallTimeout = 7 * 86_400_000 + 1 }), ("stallTimeout", { $0.stallTimeout = .max }),
            ("maxAttempts", { $0.maxAttempts = 0 }), ("maxAttempts", { $0.maxAttempts = 1_000_001 }),
            ("size", { $0.size = -1 }), ("connections", { $0.connections = .exactly(0) }),
            ("connections", { $0.connections = .exactly(17) }),
            ("pieceHashes.length", { $0.pieceHashes = Self.pieces(1, length: 0) }),
            ("pieceHashes.hashes", { $0.pieceHashes = Self.pieces(0, length: 1) }),
            ("pieceHashes.hashes", { $0.pieceHashes = Self.pieces(32_769, length: 1) }),
            ("pieceHashes.hashes", { $0.pieceHashes = PieceHashes(algorithm: .md5, length: 1, hashes: [1, 2]) }),
            (
                "pieceHashes.hashes",
                {
                    $0.size = 21
                    $0.pieceHashes = Self.pieces(2, length: 10)
                }
            ),
            (
                "pieceHashes.hashes",
                {
                    $0.size = 0
                    $0.pieceHashes = Self.pieces(1, length: .max)
                }
            ),
        ]
        for (index, (field, change)) in cases.enumerated() { #expect(Self.field(change) == field, "case \(index)") }
    }

    @Test("an upload has fields of its own")
    func refusedUploads() {
        let cases: [(String, Change)] = [
            ("file", { $0.file = nil }), ("file", { $0.file = "a" }), ("file", { $0.file = "/a\n" }),
            ("file", { $0.file = "/" + Self.long.prefix(4095) }), ("method", { $0.method = "GET" }),
            ("method", { $0.method = "put" }), ("contentType", { $0.contentType = "a/b\r\nC: d" }),
            ("output", { $0.output = "a" }), ("directory", { $0.directory = "a" }),
            ("checksum", { $0.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e" }), ("url", { $0.url = "scp://h/a" }),
            ("mirrors", { $0.mirrors = ["http://h/a"] }), ("checksumURL", { $0.checksumURL = "http://h/s" }),
            ("metalink", { $0.metalink = true }),
            ("size", { $0.size = 1 }), ("pieceHashes", { $0.pieceHashes = Self.pieces(1, length: 1) }),
            ("connections", { $0.connections = .auto }),
        ]
        for (index, (field, change)) in cases.enumerated() {
            #expect(Self.field(of: .upload, change) == field, "case \(index)")
        }
    }

    @Test(
        "fields that the engine owns are refused in any letter case",
        arguments: [
            "Range", "IF-RANGE", "accept-encoding", "Content-Length", "Transfer-Encoding", "Connection", "TE",
            "Trailer",
            "Upgrade", "Expect",
        ])
    func engineOwned(name: String) {
        #expect(Self.field { $0.headers = ["\(name): x"] } == "headers[0]")
    }

    @Test("what is at the bound stands")
    func bounds() {
        #expect(
            Self.field {
                $0.headers =
                    Array(repeating: "X-A:\tb c\u{E9} ", count: 63) + ["A: " + String(repeating: "b", count: 8189)]
                $0.user = ""
                $0.password = "pass:word é"
                $0.batch = String(Self.long.prefix(255))
                $0.key = String(Self.long.prefix(255))
                $0.proxy = "SOCKS5H://u:p@[::1]:1080"
                $0.caCertificates = "# mine\n-----BEGIN CERTIFICATE-----\n"
                $0.maxSize = 0
                $0.startAt = 253_402_300_799_999
                $0.directory = "/srv/a"
                $0.output = "a.iso"
                $0.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
                $0.mirrors = Array(repeating: "sftp://u:p@h/" + Self.long.prefix(1011), count: 64)
                $0.connections = .exactly(16)
                $0.size = .max
                $0.pieceHashes = Self.pieces(32_768, length: .max / 32_768 + 1)
            } == nil)
        #expect(
            Self.field {
                $0.checksumURL = "ftp://h/MD5SUMS"
                $0.mirrors = ["http://h/a"]
            } == nil)
        #expect(
            Self.field {
                $0.metalink = true
                $0.mirrors = ["http://h/a"]
                $0.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
            } == nil)
        #expect(Self.field { $0.mirrors = ["http://h/a"] } == nil, "mirrors may stand without a hash")
        #expect(
            Self.field(of: .upload) {
                $0.file = "/" + Self.long.prefix(4094)
                $0.method = "POST"
            } == nil)
    }

    @Test(
        "before a server is asked the file's name is the URL's, and that of a Metalink without its suffix",
        arguments: [
            ("https://h/d/a.iso.meta4?x", true, "a.iso"), ("https://h/a.ISO.Metalink", true, "a.ISO"),
            ("https://h/a.iso.meta4", false, "a.iso.meta4"), ("https://h/metalink?repo=f40", true, "metalink"),
            ("https://h/.meta4", true, "meta4"), ("https://h/con.meta4", true, "_con"),
            ("https://h/", true, "download"),
            ("https://h/a.meta4.meta4", true, "a.meta4"), ("https://h/a.iso", true, "a.iso"),
        ])
    func expectedName(url: String, metalink: Bool, name: String) {
        var specification = TaskSpecification(url: url)
        specification.metalink = metalink
        #expect(specification.expectedName == name)
        specification.output = "b.meta4"
        #expect(specification.expectedName == "b.meta4")
    }

    @Test("a header line splits at its first colon, without the white space around")
    func splitting() {
        let split = TaskSpecification.splitHeader("X-A: \t b: c \t")
        #expect((split?.name, split?.value) == ("X-A", "b: c"))
        #expect(TaskSpecification.splitHeader("A:")?.value == "")
        #expect(TaskSpecification.splitHeader("é: a") == nil)
        #expect(TaskSpecification.splitHeader("") == nil)
    }
}
