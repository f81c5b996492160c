import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import dlctl

@Suite("The file of a backup")
struct BackupFileTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: place.file(name))))
    }

    private func failure(_ body: () throws -> Void) -> Failure? {
        do {
            try body()
            return nil
        } catch {
            return error as? Failure
        }
    }

    @Test("the file has its name only when it is complete, and is its owner's alone")
    func publishing() throws {
        let file = try BackupFile(place.file("a"), replacing: false)
        try file.append([1, 2, 3])
        try file.append([4, 5, 6])
        #expect(access(place.file("a"), F_OK) != 0)
        try file.publish()
        #expect(try bytes("a") == [1, 2, 3, 4, 5, 6] && file.size == 6)
        var status = stat()
        try #require(stat(place.file("a"), &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o600)
        #expect(TemporaryDirectory.names(beneath: place.path) == ["a"])
    }

    @Test("nothing is left of a file that was not completed")
    func abandoned() throws {
        do {
            let file = try BackupFile(place.file("a"), replacing: false)
            try file.append([1])
        }
        #expect(TemporaryDirectory.names(beneath: place.path) == [])
    }

    @Test("an existing file is replaced only on request, and never by half a file")
    func existing() throws {
        _ = try place.write("old", to: "a")
        let refusal = failure { _ = try BackupFile(place.file("a"), replacing: false) }
        #expect(refusal?.status == .failed && refusal?.code == "name-conflict")
        #expect(refusal?.message.contains("--force") == true)
        do {
            let abandoned = try BackupFile(place.file("a"), replacing: true)
            try abandoned.append([1])
        }
        #expect(try bytes("a") == Array("old".utf8))
        let file = try BackupFile(place.file("a"), replacing: true)
        try file.append([1])
        try file.publish()
        #expect(try bytes("a") == [1])
        #expect(TemporaryDirectory.names(beneath: place.path) == ["a"])
    }

    @Test("a file that appears in the meantime is kept")
    func appearing() throws {
        let file = try BackupFile(place.file("a"), replacing: false)
        try file.append([1])
        _ = try place.write("new", to: "a")
        #expect(failure { try file.publish() }?.code == "name-conflict")
        #expect(try bytes("a") == Array("new".utf8))
    }

    @Test("what is no regular file is never replaced", arguments: ["directory", "fifo", "link"])
    func special(kind: String) throws {
        let path = place.file("a")
        switch kind {
        case "directory": _ = try place.makeDirectory("a")
        case "fifo": try #require(mkfifo(path, 0o600) == 0)
        default: try #require(symlink("/etc/passwd", path) == 0)
        }
        #expect(failure { _ = try BackupFile(path, replacing: true) }?.code == "name-conflict")
        #expect(TemporaryDirectory.names(beneath: place.path) == ["a"])
    }

    @Test(
        "a path that cannot be a new file is refused, with the argument's name",
        arguments: ["", "-", "/", ".", "..", "/nonexistent/a", "/proc/a"])
    func unusable(path: String) throws {
        let failure = failure { _ = try BackupFile(path, replacing: false) }
        #expect(failure?.field == "file", "\(path)")
    }

    @Test("a full disk is told, and leaves nothing", .enabled(if: getuid() == 0, "needs mount"))
    func full() async throws {
        let small = try place.makeDirectory("small")
        let disk = try await Mount.tmpfs(at: small, bytes: 1 << 20)
        do {
            let file = try BackupFile(small + "/a", replacing: false)
            let part = [UInt8](repeating: 1, count: 256 << 10)
            #expect(failure { for _ in 0..<8 { try file.append(part) } }?.code == "disk-full")
        }
        #expect(TemporaryDirectory.names(beneath: small) == [])
        _ = consume disk
    }
}
