import CLinux
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

    @Test("where the kernel has no openat2, steps of one component follow no link and lead nowhere outside either")
    func stepwise() throws {
        let place = try TemporaryDirectory()
        _ = try Directory.open(root: place.path, subdirectory: "a/b")
        #expect(symlink("a", place.file("link")) == 0)
        let root = open(place.path, O_RDONLY | O_DIRECTORY)
        defer { close(root) }
        func attempt(_ path: String, _ flags: Int32) -> Int32 {
            let descriptor = linux_openat_stepwise(root, path, flags, 0o600)
            guard descriptor >= 0 else { return errno }
            close(descriptor)
            return 0
        }
        #expect(attempt("a/b/file", O_RDWR | O_CREAT | O_EXCL) == 0)
        #expect(attempt("a//b/./file", O_RDONLY) == 0)
        #expect(attempt("a/b", O_RDONLY | O_DIRECTORY) == 0)
        #expect(attempt("link", O_RDONLY) == ELOOP)
        #expect(attempt("link/b/file", O_RDONLY) == ENOTDIR)
        #expect(attempt("a/../a/b/file", O_RDONLY) == EXDEV)
        #expect(attempt("/etc/passwd", O_RDONLY) == EXDEV)
        #expect(attempt("a/none", O_RDONLY) == ENOENT)
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

    @Test("A3: a link beneath the root is refused, wherever it leads; one in the root's own path is followed")
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
        #expect(Directory.reserve(256 << 20, of: 20 << 20) == 1 << 20 && Directory.reserve(1, of: nil) == 0)
    }

    @Test("an entry moves to another directory, replaces what is there only where it may, and says where it cannot")
    func moves() throws {
        let place = try TemporaryDirectory()
        let (old, new) = (
            try Directory.open(root: place.path, subdirectory: "old"),
            try Directory.open(root: place.path, subdirectory: "new")
        )
        #expect(try old.move("f", to: new, replaces: false) == false, "there is none")
        _ = try place.write("first", to: "old/f")
        #expect(try old.move("f", to: new, replaces: false) && !old.contains("f"))
        _ = try place.write("second", to: "old/f")
        var refusal: Int32?
        do throws(TransferError) {
            _ = try old.move("f", to: new, replaces: false)
        } catch {
            refusal = error.systemError
        }
        #expect(refusal == EEXIST && old.contains("f") && new.sizeOfFile("f") == 5)
        #expect(try old.move("f", to: new, replaces: true) && new.sizeOfFile("f") == 6)
        let memory = try Directory.open(root: "/dev/shm")
        guard memory.device != new.device else { return }
        do throws(TransferError) {
            _ = try new.move("f", to: memory, replaces: false)
        } catch {
            refusal = error.systemError
        }
        #expect(refusal == EXDEV && new.contains("f"))
    }

    @Test("what is missing is made in the directory that was opened, wherever its name leads by now")
    func makesWhereOpened() throws {
        let place = try TemporaryDirectory()
        let opened = try Directory.open(root: try place.makeDirectory("a"))
        try #require(rename(place.file("a"), place.file("b")) == 0)
        _ = try place.makeDirectory("a")
        let made = try #require(try opened.make(["c", "d"]))
        #expect(made.inode == Inode.at(place.file("b/c/d")) && access(place.file("a/c"), F_OK) != 0)
        #expect(try opened.make(["c"]) == nil)
    }
}
