import TaskFiles
import TaskModel
import Testing

@Suite("Input files of aria2")
struct Aria2InputTests {
    private func parse(_ text: String, limit: Int = 10) throws(FileError) -> Aria2Input {
        try Aria2Input(parsing: Array(text.utf8), file: "f", limit: limit)
    }

    /// Returns the only task of an entry for `url` with `options`.
    private func task(_ options: String..., url: String = "http://h/a") throws -> TaskSpecification {
        let input = try parse(([url] + options.map { "  " + $0 }).joined(separator: "\n"))
        #expect(input.entries.count == 1)
        return try #require(input.entries.first?.specification)
    }

    @Test("an entry is a line of URLs for one file and the indented options behind it", arguments: ["\n", "\r\n"])
    func entries(lineEnd: String) throws {
        let lines = [
            "\u{FEFF}# a comment", "http://h/a\tftp://i/a\t\thttps://j/a", "  out=x", "", "\t dir = /d ", "  # another",
            "http://h/b", " header=A: b=c", " header=D: e",
        ]
        let input = try parse(lines.joined(separator: lineEnd))
        var a = TaskSpecification(url: "http://h/a")
        a.mirrors = ["ftp://i/a", "https://j/a"]
        a.output = "x"
        a.directory = "/d"
        var b = TaskSpecification(url: "http://h/b")
        b.headers = ["A: b=c", "D: e"]
        #expect(input.entries == [QueueEntry(a, line: 2, column: 1), QueueEntry(b, line: 7, column: 1)])
        #expect(input.notes.isEmpty)
    }

