import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("The storage of cookies")
struct CookieStorageTests {
    private func cookie(
        _ name: String, _ value: String = "1", domain: String = "example.org", beneath: Bool = false,
        path: String = "/", secure: Bool = false, expires: Int64 = 0
    ) throws -> Cookie {
        try #require(
            Cookie(
                name: name, value: value, domain: domain, includesSubdomains: beneath, path: path, isSecure: secure,
                expires: expires))
    }

    @Test("a cookie replaces the one of its name, domain and path, and no other")
    func identity() throws {
        let storage = CookieStorage()
        storage.set(try cookie("a", "old"))
        storage.set(try cookie("a", path: "/p"))
        storage.set(try cookie("a", beneath: true))
        storage.set(try cookie("A"))
        storage.set(try cookie("a", "new"))
        #expect(storage.cookies.count == 4)
        #expect(storage.cookies.last?.value == "new")
        storage.set(try cookie("a", "slash", path: "/p/"))
        #expect(storage.cookies.count == 4)
        storage.delete(try cookie("a", "whatever"))
        #expect(storage.cookies.count == 3)
        storage.removeAll()
        #expect(storage.cookies.isEmpty)
    }

    @Test("a request is given what matches host, path and security, longer paths first, then the older")
    func matching() throws {
        let storage = CookieStorage()
        storage.set(try cookie("host"))
        storage.set(try cookie("deep", path: "/a/b"))
        storage.set(try cookie("domain", beneath: true))
        storage.set(try cookie("secure", secure: true))
        storage.set(try cookie("other", domain: "www.example.org"))
        storage.set(try cookie("gone", expires: 50))
        func names(_ host: String, _ path: String, _ secure: Bool) -> [String] {
            storage.cookies(for: host, path: path, isSecure: secure, now: 100).map(\.name)
        }
        #expect(names("example.org", "/", false) == ["host", "domain"])
        #expect(names("EXAMPLE.org", "/a/b/c", true) == ["deep", "host", "domain", "secure"])
        #expect(names("www.example.org", "/a/b", true) == ["domain", "other"])
        #expect(names("x.www.example.org", "/", true) == ["domain"])
        #expect(names("org", "/", true) == [])
        #expect(names(String(repeating: "a.", count: 100_000), "/", true) == [])
    }

    private func receive(
        _ fields: String..., into storage: CookieStorage, path: String = "/", secure: Bool = true
    ) {
        storage.receive(
            fields, from: CookieOrigin(host: "www.example.org", path: path, isSecure: secure), now: 100)
    }

    private func values(_ storage: CookieStorage) -> [String] { storage.cookies.map { "\($0.name)=\($0.value)" } }

    @Test("what a response adds, changes and deletes is stored at once, the rest stays as it is")
    func receiving() throws {
        let storage = CookieStorage()
        receive("kept=1", "changed=1", "deleted=1", "deep=1; Path=/a", "wide=1; Domain=example.org", into: storage)
        let before = storage.cookies
        // A response without changes changes nothing, not even the order.
        receive("wide=1; Domain=example.org", "kept=1", into: storage)
        #expect(storage.cookies == before)
        receive(
            "changed=2", "deleted=; Max-Age=0", "deep=; Max-Age=0; Path=/b", "wide=; Max-Age=0", "added=1",
            into: storage)
        #expect(values(storage) == ["kept=1", "deep=1", "wide=1", "changed=2", "added=1"])
        receive("deep=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/a", into: storage)
        receive("wide=; Expires=Thu, 01 Jan 1970 00:00:01 GMT; domain=.Example.org", into: storage)
        #expect(values(storage) == ["kept=1", "changed=2", "added=1"])
    }

    @Test("without encryption, a response does not replace, hide or delete a secure cookie of the same name")
    func secureCookies() throws {
        let storage = CookieStorage()
        receive("sid=right; Secure; Path=/a", "wide=right; Secure; Domain=example.org", into: storage)
        for value in ["sid=wrong; Path=/a", "sid=wrong; Path=/a/b", "sid=; Max-Age=0; Path=/a", "wide=wrong"] {
            receive(value, into: storage, secure: false)
            #expect(values(storage) == ["sid=right", "wide=right"])
        }
        // Another path does not hide it. Another host has no such cookie.
        receive("sid=other; Path=/b", "SID=1; Path=/a", into: storage, secure: false)
        storage.receive(
            ["sid=there; Path=/a"], from: CookieOrigin(host: "a.net", path: "/", isSecure: false), now: 100)
        #expect(values(storage) == ["sid=right", "wide=right", "sid=other", "SID=1", "sid=there"])
        receive("sid=new; Path=/a", into: storage)
        #expect(values(storage).last == "sid=new")
    }

    @Test("of one response at most 50 cookies are accepted")
    func manyInOneResponse() throws {
        let storage = CookieStorage()
        let fields = ["bad"] + (0..<60).map { "c\($0)=1" }
        storage.receive(fields, from: CookieOrigin(host: "a.net", path: "/", isSecure: false), now: 100)
        #expect(values(storage) == (0..<50).map { "c\($0)=1" })
    }

    @Test("where cookies are not accepted, those of servers are dropped and the program's are kept")
    func never() throws {
        let storage = CookieStorage(acceptPolicy: .never)
        storage.set(try cookie("own", domain: "www.example.org"))
        receive("added=1", "own=; Max-Age=0", into: storage)
        #expect(storage.cookies.map(\.name) == ["own"])
        storage.acceptPolicy = .always
        receive("added=1", "own=; Max-Age=0", into: storage)
        #expect(storage.cookies.map(\.name) == ["added"])
    }

    @Test("the oldest of a domain goes past its limit, the oldest of all past the limit of all")
    func eviction() throws {
        let storage = CookieStorage()
        storage.set(try cookie("first", domain: "first.org"))
        for index in 0...CookieStorage.maximumCountPerDomain { storage.set(try cookie("c\(index)")) }
        #expect(storage.cookies.count == 1 + CookieStorage.maximumCountPerDomain)
        #expect(storage.cookies.prefix(2).map(\.name) == ["first", "c1"])
        for index in storage.cookies.count..<CookieStorage.maximumCount {
            storage.set(try cookie("x", domain: "d\(index).org"))
        }
        #expect(storage.cookies.count == CookieStorage.maximumCount)
        storage.set(try cookie("last", domain: "last.org"))
        #expect(storage.cookies.count == CookieStorage.maximumCount)
        #expect(storage.cookies.first?.name == "c1")
        #expect(storage.cookies.last?.name == "last")
    }

    @Test("a file brings the same cookies back, is its owner's alone, and leaves nothing beside it")
    func file() throws {
        let place = try TemporaryDirectory()
        let path = place.file("cookies.txt")
        let storage = CookieStorage()
        storage.set(try cookie("a", "x y", beneath: true, path: "/p", secure: true, expires: 200))
        storage.set(try cookie("session"))
        storage.set(try cookie("gone", expires: 50))
        // A link of that name is replaced, not followed.
        try place.write("precious", to: "target")
        #expect(symlink(place.file("target"), path) == 0)
        try storage.save(toFileAt: path, now: 100)
        try storage.save(toFileAt: path, now: 100)
        #expect(try bytes(ofFileAt: place.file("target")) == Array("precious".utf8))
        var information = stat()
        #expect(lstat(path, &information) == 0 && information.st_mode & 0o7777 == 0o600)
        #expect(information.st_mode & S_IFMT == S_IFREG)
        #expect(Set(TemporaryDirectory.names(beneath: place.path)) == ["cookies.txt", "target"])

        let second = CookieStorage()
        #expect(try second.load(fromFileAt: path) == 0)
        #expect(second.cookies == storage.cookies.filter { $0.name != "gone" })
    }

    @Test("of a harmed file, what can be read is read")
    func harmedFile() throws {
        let place = try TemporaryDirectory()
        let path = try place.write(
            "# Netscape HTTP Cookie File\r\n\r\n \na.b\tFALSE\t/\tFALSE\t0\tn\tv\r\nnonsense\n"
                + "#HttpOnly_a.b\tFALSE\t/\tFALSE\t0\th\tv\na.b\tFALSE\t/\tFALSE", to: "cookies")
        let storage = CookieStorage()
        #expect(try storage.load(fromFileAt: path) == 2)
        #expect(storage.cookies.map(\.name) == ["n", "h"])
    }

    @Test("files that are none are refused")
    func badFiles() throws {
        let place = try TemporaryDirectory()
        let storage = CookieStorage()
        #expect(throws: TransferError.self) { try storage.load(fromFileAt: place.file("missing")) }
        #expect(throws: TransferError.self) { try storage.load(fromFileAt: place.path) }
        #expect(mkfifo(place.file("pipe"), 0o600) == 0)
        #expect(throws: TransferError.self) { try storage.load(fromFileAt: place.file("pipe")) }
        #expect(truncate(try place.write("", to: "huge"), off_t(CookieStorage.maximumFileSize + 1)) == 0)
        #expect { try storage.load(fromFileAt: place.file("huge")) } throws: { error in
            (error as? TransferError)?.code == .tooLarge
        }
        #expect(throws: TransferError.self) { try storage.save(toFileAt: place.file("no/such/directory")) }
    }
}
