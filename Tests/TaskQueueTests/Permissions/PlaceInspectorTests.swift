import Glibc
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Whether a directory can be used")
struct PlaceInspectorTests {
    private let inspector = PlaceInspector(uid: getuid())

    @Test("a directory that is there and ours can be used for everything")
    func usable() throws {
        let directory = try TemporaryDirectory()
        for use in [PlaceUse.downloads(makes: false), .downloads(makes: true), .watch, .uploads] {
            #expect(inspector.problem(with: directory.path, for: use) == nil)
        }
    }

    @Test("a missing directory is a problem unless it is made on demand")
    func missing() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("a/b/c")
        let problem = try #require(inspector.problem(with: path, for: .downloads(makes: false)))
        #expect(problem.code == .pathNotAllowed)
        #expect(problem.description == "\(path) does not exist; create the directory, or mount its file system")
        #expect(inspector.problem(with: path, for: .downloads(makes: true)) == nil)
    }

    @Test("a file system of the kernel takes no files, whatever its permissions say", arguments: ["/proc", "/sys"])
    func kernel(path: String) throws {
        let directory = try TemporaryDirectory()
        try #require(symlink(path, directory.file("link")) == 0)
        for place in [path, path + "/x", directory.file("link")] where getuid() == 0 {
            let problem = inspector.problem(with: place, for: .downloads(makes: true))
            #expect(problem?.description.contains("is in a file system of the kernel") == true, "\(place)")
            #expect(problem?.code == .pathNotAllowed)
        }
    }

    @Test("a path in a service's private /tmp is refused, and one that is bound there is not")
    func privateTemporary() {
        let mounts = """
            22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
            90 22 8:1 /tmp/systemd-private-1a2b-dld.service-Xy/tmp /tmp rw shared:2 - ext4 /dev/sda1 rw
            91 90 8:1 /srv/drop /tmp/drop rw shared:3 - ext4 /dev/sda1 rw
            """
        for path in ["/tmp", "/tmp/a", "/tmp/dropped"] {
            #expect(PlaceInspector.isPrivate(path, mounts: mounts), "\(path)")
        }
        for path in ["/", "/var/tmp/a", "/tmp/drop", "/tmp/drop/a"] {
            #expect(!PlaceInspector.isPrivate(path, mounts: mounts), "\(path)")
        }
        #expect(!PlaceInspector.isPrivate("/tmp/a", mounts: ""))
    }

    @Test("a file is no directory, and none can be made beneath it")
    func kind() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("x", to: "file")
        #expect(inspector.problem(with: file, for: .watch)?.description == "\(file) is not a directory")
        let beneath = inspector.problem(with: file + "/a", for: .downloads(makes: true))
        #expect(beneath?.description.contains("a part of the path is not a directory") == true)
    }

    @Test("a service is told which line of which drop-in shows what ProtectHome hides", arguments: [true, false])
    func hidden(forUploads: Bool) throws {
        var service = inspector
        service.unit = "dld.service"
        let use: PlaceUse = forUploads ? .uploads : .watch
        let problem = try #require(service.problem(with: "/home/nobody-here/x", for: use))
        let setting = forUploads ? "BindReadOnlyPaths" : "BindPaths"
        let lines = "\"ProtectHome=tmpfs\" and \"\(setting)=-/home/nobody-here/x\""
        #expect(problem.description.contains(lines), "\(problem)")
        #expect(problem.description.contains("systemctl edit dld.service"))
    }

    @Test("of a source that the daemon cannot read, the rule that forbids it is named")
    func source() {
        var service = inspector
        service.unit = "dld.service"
        let hidden = service.remedy(forUnreadable: "/home/ann/f", ENOENT)
        #expect(hidden?.hasPrefix("ProtectHome= may hide it from dld.service: put ") == true)
        #expect(service.remedy(forUnreadable: "/tmp/f", ENOENT)?.hasPrefix("PrivateTmp= may hide it") == true)
        #expect(service.remedy(forUnreadable: "/srv/f", ENOENT) == nil)
        let closed = service.remedy(forUnreadable: "/srv/f", EACCES)
        #expect(closed == "give the user \(service.user) permission to read it (chmod, chown or setfacl)")
    }

    @Test("a file of certificates is one that can be read")
    func certificates() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("x", to: "ca.pem")
        #expect(inspector.problem(with: file, for: .certificates) == nil)
        #expect(
            inspector.problem(with: directory.path, for: .certificates)?.description.contains("is not a file") == true)
        let missing = inspector.problem(with: file + "x", for: .certificates)
        #expect(missing?.description == "\(file)x does not exist; name an existing file")
    }

    @Test("a service is told that its own /tmp is another")
    func temporary() throws {
        var service = inspector
        service.unit = "dld.service"
        let problem = try #require(service.problem(with: "/tmp/nobody-made/x", for: .watch))
        #expect(problem.description.contains("name a directory outside of /tmp and /var/tmp"), "\(problem)")
    }

    @Test("a path lies beneath a hidden place by its components")
    func components() {
        #expect(PlaceInspector.isHidden("/home") && PlaceInspector.isHidden("/root/x"))
        #expect(!PlaceInspector.isHidden("/homes/x") && !PlaceInspector.isHidden("/srv/home/x"))
    }
}
