import Glibc
import TestSupport
import Testing

@testable import dlctl

@Suite("The files beneath a directory")
struct FileTreeTests {
    @Test("files come in order of their names; links and special files are named and passed over")
    func tree() throws {
        let place = try TemporaryDirectory()
        for path in ["b", "a/deep"] { _ = try place.makeDirectory(path) }
        for path in ["z", "b/2", "a/1", "a/deep/.hidden"] { _ = try place.write("x", to: path) }
        #expect(symlink("z", place.file("link")) == 0 && symlink("a", place.file("b/directory")) == 0)
        #expect(mkfifo(place.file("pipe"), 0o600) == 0)
        let tree = try FileTree(place.path)
        #expect(tree.files == ["a/1", "a/deep/.hidden", "b/2", "z"])
        #expect(
            tree.skipped == [
                "b/directory is a symbolic link", "link is a symbolic link", "pipe is a special file",
            ])
    }

    @Test("what is no directory is refused")
    func refused() throws {
        let place = try TemporaryDirectory()
        let file = try place.write("x", to: "f")
        for path in [file, place.file("none")] { #expect(throws: Failure.self) { try FileTree(path) } }
    }
}
