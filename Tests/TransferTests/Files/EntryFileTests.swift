import Glibc
import TestSupport
import Testing

@testable import Transfer

@Suite("Files that others leave in a directory")
struct EntryFileTests {
    private func isOther(_ entry: DirectoryEntry) -> Bool {
        if case .other = entry { true } else { false }
    }

    @Test("A4: a plain file is opened; links, directories, FIFOs and files of several names are not")
    func kinds() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path)
        try place.write("content", to: "file")
        guard case .file(let file) = directory.entry("file") else { throw SystemError("opening the file") }
        #expect(file.owner == getuid() && file.identity.size == 7)
        #expect(try file.read(limit: 7) == Array("content".utf8))
        #expect(try file.read(limit: 6) == nil)
        #expect(file.isUnchanged)
        try place.write("content and more", to: "file")
        #expect(symlink("file", place.file("link")) == 0 && mkfifo(place.file("fifo"), 0o600) == 0)
        #expect(isOther(directory.entry("link")) && isOther(directory.entry("fifo")))
        try place.makeDirectory("inner")
        #expect(isOther(directory.entry("inner")))
        #expect(link(place.file("file"), place.file("second")) == 0)
        #expect(isOther(directory.entry("file")))
        guard case .nothing = directory.entry("none") else { throw SystemError("nothing is there") }
        #expect(try directory.names() == ["fifo", "file", "inner", "link", "second"])
    }

    @Test("A40: a file under another program's lease is told at once, and opened when the lease has ended")
    func leased() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path)
        try place.write("content", to: "file")
        let holder = try FileLease(on: place.file("file"))
        let began = ContinuousClock.now
        guard case .leased(let identity) = directory.entry("file") else { throw SystemError("the lease was not seen") }
        #expect(identity.size == 7)
        // The kernel gives the holder 45 s.
        #expect(ContinuousClock.now - began < .seconds(10))
        holder.end()
        guard case .file(let file) = directory.entry("file") else { throw SystemError("opening the file") }
        #expect(file.identity == identity)
    }

    @Test("a writer is seen while the file is open")
    func writers() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path)
        try place.write("content", to: "file")
        guard case .file(let file) = directory.entry("file") else { throw SystemError("opening the file") }
        #expect(file.writers() == EntryFile.Writers.none)
        let writer = open(place.file("file"), O_WRONLY)
        #expect(file.writers() == .some)
        close(writer)
        #expect(file.writers() == EntryFile.Writers.none)
    }

    @Test("nothing is overwritten, neither by making a file nor by moving one")
    func keeps() throws {
        let place = try TemporaryDirectory()
        let directory = try Directory.open(root: place.path)
        let inner = try directory.making("inner")
        #expect(try directory.makeFile("a", holding: "first"))
        #expect(try !directory.makeFile("a", holding: "second"))
        #expect(try directory.move("a", to: inner, as: "b"))
        #expect(try directory.makeFile("a", holding: "third"))
        #expect(try !directory.move("a", to: inner, as: "b"))
        #expect(TemporaryDirectory.names(beneath: place.path).sorted() == ["a", "inner", "inner/b"])
        #expect(symlink("/", place.file("elsewhere")) == 0)
        #expect(throws: TransferError.self) { try directory.making("elsewhere") }
    }
}
