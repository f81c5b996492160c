import TestSupport
import Testing

/// The library's costs under load, measured in its own process.
@Suite("The library under load", .serialized)
struct TransferLoadTests {
    /// Returns the figures that the program prints, by their names.
    private func figures(_ mode: String, _ url: String, _ count: Int) async throws -> [String: Int] {
        figures(try await run([try DaemonProcess.program("TransferLoad"), mode, url, String(count)]))
    }

    private func figures(_ outcome: Outcome) -> [String: Int] {
        #expect(outcome.succeeded, "\(outcome.output)\(outcome.error)")
        return Dictionary(
            outcome.lines.compactMap { line in
                let words = line.split(separator: " ")
                return words.count == 2 ? Int(words[1]).map { (String(words[0]), $0) } : nil
            }, uniquingKeysWith: { $1 })
    }

    @Test("F70: after 20,000 small requests memory is within 10 % of what it was after 1,000, and nothing is left")
    func small() async throws {
        let nginx = try await Nginx([.custom("/small", "return 200 'hello';")])
        let figures = try await figures("small", nginx.url("/small"), 20_000)
        let (early, late) = try (#require(figures["memory-after-1000"]), #require(figures["memory-after-all"]))
        #expect(late * 10 <= early * 11, "\(early) KiB, then \(late) KiB")
        #expect(figures["failures"] == 0 && figures["requests-left"] == 0 && figures["sockets-left"] == 0)
    }

    @Test("5,000 open transfers cost less than 32 KiB each, and cancelling them all less than a second")
    func open() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 64)])
        try nginx.publish(Resource(size: 4 << 20), as: "f")
        let figures = try await figures("open", nginx.url("/slow/f"), 5_000)
        let (each, cancel) = try (#require(figures["bytes-each"]), #require(figures["cancel-milliseconds"]))
        #expect(each <= 32 * 1024, "\(each) bytes each")
        #expect(cancel < 1000, "\(cancel) ms")
        #expect(figures["handlers"] == 5_100 && figures["requests-left"] == 0 && figures["sockets-left"] == 0)
    }

    @Test("a chunk's way from socket to file takes no memory and no mutex: only checkpoints and blocks do")
    func chunks() async throws {
        let nginx = try await Nginx()
        let resource = Resource(size: 256 << 20)
        try nginx.publish(resource, as: "f")
        let directory = try TemporaryDirectory()
        let outcome = try await run([
            try DaemonProcess.program("TransferLoad"), "file", nginx.url("/f"), directory.path,
        ])
        let figures = figures(outcome)
        #expect(resource.difference(fromFileAt: "\(directory.path)/file") == nil)
        let (reads, writes) = try (#require(figures["reads"]), #require(figures["writes"]))
        #expect(reads >= 200, "\(reads) reads")
        // One checkpoint for each 32 MiB, and each may allocate a few times; so may each block of 1 MiB that is handed to
        // another thread, on file systems with writes that bypass the page cache.
        let handed = writes >= 500 ? 0 : 256
        let (allocations, mutexes) = try (#require(figures["allocations"]), #require(figures["mutexes"]))
        #expect(
            allocations <= 7 * 4 + handed * 25 && mutexes <= 7 * 4,
            "\(allocations) allocations, \(mutexes) mutexes, \(writes) writes")
    }
}
