import TaskFiles
import TaskModel
import Testing

@Suite("Input files")
struct InputFileTests {
    private func parse(_ text: String) throws(FileError) -> QueueFile {
        try InputFile.parse(
            Array(text.utf8), file: "f", baseDirectory: "/base", now: 0, utcOffset: { _ in 0 }, readFile: reading([:]))
    }

    @Test(
        "the kind of a file is told by its content",
        arguments: [
            ("", InputFile.Kind.urlList), ("# a\n", .urlList), ("http://h/\n", .urlList),
            ("\u{FEFF}\r\n# c\r\n  https://h/a=b\r\n  https://h/c\r\n", .urlList), ("example.org/x\n", .urlList),
            ("mailto:x", .urlList), ("http://h/\nname=value\n", .urlList),
            ("downloads:\n- http://h/", .queueFile), ("\u{FEFF}# c\n\ndowloads: []", .queueFile),
            ("---\nbatch: x", .queueFile), ("{downloads: []}", .queueFile), ("\"batch\": x", .queueFile),
            ("batch:\r\n", .queueFile), ("- http://h/\n", .queueFile), ("%YAML 1.1\n---\n", .queueFile),
            ("downloads:\n- url: http://h/\n  header: a=b\n  x=y\n", .queueFile),
            ("<?xml version=\"1.0\"?>\n<metalink>", .metalink), ("\n  <metalink/>", .metalink),
            ("http://h/\n  out=a\n", .aria2Input), ("# c\nhttp://h/\n\nhttp://i/\n\tdir=/x\n", .aria2Input),
            ("http://h/a\thttp://i/a\n", .aria2Input),
        ])
    func detect(text: String, kind: InputFile.Kind) {
        #expect(InputFile.detect(Array(text.utf8)) == kind)
    }

    @Test("a URL list and a queue file give the same kind of value")
    func parsed() throws {
        let list = try parse("http://h/a\n")
        #expect(list.batch == nil)
        #expect(list.entries.map(\.specification.url) == ["http://h/a"])
        let file = try parse("\u{FEFF}batch: b\nuploads: [{file: x, url: http://h/}]\n")
        #expect(file.batch == "b")
        #expect(file.entries.map(\.specification.file) == ["/base/x"])
    }

    @Test("a Metalink becomes an entry a file, with everything that it says")
    func metalink() throws {
        let digest = String(repeating: "0f", count: 32)
        let file = try parse(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">
              <file name="isos/a.iso">
                <size>20</size>
                <hash type="sha-256">\(digest)</hash>
                <pieces type="md5" length="10">
                  <hash>\(digest.prefix(32))</hash><hash>\(digest.prefix(32))</hash>
                </pieces>
                <url priority="2">http://b/a.iso</url>
                <url priority="1">http://a/a.iso</url>
                <url>ftp://c/a.iso</url>
              </file>
              <file name="b"><url>http://a/b</url></file>
            </metalink>
            """)
        #expect(file.batch == nil && file.nestsDirectories)
        #expect(file.entries.map(\.line) == [3, 13] && file.entries.map(\.column) == [3, 3])
        var expected = TaskSpecification(url: "http://a/a.iso")
        expected.mirrors = ["http://b/a.iso", "ftp://c/a.iso"]
        expected.output = "a.iso"
        expected.directory = "isos"
        expected.size = 20
        expected.checksum = "sha-256:\(digest)"
        expected.pieceHashes = PieceHashes(algorithm: .md5, length: 10, hashes: Array(repeating: 15, count: 32))
        #expect(file.entries.first?.specification == expected)
        #expect(file.entries.last?.specification.output == "b")
    }

    @Test("what file servers have comes after what connections can join, whatever the Metalink prefers")
    func fileServersLast() throws {
        let urls = ["ftp://a/x", "https://b/x", "sftp://c/x", "http://d/x"]
        let text = urls.map { "<url>\($0)</url>" }.joined()
        let task = try parse(
            "<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='x'>\(text)</file></metalink>"
        ).entries.first?.specification
        #expect(task?.url == "https://b/x")
        #expect(task?.mirrors == ["http://d/x", "ftp://a/x", "sftp://c/x"])
    }

    @Test("of very many mirrors the best are kept")
    func manyMirrors() throws {
        func task(_ count: Int, _ path: String) throws -> TaskSpecification? {
            let urls = (0..<count).map { "<url priority='\($0 + 1)'>http://h\($0)/\(path)</url>" }.joined()
            return try parse(
                "<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='a'>\(urls)</file></metalink>"
            ).entries.first?.specification
        }
        let many = try task(200, "a")
        #expect(many?.url == "http://h0/a" && many?.mirrors.count == 64 && many?.mirrors.last == "http://h64/a")
        let long = try task(20, String(repeating: "a", count: 8000))
        #expect(long?.mirrors.count == 8)
    }

    @Test("an input file of aria2 becomes an entry a line of URLs, with notes of what was passed over")
    func aria2() throws {
        let file = try parse("http://h/\n out=x\n file-allocation=none\n")
        #expect(file.batch == nil && !file.nestsDirectories)
        #expect(file.entries.map(\.specification.output) == ["x"])
        #expect(file.notes.map(\.line) == [3])
    }

    @Test("a fault keeps its place, whatever the kind")
    func faults() {
        #expect(throws: fault(1, 1, "\"dowloads\" is not a key here; did you mean \"downloads\"?")) {
            try parse("dowloads: []\n")
        }
        #expect(throws: fault(2, 2, "is not a Metalink: its root element is \"html\" of no namespace")) {
            try parse("\n <html/>")
        }
        #expect(throws: fault(2, 1, "is not UTF-8 text; dld reads text files only")) {
            try InputFile.parse(
                Array("http://h/\n".utf8) + [0xC0], file: "f", baseDirectory: "/", now: 0, utcOffset: { _ in 0 },
                readFile: reading([:]))
        }
    }
}
