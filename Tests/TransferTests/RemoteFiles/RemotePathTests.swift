import Testing

@testable import Transfer

@Suite("Paths on file servers")
struct RemotePathTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test(
        "an FTP path is relative to where the login leads, unless it begins with a second slash",
        arguments: [
            ("/a.iso", "a.iso"), ("/dir/a.iso", "dir/a.iso"), ("//etc/motd", "/etc/motd"),
            ("/%2Fetc/motd", "/etc/motd"),
            ("/a%20b", "a b"), ("/100%25", "100%"), ("/a%zz", "a%zz"), ("/a%2", "a%2"), ("/%C3%A4", "ä"),
            ("/a;type=i", "a"), ("/a;TYPE=I", "a"), ("/a%3Btype=a", "a;type=a"), ("/a;b", "a;b"),
            ("/a;type=i/b", "a;type=i/b"),
        ])
    func ftp(path: String, expected: String) throws {
        #expect(try RemotePath(path, scheme: .ftp).text == expected)
    }

    @Test(
        "an SFTP path is from the root, or from the home where it begins with a tilde alone",
        arguments: [
            ("/etc/motd", "/etc/motd"), ("/~/a", "a"), ("/~/dir/a b", "dir/a b"), ("/~bob/a", "/~bob/a"),
            ("/%7E/a", "a"), ("/a;type=a", "/a;type=a"),
        ])
    func sftp(path: String, expected: String) throws {
        #expect(try RemotePath(path, scheme: .sftp).text == expected)
    }

    @Test(
        "what names no file, or hides something, is refused",
        arguments: [
            "/", "/dir/", "/dir%2F", "/a%0d%0aDELE%20b", "/a%0Ab", "/a%00b", "/a%7Fb", "/a%1B", "/%2e%2e/b", "/a/%2E/b",
            "/a;type=a", "/a;type=d", "", "/" + String(repeating: "a", count: 4097),
        ], [RemoteScheme.ftp, .sftp])
    func refused(path: String, scheme: RemoteScheme) {
        if scheme == .sftp, path.contains(";") { return }
        #expect(throws: TransferError.self) { try RemotePath(path, scheme: scheme) }
    }

    @Test(
        "the path goes to libcurl so that it reads the same bytes, whatever they are",
        arguments: [
            ("/a;type=i", "/a", RemoteScheme.ftp), ("/a%3Btype=a", "/a%3Btype%3Da", .ftp), ("/%2Fetc", "//etc", .ftp),
            ("/100%25%20?", "/100%25%20%3F", .ftp), ("/~/a b", "/~/a%20b", .sftp), ("/~bob", "//%7Ebob", .sftp),
            ("/x/~bob", "/x/%7Ebob", .sftp), ("/%ff", "/%FF", .sftp), ("/a#b", "/a%23b", .sftp),
        ])
    func urlPath(path: String, expected: String, scheme: RemoteScheme) throws {
        #expect(try RemotePath(path, scheme: scheme).urlPath == expected)
    }

    @Test("a temporary name lies beside the file's, and fits the server whatever the file's is")
    func temporary() throws {
        let path = try RemotePath("/dir/a b.iso", scheme: .ftp)
        #expect(path.temporary(token: "1f").text == "dir/.a b.iso.dld-1f.tmp")
        #expect(try RemotePath("/a", scheme: .sftp).temporary(token: "1").text == "/.a.dld-1.tmp")
        // The name has 127 characters of two bytes each.
        let long = try RemotePath("/" + String(repeating: "%C3%A4", count: 127), scheme: .ftp)
        let name = long.temporary(token: "0123456789abcdef")
        #expect(name.bytes.count <= RemotePath.maximumNameLength)
        #expect(name.text.hasSuffix("ä.dld-0123456789abcdef.tmp"))
    }

    @Test("commands carry a name as it is, and what stands in quotes cannot end them")
    func commands() throws {
        let name = #"/a "b" 'c' \d; rm "/x""#
        let sftp = try RemotePath(name, scheme: .sftp)
        #expect(text(sftp.removal(mayFail: true)) == #"*rm "/a \"b\" 'c' \\d; rm \"/x\"""#)
        #expect(text(sftp.renaming(to: sftp)[0]).hasPrefix(#"rename "/a \"b\""#))
        let ftp = try RemotePath("/*a b", scheme: .ftp)
        #expect(ftp.renaming(to: ftp).map(text) == ["RNFR *a b", "RNTO *a b"])
        #expect(text(ftp.removal(mayFail: false)) == "DELE *a b")
        #expect(ftp.sizeQuestion.map(text) == ["*SIZE *a b"])
        #expect(sftp.sizeQuestion.isEmpty)
    }

    @Test("the directories on the way to a file are created from the first one on, unless there are too many")
    func directoryCreations() throws {
        func commands(_ path: String, _ scheme: RemoteScheme) throws -> [String] {
            try RemotePath(path, scheme: scheme).directoryCreations.map(text)
        }
        #expect(try commands("/a/b c/f", .ftp) == ["*MKD a", "*MKD a/b c"])
        #expect(try commands("/%2Fsrv//in/f", .ftp) == ["*MKD /srv", "*MKD /srv//in"])
        #expect(try commands("/a/f", .sftp) == [#"*mkdir "/a""#])
        #expect(try commands("/~/a/f", .sftp) == [#"*mkdir "a""#])
        #expect(try commands("/f", .sftp).isEmpty && commands("/f", .ftp).isEmpty)
        let deep = String(repeating: "/d", count: RemotePath.maximumDepth)
        #expect(try commands(deep + "/f", .sftp).count == RemotePath.maximumDepth)
        #expect(try commands(deep + "/d/f", .sftp).isEmpty)
    }

    @Test("a URL is taken apart: user and password, address, file")
    func file() throws {
        let file = try RemoteFile("sftp://u%40x:p%3aw@[::1]:2222/~/a")
        #expect(file.user == "u@x" && file.password == "p:w")
        #expect(file.host == "[::1]" && file.plainHost == "::1" && file.port == 2222)
        #expect(file.url(of: file.path) == "sftp://[::1]:2222/~/a")
        #expect(file.url(of: nil) == "sftp://[::1]:2222/")
        #expect(try RemoteFile("FTP://Example.org/a").url(of: nil) == "ftp://example.org:21/")
        #expect(try RemoteFile("ftp://h/a#b").path.text == "a")
    }

    @Test(
        "a URL that cannot be meant is refused",
        arguments: ["ftp://h/a?b", "http://h/a", "ftp://h", "sftp://u%0a@h/a", "ftp://", "ftp:x"])
    func refusedURL(url: String) {
        #expect(throws: TransferError.self) { try RemoteFile(url) }
    }

    @Test("the scheme tells whose a URL is, in any letter case")
    func scheme() {
        #expect(RemoteScheme(of: "SFTP://h/a") == .sftp)
        #expect(RemoteScheme(of: "ftps://h/a") == .ftps)
        for url in ["http://h/ftp://x", "scp://h/a", "ftpx://h", "", "ftp", "file:///a"] where url != "ftp" {
            #expect(RemoteScheme(of: url) == nil)
        }
    }
}
