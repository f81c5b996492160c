import Glibc
import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Admission")
struct AdmissionTests {
    private static func settings(uploadRoots: [String] = [], daemonUser: UInt32 = 500) -> QueueSettings {
        var settings = QueueSettings(Configuration(), downloadDirectory: "/home/me/dl", daemonUser: daemonUser)
        settings.downloadRoots = ["/srv"]
        settings.uploadRoots = uploadRoots
        return settings
    }

    private static func admit(
        _ specification: TaskSpecification, _ settings: QueueSettings = settings(), uid: UInt32 = 1000
    ) throws(FieldError) -> NewTask {
        var admission = Admission(settings: settings, caller: Caller(uid: uid, isAdministrator: false), now: 5)
        return try admission.admit(specification)
    }

    private static func refusal(of specification: TaskSpecification) -> FieldError? {
        do throws(FieldError) {
            _ = try admit(specification)
            return nil
        } catch {
            return error
        }
    }

    @Test("a task enters with its place, its host and without its secrets")
    func admitted() throws {
        var specification = TaskSpecification(url: "https://u:p@Example.org/a%20b.iso?sig=x")
        specification.directory = "isos"
        specification.startAt = 9
        let task = try Self.admit(specification)
        #expect(task.path == "/home/me/dl/isos/a b.iso")
        #expect(task.host == "https://example.org:443" && task.owner == 1000)
        #expect(task.specification.url == "https://Example.org/a%20b.iso?sig=REDACTED")
        #expect(task.secrets.url == specification.url)
        #expect(task.standing == TaskStanding(startAt: 9, now: 5))
        specification.output = "named"
        #expect(try Self.admit(specification).path == "/home/me/dl/isos/named")
    }

    @Test(
        "a place outside the roots is refused",
        arguments: ["/etc", "/srvx/a", "/srv/../etc", "../up", "a/../../b", "/srv/..", "..\u{2F}\u{301}x"])
    func place(directory: String) {
        var specification = TaskSpecification(url: "http://h/a")
        specification.directory = directory
        #expect(Self.refusal(of: specification)?.field == "directory")
        #expect(Self.refusal(of: specification)?.code == .pathNotAllowed)
    }

    @Test("a protocol that is not spoken yet is refused", arguments: ["ftp://h/a", "sftp://h/a", "file:///a"])
    func protocols(url: String) {
        #expect(Self.refusal(of: TaskSpecification(url: url))?.code == .protocolNotAllowed)
    }

    @Test("a file that is not there, or none, is no source")
    func missingSource() throws {
        let directory = try TemporaryDirectory()
        for path in [directory.file("none"), directory.path, "/dev/null"] {
            var specification = TaskSpecification(kind: .upload, url: "http://h/a")
            specification.file = path
            #expect {
                try Self.admit(specification, Self.settings(daemonUser: 1000))
            } throws: { error in
                (error as? FieldError)?.field == "file"
            }
        }
    }

    /// Whether `owner` may upload `path`; the daemon runs as 500.
    private static func may(_ owner: UInt32, _ path: String, roots: [String], opened: String? = nil) throws -> Bool {
        let source = try UploadSource(path: opened ?? path)
        do throws(TransferError) {
            try UploadPermission(settings: settings(uploadRoots: roots), owner: owner).check(source, path: path)
            return true
        } catch {
            #expect(error.code == .permissionDenied)
            return false
        }
    }

    @Test("the daemon's own user and root may send any file, others what is theirs or everyone's beneath the roots")
    func uploads() throws {
        let directory = try TemporaryDirectory()
        let root = try directory.makeDirectory("out")
        try directory.makeDirectory("outside")
        let inside = try directory.write("a", to: "out/inside")
        let outside = try directory.write("a", to: "outside/file")
        let me = getuid()
        // As root one is allowed everything; then the file belongs to someone else.
        let owner: UInt32 = me == 0 ? 4_000 : me
        if me == 0 { try #require(chown(inside, 4_000, 4_000) == 0 && chown(outside, 4_000, 4_000) == 0) }
        chmod(inside, 0o600)
        chmod(outside, 0o644)

        #expect(try Self.may(0, outside, roots: []))
        #expect(try Self.may(500, outside, roots: []))
        #expect(try !Self.may(owner, outside, roots: []))
        #expect(try !Self.may(owner, outside, roots: [root]))
        #expect(try Self.may(owner, inside, roots: [root]))
        #expect(try Self.may(owner, inside, roots: [root + "/"]))
        #expect(try Self.may(owner, inside, roots: ["/"]))
        #expect(try !Self.may(owner, inside, roots: [directory.file("ou")]), "a root is a directory, not a prefix")
        #expect(try !Self.may(4_001, inside, roots: [root]), "it is neither theirs nor everyone's")
        chmod(inside, 0o604)
        #expect(try Self.may(4_001, inside, roots: [root]))
        #expect(try !Self.may(4_001, root + "/../outside/file", roots: [root]))
    }

    @Test("a link leads out of the roots for nobody, and a root may be a link itself")
    func links() throws {
        let directory = try TemporaryDirectory()
        let root = try directory.makeDirectory("out")
        let inside = try directory.write("a", to: "out/inside")
        let outside = try directory.write("a", to: "outside")
        chmod(inside, 0o644)
        chmod(outside, 0o644)
        try #require(symlink(outside, root + "/link") == 0 && symlink(root, directory.file("alias")) == 0)
        #expect(try !Self.may(4_000, root + "/link", roots: [root]))
        #expect(try Self.may(4_000, directory.file("alias/inside"), roots: [root]))
        #expect(try Self.may(4_000, inside, roots: [directory.file("alias")]))
    }

    @Test("a path that leads elsewhere since the file was opened does not vouch for it")
    func swapped() throws {
        let directory = try TemporaryDirectory()
        let root = try directory.makeDirectory("out")
        let inside = try directory.write("a", to: "out/inside")
        let secret = try directory.write("a", to: "secret")
        chmod(inside, 0o644)
        chmod(secret, 0o644)
        #expect(try Self.may(4_000, inside, roots: [root]))
        #expect(try !Self.may(4_000, inside, roots: [root], opened: secret))
    }
}
