import TaskModel
import Testing

@testable import TaskFiles

@Suite("Metalinks")
struct MetalinkTests {
    private static func read(_ text: String) throws(FileError) -> [Metalink.File] {
        try Metalink(parsing: Array(text.utf8), file: "f").files
    }

    /// Returns the only file of a version 4 Metalink, with `content` on its second line.
    private static func one(_ content: String, name: String = "a") throws(FileError) -> Metalink.File? {
        try read(four("<file name='\(name)'>\n\(content)\n</file>")).first
    }

    private static func four(_ files: String) -> String {
        "<metalink xmlns='urn:ietf:params:xml:ns:metalink'>\n\(files)\n</metalink>"
    }

    private static func three(_ files: String) -> String {
        "<metalink version='3.0' xmlns='http://www.metalinker.org/'>\n<files>\(files)</files>\n</metalink>"
    }

    private static let md5 = "d41d8cd98f00b204e9800998ecf8427e"
    private static let sha1 = String(repeating: "1f", count: 20)
    private static let sha256 = String(repeating: "a1", count: 32)
    private static let sha512 = String(repeating: "5e", count: 64)
    private static let url = "<url>http://h/a</url>"

    // MARK: - Accepted input

    static let sample4 = """
        <?xml version="1.0" encoding="utf-8"?>
        <!-- made by a mirror director -->
        <?xml-stylesheet href="x.css"?>
        <metalink xmlns="urn:ietf:params:xml:ns:metalink" xmlns:x="http://example.org/x">
          <generator>Mirrors/2.19</generator>
          <published>2024-05-01T10:00:00Z</published>
          <origin dynamic="true">https://example.org/dist/net.iso.meta4</origin>
          <file name="dist/net.iso">
            <identity>Net installer</identity>
            <description lang="en">Boots &amp; installs <![CDATA[<everything>]]></description>
            <size>786432</size>
            <hash type="md5">\(md5)</hash>
            <hash type="sha-256">
              \(sha256.uppercased())
            </hash>
            <hash type="sha-1">\(sha1)</hash>
            <hash type="whirlpool">00</hash>
            <pieces length="262144" type="sha-1">
              <hash>\(sha1)</hash>
              <hash>\(sha1)</hash>
              <hash>\(sha1)</hash>
            </pieces>
            <pieces length="786432" type="md5"><hash>\(md5)</hash></pieces>
            <signature mediatype="application/pgp-signature">-----BEGIN PGP SIGNATURE-----</signature>
            <x:url>http://x.example.org/not-ours</x:url>
            <metaurl mediatype="torrent" priority="1">http://example.org/net.iso.torrent</metaurl>
            <url location="de" priority="3">ftp://ftp.example.de/net.iso</url>
            <url location="fr">http://last.example.fr/net.iso?a=1&amp;b=2</url>
            <url location="us" priority="1">https://first.example.com/net.iso</url>
            <url location="jp" priority="3">http://second.example.jp/net.iso</url>
            <url priority="2">rsync://example.org/net.iso</url>
            <url priority="9">https://first.example.com/net.iso</url>
          </file>
          <file name="NOTES"><url>http://example.org/NOTES</url></file>
        </metalink>

        """