    @Test("every bad line is reported, in the order of the file")
    func faults() {
        let text = """
            ftpp://h/a
              nonsense=1
              dir=x
            http://h/b
              max-download-limit=x
            http://h/c
              split=0
              header
            http://h/d
            """
        let error = #expect(throws: FileError.self) { try parse(text) }
        #expect(
            error?.lines.map { String($0.prefix { $0 != " " }) } == ["f:1:1:", "f:2:3:", "f:5:3:", "f:7:3:", "f:8:3:"])
    }

    @Test("options that say what is fetched, where it goes and as whom are carried out")
    func carriedOut() throws {
        let digest = String(repeating: "0F", count: 32)
        let all = try task(
            "dir=isos", "out=sub/b.iso", "checksum=sha-256=\(digest)", "header=X-A: 1", "http-no-cache=true",
            "user-agent=agent", "referer=http://r/", "http-user=u", "http-passwd=p", "max-download-limit=2M",
            "pause=true", "gid=00000000000000AF", "remote-time=false", "continue=true", "allow-overwrite=true",
            "auto-file-renaming=false")
        var expected = TaskSpecification(url: "http://h/a")
        expected.directory = "isos/sub"
        expected.output = "b.iso"
        expected.checksum = "sha-256:\(digest)"
        expected.headers = ["X-A: 1", "Cache-Control: no-cache", "Pragma: no-cache"]
        expected.userAgent = "agent"
        expected.referer = "http://r/"
        expected.user = "u"
        expected.password = "p"
        expected.limit = 2 << 20
        expected.paused = true
        expected.key = "00000000000000af"
        expected.noMtime = true
        expected.onConflict = .overwrite
        #expect(all == expected)
        let other = try task(
            "ftp-user=u", "ftp-passwd=p", "max-download-limit=0", "remote-time=true", "pause=false", url: "ftp://h/a")
        #expect(other.user == "u" && other.password == "p" && other.limit == nil)
        #expect(!other.noMtime && !other.paused)
        #expect(try task("out=b/c").directory == "b")
    }

    @Test("a taken name is met as aria2 meets it")
    func conflicts() throws {
        #expect(try task().onConflict == nil)
        #expect(try task("auto-file-renaming=false").onConflict == .fail)
        #expect(try task("auto-file-renaming=true").onConflict == .rename)
        #expect(try task("allow-overwrite=false").onConflict == .rename)
        #expect(try task("allow-overwrite=false", "auto-file-renaming=false").onConflict == .fail)
    }

    @Test("connections are as many as aria2 would make, and no more than a task has")
    func connections() throws {
        #expect(try task().connections == nil)
        #expect(try task("split=8").connections == .exactly(1))
        #expect(try task("max-connection-per-server=16").connections == .exactly(5))
        #expect(try task("split=8", "max-connection-per-server=4").connections == .exactly(4))
        let urls = "http://h/a\thttp://i/a"
        #expect(try task("split=8", "max-connection-per-server=3", url: urls).connections == .exactly(6))
        #expect(try task("split=99", "max-connection-per-server=99").connections == .exactly(16))
        #expect(
            try parse("http://h/\n split=99\n max-connection-per-server=99").notes.map(\.message)
                == ["\"split\" is above the maximum of 16 connections for a task"])
    }

    @Test("a proxy is the one of the URL's protocol, or else the one for all")
    func proxies() throws {
        #expect(try task("all-proxy=p:8080").proxy == "http://p:8080")
        #expect(try task("all-proxy=p:1", "http-proxy=https://q:2/").proxy == "https://q:2")
        #expect(try task("all-proxy=http://a:b@p", "ftp-proxy=q", url: "https://h/a").proxy == "http://a:b@p:80")
        #expect(try task("ftp-proxy=[::1]", url: "sftp://h/a").proxy == "http://[::1]:80")
        #expect(
            try task("all-proxy=x@p:1", "all-proxy-user=ü:", "all-proxy-passwd=@").proxy == "http://%C3%BC%3A:%40@p:1")
        #expect(throws: fault(1, 1, "the URLs of this entry have different proxies, but a task has only one")) {
            try task("http-proxy=p:1", url: "http://h/a\thttps://h/a")
        }
    }

    @Test("a referer of * is the URL, without its user and fragment")
    func refererOfItself() throws {
        #expect(try task("referer=*", url: "http://u:p@h/a?b@c#d").referer == "http://h/a?b@c")
        #expect(try task("referer=*", url: "http://h/a@b").referer == "http://h/a@b")
    }

    @Test("what only tunes aria2 is passed over with a note, one for each option")
    func notes() throws {
        let input = try parse(
            "http://h/a\n  file-allocation=none\n  ftp-user=u\nhttp://h/b\n\tfile-allocation=none\n  seed-time=0\n")
        #expect(
            input.notes.map(\.description) == [
                "f:2:3: warning: \"file-allocation\" only tunes aria2; it is ignored "
                    + "(and 1 more)",
                "f:3:3: warning: \"ftp-user\" does not apply to the URLs of its entry; it is ignored",
                "f:6:3: warning: \"seed-time\" only tunes aria2; it is ignored",
            ])
        #expect(input.entries.count == 2)
    }

    @Test("what HTTP alone knows is passed over where nobody speaks it")
    func fileServers() throws {
        let options = "\n header=A: b\n user-agent=me\n referer=*\n"
        let files = try parse("ftp://h/a" + options)
        #expect(files.entries.map(\.specification) == [TaskSpecification(url: "ftp://h/a")])
        #expect(files.notes.map(\.line).sorted() == [2, 3, 4])
        #expect(try parse("ftp://h/a\thttp://h/a" + options).notes.isEmpty)
    }

    @Test("a refused option with the value that dld goes by anyway says nothing")
    func harmless() throws {
        let input = try parse("http://h/a.torrent\n check-certificate=true\n dry-run=false\n follow-torrent=false\n")
        #expect(input.notes.isEmpty && input.entries.count == 1)
    }

    @Test(
        "what cannot be carried out is refused by name, with its place",
        arguments: [
            ("http://h/\n  spilt=4", 2, 3, "\"spilt\" is not an option of aria2 input files; did you mean \"split\"?"),
            ("http://h/\n  xyzzyxyzzy=4", 2, 3, "\"xyzzyxyzzy\" is not an option of aria2 input files"),
            ("http://h/\n out=a\n out=b", 3, 2, "\"out\" is given twice"),
            ("  out=a\n", 1, 3, "\"out\" must follow a URL"),
            (
                "http://h/\n  http://i/", 2, 3,
                "is not an option; after white space write \"name=value\", or move a URL to the beginning of the line"
            ),
            (
                "http://h/\n load-cookies=c", 2, 2,
                "\"load-cookies\" is not supported in input files; use dlctl add --cookies FILE"
            ),
            (
                "http://h/\n check-certificate=false", 2, 2,
                "\"check-certificate\" is not supported; to leave certificates unverified, add --insecure"
            ),
            (
                "http://h/\n all-proxy=", 2, 2,
                "\"all-proxy\" is empty, but a task cannot bypass the daemon's proxy; remove the option"
            ),
            (
                "http://h/\n all-proxy=gopher://h:1", 2, 2,
                "\"all-proxy\": must begin with one of http://, https://, socks5://, socks5h://"
            ),
            ("http://h/\n pause=yes", 2, 2, "\"pause\" must be true or false"),
            ("http://h/\n split=0", 2, 2, "\"split\" must be a positive whole number"),
            ("http://h/\n gid=1", 2, 2, "\"gid\" must be 16 hexadecimal digits"),
            (
                "http://h/\n max-download-limit=1G", 2, 2,
                "\"max-download-limit\" must be a rate in bytes per second, such as 500K or 2M, or 0 for no limit"
            ),
            ("http://h/\n checksum=sha-256", 2, 2, "\"checksum\" must be TYPE=DIGEST, such as sha-256=…"),
            (
                "http://h/\n checksum=sha-224=00", 2, 2,
                "\"checksum\": write ALGORITHM:HEX with one of sha-256, sha-512, sha-1, md5, "
                    + "or 64, 128, 40 or 32 hexadecimal digits alone"
            ),
            ("http://h/\n header=A: b\n header=Range: c", 3, 2, "\"header\": Range is set by the daemon itself"),
            ("http://h/\n http-passwd=p", 2, 2, "\"http-passwd\": needs a user"),
            (
                "http://a/\n gid=0000000000000001\nhttp://b/\n gid=0000000000000001", 3, 1,
                "has the same \"gid\" as the entry at line 1"
            ),
        ])
    func refused(text: String, line: Int, column: Int, message: String) {
        #expect(throws: fault(line, column, message)) { try parse(text) }
    }

    @Test("what leads elsewhere is refused with the code of that")
    func codes() {
        func code(_ text: String) -> ErrorCode? {
            do throws(FileError) {
                _ = try parse(text)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code("http://h/\n out=/etc/x") == .pathNotAllowed)
        #expect(code("http://h/\n out=../x") == .pathNotAllowed)
        #expect(code("http://h/\n dir=../x") == .pathNotAllowed)
        #expect(code("magnet:?xt=urn:btih:0\n dir=x") == .protocolNotAllowed)
        #expect(code("http://h/a\tfile:///b") == .protocolNotAllowed)
        #expect(code("http://h/a.torrent\n dir=x") == .invalid)
        #expect(code("http://h/a.meta4?x\n dir=x") == .invalid)
    }

    @Test("a second URL of a line is told by its own place, and an entry too many by its line")
    func places() {
        #expect(throws: fault(1, 13, "\"url\": has no scheme; begin it with https:// or http://")) {
            try parse("http://hé/a\tb")
        }
        #expect(throws: fault(3, 1, "exceeds the limit of 1 entries per file")) {
            try parse("http://h/a\n dir=x\nhttp://h/b\n", limit: 1)
        }
    }
}
