import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Directories that are opened once")
struct DirectoryTests {
    private func code(_ body: () throws(TransferError) -> Directory) -> TransferError.Code? {
        do {
            _ = try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("what is missing beneath the root is made, and what is there is used")
    func makes() throws {
        let place = try TemporaryDirectory()
        let made = try Directory.open(root: place.path, subdirectory: "a/b//./c")
        #expect(made.path == place.file("a/b/c"))
        #expect(TemporaryDirectory.names(beneath: place.path).contains("a/b/c"))
        #expect(try Directory.open(root: place.path, subdirectory: "a/b/c").path == made.path)
        #expect(made.path(of: "f") == place.file("a/b/c/f"))
    }

    @Test("a missing root is an error unless it is to be made")
    func root() throws {
        let place = try TemporaryDirectory()
        #expect(code { () throws(TransferError) in try .open(root: place.file("x/y")) } == .io)
        #expect(code { () throws(TransferError) in try .open(root: place.file("x/y"), makesRoot: true) } == nil)
        #expect(TemporaryDirectory.names(beneath: place.path).contains("x/y"))
    }

    @Test("nothing leads out of the root", arguments: ["..", "../x", "a/../../x", "new/../../x", "../../../../etc"])
    func parent(subdirectory: String) throws {
        let place = try TemporaryDirectory()
        let root = try place.makeDirectory("root")
        try place.makeDirectory("root/a")
        #expect(
            code { () throws(TransferError) in try .open(root: root, subdirectory: subdirectory) } == .pathNotAllowed)
        #expect(!TemporaryDirectory.names(beneath: place.path).contains("x"))
        #expect(
            code { () throws(TransferError) in try .open(existing: root, subdirectory: subdirectory) } != nil)
    }

    @Test("a link beneath the root is refused, wherever it leads; one in the root's own path is followed")
    func links() throws {
        let place = try TemporaryDirectory()
        let root = try place.makeDirectory("root")
        try place.makeDirectory("root/real")
        symlink("/etc", place.file("root/out"))
        symlink("real", place.file("root/in"))
        symlink(root, place.file("alias"))
        for name in ["out", "in", "in/deeper", "real/../out"] {
            #expect(code { () throws(TransferError) in try .open(root: root, subdirectory: name) } == .pathNotAllowed)
        }
        #expect(code { () throws(TransferError) in try .open(root: place.file("alias"), subdirectory: "real") } == nil)
    }

    @Test("a file in a directory's place is refused")
    func file() throws {
        let place = try TemporaryDirectory()
        try place.write("x", to: "a")
        #expect(code { () throws(TransferError) in try .open(root: place.path, subdirectory: "a") } == .pathNotAllowed)
        #expect(
            code { () throws(TransferError) in try .open(root: place.path, subdirectory: "a/b") } == .pathNotAllowed)
    }

    @Test("opening what exists makes nothing")
    func existing() throws {
        let place = try TemporaryDirectory()
        #expect(code { () throws(TransferError) in try .open(existing: place.path, subdirectory: "a") } == .io)
        #expect(TemporaryDirectory.names(beneath: place.path).isEmpty)
    }

    @Test("what happens to its path afterwards moves nothing elsewhere")
    func pinned() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path, subdirectory: "a")
        rename(place.file("a"), place.file("b"))
        symlink("/nowhere", place.file("a"))
        try place.write("x", to: "b/file")
        #expect(directory.contains("file"))
        try directory.remove("file")
        #expect(!directory.contains("file"))
        try directory.remove("file")
    }

    @Test("there is room, and what is to stay free is at most a twentieth of the whole")
    func space() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path)
        #expect((directory.freeSpace() ?? 0) > 0)
        #expect(directory.reserve(1000) == 1000)
        #expect(directory.reserve(.max) < .max)
    }
}
