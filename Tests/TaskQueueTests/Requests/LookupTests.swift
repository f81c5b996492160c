import TaskFiles
import TaskModel
import Testing
import Transfer

@testable import TaskQueue

@Suite("What a server says of a file")
struct LookupTests {
    private static let digest = String(repeating: "a1", count: 32)

    private static func metalink(_ urls: [String], name: String = "x/a.iso") -> String {
        let urls = urls.map { "<url>\($0)</url>" }.joined()
        return """
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">\
            <file name="\(name)"><size>20</size><hash type="sha-256">\(digest)</hash>\
            <pieces type="md5" length="20"><hash>\(digest.prefix(32))</hash></pieces>\(urls)</file></metalink>
            """
    }

    /// Returns the addresses that are requested for a Metalink at `url`: the URL and the mirrors.
    private static func urls(_ urls: [String], at url: String) throws(TransferError) -> [String] {
        guard case .file(let file) = try Lookup.answer(.metalink, url, Array(metalink(urls).utf8)) else { return [] }
        let task = TaskSpecification(url: url).described(by: file)
        return [task.url] + task.mirrors
    }

    private static func error(_ text: String, at url: String = "http://h/a.meta4") -> TransferError? {
        do throws(TransferError) {
            _ = try Lookup.answer(.metalink, url, Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    private static let everywhere = [
        "ftp://f/a", "http://h/a", "sftp://s/a", "https://t/a", "ftp://f/d/", "ftps://u/a", "rsync://r/a",
    ]

    @Test("from an encrypted connection no URL leads to an open one, as with redirects; file servers come last")
    func schemes() throws {
        #expect(
            try Self.urls(Self.everywhere, at: "http://h/m") == [
                "http://h/a", "https://t/a", "ftp://f/a", "sftp://s/a", "ftps://u/a",
            ])
        for scheme in ["https", "ftps", "sftp"] {
            #expect(
                try Self.urls(Self.everywhere, at: "\(scheme)://h/m") == ["https://t/a", "sftp://s/a", "ftps://u/a"])
        }
        #expect(try Self.urls(["ftp://f/a"], at: "ftp://f/m") == ["ftp://f/a"])
        let refused = Self.error(Self.metalink(["http://h/a", "ftp://h/a"]), at: "https://h/m")
        #expect(refused?.code == .protocolNotAllowed)
        #expect(refused?.message.contains("dlctl add --input FILE") == true)
    }

    @Test("what was asked for goes before what the Metalink says, and the rest is the Metalink's")
    func described() throws {
        let answer = try Lookup.answer(
            .metalink, "http://h/m", Array(Self.metalink(["http://b/a", "http://c/a"]).utf8))
        guard case .file(let file) = answer else {
            Issue.record("a Metalink describes a file")
            return
        }
        #expect(file.output == "a.iso")
        var asked = TaskSpecification(url: "http://h/m")
        let plain = asked.described(by: file)
        #expect(plain.url == "http://b/a" && plain.mirrors == ["http://c/a"])
        #expect(plain.checksum == "sha-256:\(Self.digest)" && plain.size == 20 && plain.pieceHashes?.count == 1)
        #expect(plain.directory == nil && plain.output == nil)
        asked.checksum = "md5:d41d8cd98f00b204e9800998ecf8427e"
        asked.mirrors = ["http://mine/a"]
        asked.directory = "isos"
        asked.output = "mine"
        let mine = asked.described(by: file)
        #expect(mine.url == "http://b/a" && mine.mirrors == ["http://mine/a", "http://c/a"])
        #expect(mine.checksum == asked.checksum && mine.directory == "isos" && mine.output == "mine")
    }

    @Test("a Metalink that describes no one file is refused, saying what to do")
    func refused() {
        let file = "<file name='FILE'><url>http://h/a</url></file>"
        let several = Self.error(
            "<metalink xmlns='urn:ietf:params:xml:ns:metalink'>"
                + (1...3).map { file.replacing("FILE", with: "\($0)") }.joined() + "</metalink>")
        #expect(several?.code == .invalidRequest)
        #expect(
            several?.message
                == "it describes 3 files, and a task fetches one; download it, and use dlctl add --input FILE")
        let none = Self.error("<metalink xmlns='urn:ietf:params:xml:ns:metalink'></metalink>")
        #expect(none?.code == .invalidRequest && none?.message == "line 1, column 1: contains no file")
        #expect(Self.error("")?.code == .invalidRequest)
        #expect(Self.error("\u{0}")?.code == .invalidRequest)
        #expect(Self.error("<!DOCTYPE html><html></html>")?.code == .invalidRequest)
        #expect(
            Self.error("<html></html>")?.message
                == "line 1, column 1: is not a Metalink: its root element is \"html\" of no namespace")
        #expect(Self.error(Self.metalink(["http://h/a"], name: "../a"))?.code == .pathNotAllowed)
        #expect(Self.error(Self.metalink(["ftp://h/d/"]))?.code == .invalidRequest)
        #expect(Self.error(Self.metalink(["http://h/a"])) == nil)
    }

    @Test("F78: a list is searched for the name of the URL, for that of the task, and for that of the server")
    func names() throws {
        let list = Array("\(Self.digest)  c.iso\n".utf8)
        func answer(_ url: String, output: String? = nil) throws(TransferError) -> Lookup.Answer {
            try Lookup.answer(.checksumList("http://h/S", output: output), url, list)
        }
        #expect(try answer("http://h/c.iso?x").checksum == "sha-256:\(Self.digest)")
        #expect(try answer("http://h/get?id=1", output: "c.iso").checksum == "sha-256:\(Self.digest)")
        guard case .list(let found) = try answer("http://h/get?id=1", output: "d.iso") else {
            Issue.record("the list names neither")
            return
        }
        #expect(try Lookup.checksum(of: ["c.iso", "d.iso"], in: found, at: "http://h/S").hex == Self.digest)
    }

    @Test("F78: a relative URL of a Metalink is beneath the URL that it came from")
    func relative() throws {
        let body = Array(Self.metalink(["sub/a.iso", "/b.iso", "//c/c.iso", "https://d/a"]).utf8)
        let answer = try Lookup.answer(.metalink, "http://h/m", body, base: "http://i/dir/m.meta4?…")
        guard case .file(let file) = answer else { return }
        #expect(file.urls == ["http://i/dir/sub/a.iso", "http://i/b.iso", "http://c/c.iso", "https://d/a"])
        #expect(Self.error(Self.metalink(["a.iso"]), at: "https://h/m") == nil)
    }

    @Test("a list that lacks the file is named, without its secrets, beside the file name that was looked for")
    func missingName() throws {
        let url = "https://anna:secret@h/SHA256SUMS?key=secret"
        let source = Lookup.Source.checksumList(url, output: nil)
        guard
            case .list(let list) = try Lookup.answer(
                source, "https://h/d/a%20b.iso?x", Array("\(Self.digest)  c.iso\n".utf8))
        else {
            Issue.record("the list does not name it")
            return
        }
        do throws(TransferError) {
            _ = try Lookup.checksum(of: ["a b.iso"], in: list, at: url)
            Issue.record("the list does not name it")
        } catch {
            let message = error.message
            #expect(message.hasPrefix("the list of checksums at https://h/SHA256SUMS"), "\(message)")
            #expect(message.hasSuffix(": it has no line for the file name \"a b.iso\""), "\(message)")
            #expect(!message.contains("secret"))
        }
    }
}
