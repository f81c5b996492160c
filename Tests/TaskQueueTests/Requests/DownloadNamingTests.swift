import TaskFiles
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue
@testable import Transfer

@Suite("How a download gets its name")
struct DownloadNamingTests {
    private let directory: TemporaryDirectory
    private let place: Directory

    init() throws {
        directory = try TemporaryDirectory()
        place = try Directory.open(root: directory.path)
    }

    private func destination(
        suggested: String? = nil, redirected: String? = nil, hasHead: Bool = true, known: String? = nil,
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) throws -> FileDestination {
        var specification = TaskSpecification(url: "http://h/url.iso?x")
        change(&specification)
        let lines =
            (suggested.map { "Content-Disposition: attachment; filename=\"\($0)\"\n" } ?? "")
            + "Last-Modified: Thu, 01 Jan 1970 00:00:09 GMT\n"
        let head = hasHead ? ResponseHead(status: 200, version: "1.1", lines: Array(lines.utf8)) : nil
        let settings = QueueSettings(Configuration(), downloadDirectory: directory.path, daemonUser: 0)
        return try DownloadNaming(specification: specification, settings: settings)
            .destination(
                ResourceMetadata(
                    head: head, suggestedFileName: head?.suggestedFileName, redirectedFileName: redirected,
                    lastModified: head?.lastModified),
                in: place, known: known)
    }

    @Test("the person's word goes before the server's, and that before the URL's")
    func order() throws {
        #expect(try destination(suggested: "server.iso") { $0.output = "mine" }.name == "mine")
        #expect(try destination(suggested: "server.iso", known: "known").name == "server.iso")
        #expect(try destination(suggested: "../../x/evil.sh").name == "evil.sh")
        #expect(try destination(suggested: "..", known: "known").name == "url.iso")
        #expect(try destination(known: "known").name == "url.iso")
        #expect(try destination(hasHead: false, known: "known").name == "known")
        #expect(try destination(hasHead: false).name == "url.iso")
    }

    @Test("F74: a URL without a suffix yields to the one to which it was redirected, and name-from chooses")
    func redirected() throws {
        func name(
            _ url: String, _ redirected: String?, _ suggested: String? = nil, from source: NameSource? = nil
        ) throws -> String {
            try destination(suggested: suggested, redirected: redirected) {
                $0.url = url
                $0.nameFrom = source
            }.name
        }
        #expect(try name("http://h/download?id=1", "a.iso") == "a.iso")
        #expect(try name("http://h/get.php?id=1", "a.iso") == "a.iso")
        #expect(try name("http://h/v1.2", "a.tar.gz") == "a.tar.gz")
        #expect(try name("http://h/b.iso", "a.img") == "b.iso")
        #expect(try name("http://h/download?id=1", "42") == "download")
        #expect(try name("http://h/download?id=1", "42.") == "download")
        #expect(try name("http://h/download?id=1", nil) == "download")
        #expect(try name("http://h/x", "a.iso", "server.iso") == "server.iso")
        #expect(try name("http://h/x", "a.iso", "server.iso", from: .url) == "x")
        #expect(try name("http://h/b.iso", "a.img", "server.iso", from: .final) == "a.img")
        #expect(try name("http://h/b.iso", nil, "server.iso", from: .final) == "b.iso")
        #expect(try name("http://h/x", "a.iso", "server.iso", from: .header) == "server.iso")
        #expect(try name("http://h/x", "a.iso", from: .header) == "x")
        #expect(
            try destination(suggested: "s", redirected: "r.iso") {
                $0.output = "mine"
                $0.nameFrom = .final
            }.name == "mine")
    }

    @Test("a taken name is refused before a byte is fetched, where that is the policy")
    func conflict() throws {
        try directory.write("", to: "server.iso")
        #expect {
            try destination(suggested: "server.iso") { $0.onConflict = .fail }
        } throws: {
            ($0 as? TransferError)?.code == .nameConflict
        }
        #expect(try destination(suggested: "other.iso") { $0.onConflict = .fail }.name == "other.iso")
        guard case .rename(let next) = try destination(suggested: "server.iso").conflict else {
            Issue.record("the configuration says rename")
            return
        }
        #expect(next("server.iso", 2) == "server (2).iso")
    }

    @Test("an update keeps the file that is current, and replaces another one whatever the configuration says")
    func update() throws {
        let update = try destination { $0.update = true }
        #expect(update.keepsCurrentFile)
        guard case .overwrite = update.conflict else {
            Issue.record("an update overwrites")
            return
        }
        #expect(try !destination().keepsCurrentFile)
        // Without a response, as for a 304, the name is the one that is there.
        for source in NameSource.allCases where source != .url {
            #expect(
                try destination(hasHead: false, known: "there") {
                    $0.update = true
                    $0.nameFrom = source
                }.name == "there")
        }
    }

    @Test("the checksum is handed on, and the server's time unless it is not wanted")
    func conditions() throws {
        let destination = try destination { $0.checksum = "MD5:D41D8CD98F00B204E9800998ECF8427E" }
        #expect(destination.digest?.hex == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(destination.modificationTime == 9)
        #expect(try self.destination { $0.noMtime = true }.modificationTime == nil)
        #expect(try self.destination().digest == nil)
    }
}
