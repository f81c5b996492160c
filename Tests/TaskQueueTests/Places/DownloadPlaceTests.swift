import Glibc
import TaskFiles
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Where a download goes")
struct DownloadPlaceTests {
    private static func settings(home: String = "/home/me/dl", roots: [String] = ["/srv", "/srv/big/"]) -> QueueSettings
    {
        var settings = QueueSettings(Configuration(), downloadDirectory: home, daemonUser: 1)
        settings.downloadRoots = roots
        return settings
    }

    @Test(
        "a directory is found beneath the longest root, a relative one beneath the daemon's own",
        arguments: [
            (nil, "/home/me/dl", "", true), ("", "/home/me/dl", "", true), ("isos", "/home/me/dl", "isos", true),
            ("./isos//x/", "/home/me/dl", "isos/x", true), (".", "/home/me/dl", "", true), ("/srv", "/srv", "", false),
            ("/srv/", "/srv", "", false), ("//srv/./a//b/", "/srv", "a/b", false),
            ("/srv/big/a", "/srv/big", "a", false), ("/srv/bigger", "/srv", "bigger", false),
            ("/home/me/dl/x", "/home/me/dl", "x", true), ("/srv/\u{301}a", "/srv", "\u{301}a", false),
        ])
    func place(directory: String?, root: String, subdirectory: String, makesRoot: Bool) throws {
        let place = try DownloadPlace(directory: directory, owner: 1, settings: Self.settings())
        #expect((place.root, place.subdirectory, place.makesRoot) == (root, subdirectory, makesRoot))
        #expect(place.path(of: "f") == root + (subdirectory.isEmpty ? "" : "/") + subdirectory + "/f")
    }

    @Test("what lies beneath no root is refused", arguments: ["/", "/etc", "/srvx", "/home/me", "/home/me/dlx/a"])
    func refused(directory: String) {
        #expect { try DownloadPlace(directory: directory, owner: 1, settings: Self.settings()) } throws: { error in
            (error as? FieldError)?.field == "directory" && (error as? FieldError)?.code == .pathNotAllowed
        }
    }

    @Test("a user's own daemon takes every directory of that user, and of nobody else")
    func everyDirectory() throws {
        var settings = Self.settings(roots: ["/home/me/dl"])
        settings.allowsEveryDirectory = true
        for directory in ["/", "/etc/x", "/home/me/.cache/a", "/home/me/dl/b"] {
            let place = try DownloadPlace(directory: directory, owner: 1, settings: settings)
            #expect(place.root == "/" && place.followsLinks && !place.makesRoot)
            #expect(place.path == directory)
        }
        #expect(throws: FieldError.self) { try DownloadPlace(directory: "/etc/x", owner: 2, settings: settings) }
        #expect(throws: FieldError.self) { try DownloadPlace(directory: ".hidden", owner: 1, settings: settings) }
        #expect(try DownloadPlace(directory: "isos", owner: 1, settings: settings).path == "/home/me/dl/isos")
    }

    @Test("a root may be everything, or end with a slash")
    func slashes() throws {
        let everything = try DownloadPlace(directory: "/etc/x", owner: 1, settings: Self.settings(roots: ["/"]))
        #expect((everything.root, everything.subdirectory) == ("/", "etc/x"))
        #expect(everything.path(of: "f") == "/etc/x/f")
        let root = try DownloadPlace(directory: "/", owner: 1, settings: Self.settings(roots: ["/"]))
        #expect(root.path(of: "f") == "/f")
        let home = try DownloadPlace(directory: nil, owner: 1, settings: Self.settings(home: "/home/me/dl//"))
        #expect(home.path(of: "f") == "/home/me/dl/f")
    }

    @Test("a link on the way is found, whatever it leads to, and nothing else is one")
    func link() throws {
        let directory = try TemporaryDirectory()
        let home = try directory.makeDirectory("home")
        try directory.makeDirectory("home/a/b")
        try directory.write("", to: "home/file")
        for (name, target) in [("dead", "/nowhere/x"), ("live", home), ("other", directory.file("home/file"))] {
            try #require(symlink(target, home + "/a/" + name) == 0)
        }
        func hasLink(_ path: String) throws -> Bool {
            try DownloadPlace(directory: path, owner: 1, settings: Self.settings(home: home)).hasLink
        }
        for name in ["dead", "live", "other"] {
            for path in ["a/\(name)", "a/\(name)/x", "a/\(name)/x/y"] {
                #expect(try hasLink(path), "\(path)")
            }
        }
        for path in ["", "a", "a/b", "a/b/c/d", "c", "file", "file/x"] { #expect(try !hasLink(path), "\(path)") }
    }
}
