import CLinux
import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Files that are passed by others", .timeLimit(.minutes(1)))
struct PassedFileTests {
    private func unfitness(
        of path: String, isTrusted: Bool = false, flags: Int32 = 0
    ) throws -> PassedFile.Unfitness? {
        let raw = open(path, O_RDONLY | O_CLOEXEC | flags)
        guard raw >= 0 else { throw SystemError("open \(path)") }
        do throws(PassedFile.Unfitness) {
            try PassedFile(taking: raw).check(isTrusted: isTrusted)
            return nil
        } catch {
            return error
        }
    }

    @Test("A42: a file that is open with O_DIRECT is refused for that, whoever passes it")
    func direct() throws {
        // A memory file system may not support it.
        let directory = try TemporaryDirectory()
        let path = try directory.write("x", to: "file")
        #expect(try unfitness(of: path) == nil)
        for isTrusted in [true, false] {
            #expect(try unfitness(of: path, isTrusted: isTrusted, flags: LINUX_O_DIRECT) == .direct)
        }
    }

    @Test(
        "A18: a file of a file system that its user mounted for herself is not touched",
        .enabled(if: geteuid() == 0, "only root can mount here"))
    func foreignMount() async throws {
        let directory = try TemporaryDirectory()
        let (shared, place) = (directory.file("shared"), try directory.makeDirectory("place"))
        _ = try directory.write("x", to: "shared")
        let child = try ChildProcess([
            "unshare", "--mount", "--propagation", "private", "sh", "-ec",
            "mount -t tmpfs tmpfs \(place); echo y > \(place)/own; touch \(directory.path)/ready; exec sleep 60",
        ])
        defer { child.end() }
        try await eventually(that: "it is mounted") { access("\(directory.path)/ready", F_OK) == 0 }
        let root = "/proc/\(child.pid)/root"
        #expect(try unfitness(of: root + place + "/own") == .onAnotherMachine)
        #expect(try unfitness(of: root + place + "/own", isTrusted: true) == nil)
        // The same file systems have other mount ids there.
        #expect(try unfitness(of: root + shared) == nil)
        #expect(try unfitness(of: shared) == nil)
    }

    @Test(
        "a file on a disk is taken though its file system is hidden from the daemon, and not what lies above one",
        .enabled(if: geteuid() == 0, "only root can mount here"), arguments: ["ext4", "btrfs"])
    func hiddenDisk(kind: String) async throws {
        let directory = try TemporaryDirectory()
        let (place, image) = (try directory.makeDirectory("place"), directory.file("image"))
        let child = try ChildProcess([
            "unshare", "--mount", "--propagation", "private", "sh", "-ec",
            """
            truncate -s 128M \(image); mkfs.\(kind) -q \(image); mount -o loop \(image) \(place); cd \(place)
            mkdir upper work above; echo y > own
            mount -t overlay -o lowerdir=\(place),upperdir=\(place)/upper,workdir=\(place)/work overlay above
            touch \(directory.path)/ready; exec sleep 60
            """,
        ])
        defer { child.end() }
        try await eventually(that: "it is mounted") { access("\(directory.path)/ready", F_OK) == 0 }
        let root = "/proc/\(child.pid)/root"
        #expect(try unfitness(of: root + place + "/own") == nil)
        #expect(try unfitness(of: root + place + "/above/own") == .onAnotherMachine)
    }
}
