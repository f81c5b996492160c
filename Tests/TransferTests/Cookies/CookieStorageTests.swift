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

    @Test("an exchange is fed what it may delete or must not shadow: other paths and secure ones too")
    func candidates() throws {
        let storage = CookieStorage()
        storage.set(try cookie("deep", path: "/a/b"))
        storage.set(try cookie("secure", secure: true))
        storage.set(try cookie("gone", expires: 50))
        storage.set(try cookie("other", domain: "other.org"))
        #expect(storage.candidates(for: "example.org", now: 100).map(\.name) == ["deep", "secure"])
    }

    @Test("what an exchange added, changed and deleted is brought back, the rest stays as it is")
    func replace() throws {
        let storage = CookieStorage()
        for name in ["kept", "changed", "deleted"] { storage.set(try cookie(name)) }
        let fed = storage.candidates(for: "example.org", now: 0)
        storage.replace(fed: fed, got: [try cookie("kept"), try cookie("changed", "2"), try cookie("added")])
        #expect(Set(storage.cookies.map { "\($0.name)=\($0.value)" }) == ["kept=1", "changed=2", "added=1"])
        // An exchange without changes changes nothing, not even the order.
        let before = storage.cookies
        storage.replace(fed: before, got: before.reversed())
        #expect(storage.cookies == before)
    }

    @Test("what others changed while an exchange ran is not lost")
    func concurrent() throws {
        let storage = CookieStorage()
        for name in ["token", "old", "both", "removed"] { storage.set(try cookie(name)) }
        let fed = storage.candidates(for: "example.org", now: 0)
        // Another exchange ends meanwhile.
        storage.set(try cookie("token", "renewed"))
        storage.set(try cookie("old", "renewed"))
        storage.set(try cookie("both", "theirs"))
        storage.set(try cookie("new"))
        storage.delete(try cookie("removed"))
        // This exchange saw none of that, deleted `old` and changed `both`.
        storage.replace(fed: fed, got: [try cookie("token"), try cookie("both", "ours"), try cookie("removed")])
        let all = Set(storage.cookies.map { "\($0.name)=\($0.value)" })
        #expect(all == ["token=renewed", "old=renewed", "both=ours", "new=1"])
    }

    @Test("where cookies are not accepted, those of servers are dropped and the program's are kept")
    func never() throws {
        let storage = CookieStorage(acceptPolicy: .never)
        storage.set(try cookie("own"))
        storage.replace(fed: storage.cookies, got: [try cookie("added")])
        #expect(storage.cookies.map(\.name) == ["own"])
        storage.acceptPolicy = .always
        storage.replace(fed: storage.cookies, got: [try cookie("added")])
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
