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

    @Test("a name that no URL of an upload can have is named and passed over")
    func names() throws {
        let place = try TemporaryDirectory()
        _ = try place.write("x", to: "good")
        _ = try place.write("x", to: "two\nlines")
        let latin = Array("\(place.path)/".utf8CString.dropLast()) + [CChar(bitPattern: 0xE4), 0]
        let file = open(latin, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        #expect(close(file) == 0)
        let tree = try FileTree(place.path)
        #expect(tree.files == ["good"])
        #expect(
            Set(tree.skipped) == [
                "two\nlines has a control character in its name", "\u{FFFD} has a name that is not UTF-8",
            ])
    }

    @Test("what is no directory is refused")
    func refused() throws {
        let place = try TemporaryDirectory()
        let file = try place.write("x", to: "f")
        for path in [file, place.file("none")] { #expect(throws: Failure.self) { try FileTree(path) } }
    }
}