    @Test("version 4: strongest digest, strongest pieces, URLs by priority, all else passed over")
    func version4() throws {
        let files = try Self.read(Self.sample4)
        #expect(files.count == 2)
        let file = try #require(files.first)
        #expect(file.directory == "dist" && file.output == "net.iso")
        #expect((file.line, file.column) == (8, 3))
        #expect(file.size == 786_432)
        #expect(file.checksum?.description == "sha-256:\(Self.sha256)")
        #expect(file.pieceHashes?.algorithm == .sha1 && file.pieceHashes?.length == 262_144)
        #expect(file.pieceHashes?.count == 3 && file.pieceHashes?.hashes.first == 0x1F)
        #expect(
            file.urls == [
                "https://first.example.com/net.iso", "ftp://ftp.example.de/net.iso",
                "http://second.example.jp/net.iso", "http://last.example.fr/net.iso?a=1&b=2",
            ])
        #expect(files[1].urls == ["http://example.org/NOTES"] && files[1].checksum == nil && files[1].line == 34)
    }

    static let sample3 = """
        <?xml version="1.0"?>
        <metalink version="3.0" xmlns="http://www.metalinker.org/" type="dynamic" generator="hand">
          <publisher><name>Example</name><url>http://example.org/</url></publisher>
          <files>
            <file name="office.tar.gz">
              <version>3.2</version>
              <size>100</size>
              <verification>
                <signature type="pgp" file="office.tar.gz.asc">-----BEGIN</signature>
                <hash type="sha1">\(sha1)</hash>
                <hash type="md5">\(md5)</hash>
                <pieces length="60" type="sha1">
                  <hash piece="0">\(sha1)</hash>
                  <hash piece="1">\(sha1)</hash>
                </pieces>
              </verification>
              <resources maxconnections="4">
                <url type="ftp" location="us" preference="10">ftp://us.example.org/office.tar.gz</url>
                <url type="bittorrent" preference="100">http://example.org/office.torrent</url>
                <url type="http" location="uk" preference="90">http://uk.example.org/office.tar.gz</url>
                <url type="http">http://any.example.org/office.tar.gz</url>
                <url preference="0">https://zero.example.org/office.tar.gz</url>
                <url type="magnet">magnet:?xt=urn:sha1:x</url>
              </resources>
            </file>
          </files>
        </metalink>
        """

    @Test("version 3: digests beneath verification, URLs by preference beneath resources")
    func version3() throws {
        let files = try Self.read(Self.sample3)
        let file = try #require(files.first)
        #expect(files.count == 1 && file.output == "office.tar.gz" && file.directory == nil && file.size == 100)
        #expect(file.checksum?.description == "sha-1:\(Self.sha1)")
        #expect(file.pieceHashes?.count == 2 && file.pieceHashes?.length == 60)
        #expect(
            file.urls == [
                "http://uk.example.org/office.tar.gz", "ftp://us.example.org/office.tar.gz",
                "https://zero.example.org/office.tar.gz", "http://any.example.org/office.tar.gz",
            ])
    }

    @Test("a prefix is as good as the default namespace, and elements of others are passed over with all in them")
    func namespaces() throws {
        let text = """
            <m:metalink xmlns:m="urn:ietf:params:xml:ns:metalink" xmlns="http://example.org/other">
            <file name="x"><url>http://h/other</url></file>
            <m:file name="a"><url>http://h/other</url><m:url>http://h/a</m:url>
            <e:x xmlns:e="urn:e"><m:url>http://h/inner</m:url></e:x></m:file></m:metalink>
            """
        let files = try Self.read(text)
        #expect(files.map(\.output) == ["a"])
        #expect(files.first?.urls == ["http://h/a"])
    }

    @Test("the elements of one version say nothing in the other")
    func mixed() throws {
        #expect(throws: FileError.self) { try Self.one("<resources><url>http://h/a</url></resources>") }
        #expect(throws: FileError.self) { try Self.read(Self.three("<file name='a'><url>http://h/a</url></file>")) }
        #expect(throws: fault(1, 1, "contains no file")) {
            try Self.read("<metalink xmlns='http://www.metalinker.org/'><file name='a'>\(Self.url)</file></metalink>")
        }
    }

    @Test("a digest in pieces beyond what a task carries is left out where there is one of the whole")
    func tooManyPieces() throws {
        let pieces =
            "<pieces length='1' type='md5'>" + String(repeating: "<hash>\(Self.md5)</hash>", count: 32_769)
            + "</pieces>"
        let file = try Self.one("\(pieces)<hash type='sha-512'>\(Self.sha512)</hash>\(Self.url)")
        #expect(file?.pieceHashes == nil && file?.checksum?.algorithm == .sha512)
        let error = #expect(throws: FileError.self) { try Self.one("\(pieces)\(Self.url)") }
        #expect(error?.code == .tooLarge && error?.line == 3 && error?.column == 1)
    }

    @Test("many files on one line keep their places")
    func places() throws {
        let files = (0..<3).map { "<file name='ä\($0)'>\(Self.url)</file>" }.joined()
        let text = "<metalink xmlns='urn:ietf:params:xml:ns:metalink'>\(files)</metalink>"
        #expect(try Self.read(text).map(\.line) == [1, 1, 1])
        let length = "<file name='ä0'>\(Self.url)</file>".count
        #expect(try Self.read(text).map(\.column) == [51, 51 + length, 51 + 2 * length])
    }

    // MARK: - Refused input

    @Test(
        "a value that cannot stand is told with its place",
        arguments: [
            ("<size>1 MB</size>", 1, "\"size\" must be a number of bytes"),
            ("<size>-1</size>", 1, "\"size\" must be a number of bytes"),
            ("<size/>", 1, "\"size\" must be a number of bytes"),
            ("<size>99999999999999999999</size>", 1, "\"size\" must be a number of bytes"),
            ("<size>1</size> <size>1</size>", 16, "\"size\" is given twice for this file"),
            ("<hash type='md5'>00</hash>", 1, "\"hash\": a md5 digest has 32 hexadecimal digits"),
            ("<hash>00</hash>", 1, "this element has no \"type\", such as sha-256"),
            ("<pieces type='md5'/>", 1, "these pieces have no \"length\""),
            ("<pieces type='md5' length='0'/>", 20, "\"length\" must be a number of bytes above 0"),
            (
                "<pieces type='md5' length='1'><hash>0</hash></pieces>", 31,
                "\"hash\" of a piece must be a hexadecimal digest of the algorithm that \"pieces\" names"
            ),
            (
                "<size>2</size><pieces type='md5' length='1'><hash>\(md5)</hash></pieces>", 15,
                "the digests of these pieces are 1, but 2 bytes in pieces of 1 bytes need 2"
            ),
            (
                "<url>/a</url>", 1, "\"url\" has no scheme; begin it with https:// or http://"
            ),
            ("<url>http://h:0/</url>", 1, "\"url\" the port is not a number from 1 to 65535"),
            ("<url priority='0'>http://h/</url>", 6, "\"priority\" must be a whole number from 1 to 999999"),
            ("<url priority='best'>http://h/</url>", 6, "\"priority\" must be a whole number from 1 to 999999"),
            ("<url>http://h/<b/></url>", 15, "an element is not allowed here, only text"),
        ])
    func values(content: String, column: Int, message: String) {
        #expect(throws: fault(3, column, message)) { try Self.one("\(content)\(Self.url)") }
    }

    @Test("a file without a URL that can be fetched is refused where it stands")
    func noURL() {
        let message = "this file has no \"url\" with one of the schemes http, https, ftp, ftps, sftp"
        #expect(throws: fault(2, 1, message)) { try Self.one("") }
        #expect(throws: fault(2, 1, message)) {
            try Self.one("<url>magnet:?x</url><url>ed2k://h</url><metaurl>http://h/a.torrent</metaurl>")
        }
        #expect(throws: fault(2, 1, "this file has no \"name\"")) {
            try Self.read(Self.four("<file>\(Self.url)</file>"))
        }
        #expect(throws: fault(3, 7, "\"name\" is the same as that of the file at line 2")) {
            try Self.read(Self.four("<file name='a'>\(Self.url)</file>\n<file name='./a'>\(Self.url)</file>"))
        }
    }

    @Test(
        "A28: a name that leads out of its directory is refused",
        arguments: [
            "", "/etc/passwd", "../a", "a/../../b", "a/..", "..", "a/", "\\\\server\\share", "C:\\a", "c:/a",
            "a\\..\\b",
            "a/./", ".", "...", "a/ /b", "&#x2F;etc/passwd", ".&#46;/a", "\u{202E}",
        ])
    func names(name: String) {
        let error = #expect(throws: FileError.self) { try Self.one(Self.url, name: name) }
        #expect(error?.line == 2 && error?.column == 7 && error?.message.hasPrefix("\"name\" ") == true)
    }

    @Test(
        "what is left of a name is safe",
        arguments: [
            ("a", nil, "a"), ("d/e/a", "d/e", "a"), ("./d//a", "d", "a"), ("d\\a", "d", "a"),
            (".ssh/authorized_keys", "ssh", "authorized_keys"), ("-rf", nil, "rf"),
            (".dld-00000000-1.part", nil, "dld-00000000-1.part"),
            ("a\u{200B}b", nil, "ab"), ("a&#10;b", nil, "ab"), ("..a", nil, "a"), ("a:b", nil, "a:b"),
            ("con", nil, "_con"),
        ])
    func safeNames(name: String, directory: String?, output: String) throws {
        let file = try Self.one(Self.url, name: name)
        #expect(file?.directory == directory && file?.output == output)
    }

    @Test("other XML is no Metalink")
    func otherXML() {
        #expect(
            throws: fault(1, 1, "is not a Metalink: its root element is \"metalink\" of the namespace \"urn:x\"")
        ) { try Self.read("<metalink xmlns='urn:x'/>") }
        #expect(throws: fault(1, 1, "is not a Metalink: its root element is \"html\" of no namespace")) {
            try Self.read("<html></html>")
        }
        #expect(throws: fault(1, 1, "contains no file")) { try Self.read(Self.four("")) }
    }

    @Test("as many files are read as one Metalink may name, and not one more")
    func manyFiles() throws {
        let files = (0..<5).map { "<file name='\($0)'>\(Self.url)</file>\n" }.joined()
        let bytes = Array(Self.four(files).utf8)
        #expect(try Metalink(parsing: bytes, file: "f", limit: 5).files.count == 5)
        let error = #expect(throws: FileError.self) { try Metalink(parsing: bytes, file: "f", limit: 4) }
        #expect(error?.code == .tooLarge && error?.line == 6)
    }

    @Test("cut short at any byte, a Metalink is refused", arguments: [sample4, sample3])
    func truncated(text: String) throws {
        let bytes = Array(text.utf8)
        let end = try #require(text.utf8.lastIndex(of: UInt8(ascii: ">")))
        let length = text.utf8.distance(from: text.utf8.startIndex, to: end)
        for count in 0...length {
            #expect(throws: FileError.self) { try Metalink(parsing: Array(bytes[..<count]), file: "f") }
        }
        #expect(try Metalink(parsing: Array(bytes[...length]), file: "f").files.isEmpty == false)
    }

    @Test("with any byte changed it is read or refused")
    func changed() {
        let bytes = Array(Self.sample3.utf8)
        for index in bytes.indices {
            for byte: UInt8 in [0, UInt8(ascii: "<"), UInt8(ascii: "&"), UInt8(ascii: "\""), 0xC3] {
                var damaged = bytes
                damaged[index] = byte
                _ = try? Metalink(parsing: damaged, file: "f")
            }
        }
    }

    // MARK: - Encodings and relative URLs

    private static func metalink(_ encoding: String, url: String = "http://h/\u{E4}") -> String {
        """
        <?xml version="1.0" encoding='\(encoding)'?>
        <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="\u{E4}.iso"><url>\(url)</url></file></metalink>
        """
    }

    @Test("F78: UTF-16 with a byte order mark and ISO 8859-1 are read as their declarations say")
    func encodings() throws {
        let wide = "\u{FEFF}\(Self.metalink("UTF-16"))".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        let narrow = Self.metalink("ISO-8859-1").unicodeScalars.map { UInt8($0.value) }
        for bytes in [wide, narrow, Array(Self.metalink("utf-8").utf8)] {
            let file = try #require(try Metalink(parsing: bytes, file: "f").files.first)
            #expect(file.output == "\u{E4}.iso" && file.urls == ["http://h/\u{E4}"])
        }
        #expect(InputFile.detect(wide) == .metalink && InputFile.detect(narrow) == .metalink)
        #expect(throws: FileError.self) { try Metalink(parsing: Array(Self.metalink("EBCDIC").utf8), file: "f") }
    }

    @Test("F78: a relative URL needs a URL of the Metalink; one of another protocol stays ignored")
    func relative() throws {
        let bytes = Array(Self.metalink("utf-8", url: "sub/a:b.iso").utf8)
        let metalink = try Metalink(parsing: bytes, file: "f") { $0 == "sub/a:b.iso" ? "https://h/sub/a:b.iso" : nil }
        #expect(metalink.files.first?.urls == ["https://h/sub/a:b.iso"])
        #expect(throws: FileError.self) { try Metalink(parsing: bytes, file: "f") }
        #expect(throws: FileError.self) {
            try Metalink(parsing: Array(Self.metalink("utf-8", url: "magnet:?x").utf8), file: "f") { _ in "https://h/" }
        }
    }
}
