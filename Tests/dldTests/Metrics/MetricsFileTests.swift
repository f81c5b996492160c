import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import dld

@Suite("The text file of the metrics")
struct MetricsFileTests {
    private func content(of path: String) throws -> String {
        String(decoding: try SmallFile.read(path), as: UTF8.self)
    }

    @Test("the file is readable by all, whatever was left over beside it, and nothing else stays")
    func writing() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("old", to: "m.prom")
        _ = try directory.write("left over", to: "m.prom.tmp")
        let file = MetricsFile(path: path)
        #expect(await file.write("new\n") == nil && file.problem == nil)
        #expect(try content(of: path) == "new\n")
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o7777 == 0o644)
        #expect(TemporaryDirectory.names(in: directory.path) == ["m.prom"])
    }

    @Test("a problem is told once, known until a write succeeds, and leaves the old file")
    func problems() async throws {
        let directory = try TemporaryDirectory()
        let file = MetricsFile(path: directory.file("none/m.prom"))
        let problem = try #require(await file.write("x"))
        #expect(problem.contains("No such file or directory") && problem.contains("metrics.textfile"))
        #expect(await file.write("x") == nil && file.problem == problem)
        try directory.makeDirectory("none")
        #expect(await file.write("x") == nil && file.problem == nil)
        // A directory cannot be replaced by a file.
        file.path = try directory.makeDirectory("place")
        #expect(await file.write("x")?.contains("directory") == true)
        #expect(TemporaryDirectory.names(in: directory.path).sorted() == ["none", "place"])
        file.path = nil
        #expect(file.problem == nil)
    }

    @Test("what is not a file stays", arguments: ["pipe", "device"])
    func notAFile(kind: String) async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("m.prom")
        if kind == "pipe" {
            #expect(mkfifo(path, 0o600) == 0)
        } else if mknod(path, S_IFCHR | 0o600, 0x107) != 0 {
            return  // only root can make devices
        }
        let file = MetricsFile(path: path)
        #expect(await file.write("x")?.contains("it is not a regular file") == true)
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG)
    }

    @Test("a file whose path is changed is removed, if this daemon has written it")
    func formerPath() async throws {
        let directory = try TemporaryDirectory()
        let foreign = try directory.write("foreign", to: "foreign.prom")
        let file = MetricsFile(path: foreign)
        file.path = directory.file("a.prom")
        _ = await file.write("x")
        file.path = directory.file("b.prom")
        _ = await file.write("x")
        #expect(TemporaryDirectory.names(in: directory.path).sorted() == ["b.prom", "foreign.prom"])
        file.path = nil
        try await eventually(that: "it is removed") {
            !FileManager.default.fileExists(atPath: directory.file("b.prom"))
        }
    }

    @Test("nothing is written after the last values")
    func end() async throws {
        let directory = try TemporaryDirectory()
        let file = MetricsFile(path: directory.file("m.prom"))
        file.writeLast("last")
        #expect(await file.write("late") == nil)
        #expect(try content(of: directory.file("m.prom")) == "last")
    }

    @Test("a reader never sees a part of the file")
    func atomicity() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("m.prom")
        let file = MetricsFile(path: path)
        let texts = ["a", "b"].map { String(repeating: $0, count: 300_000) + "# EOF\n" }
        _ = await file.write(texts[0])
        let isOver = Mutex(false)
        async let reads = onThread {
            var reads = 0
            while !isOver.withLock({ $0 }) {
                let text = try String(decoding: SmallFile.read(path), as: UTF8.self)
                #expect(texts.contains(text))
                reads += 1
            }
            return reads
        }
        for round in 0..<200 { _ = await file.write(texts[round % 2]) }
        isOver.withLock { $0 = true }
        #expect(try await reads > 0)
    }
}
