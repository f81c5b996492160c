import FoundationEssentials
import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

/// A user with write access to the download directory who swaps its entries while the daemon writes to it.
@Suite("Places that are swapped in a race", .serialized, .timeLimit(.minutes(3)))
struct RacedPlaceTests {
    /// A thread that swaps a directory for a link to another place, and final names for links to a file and to nothing
    /// there.
    private final class Racer: Sendable {
        private let isOver = Mutex(false)
        let swaps = Mutex(0)

        init(beneath downloads: String, towards outside: String) throws {
            try startThread { [self] in
                var round = 0
                while !isOver.withLock({ $0 }) {
                    round += 1
                    let component = "\(downloads)/sub"
                    // If either call fails, the next round repeats it.
                    _ = rename(component, "\(downloads)/aside")
                    _ = symlink(outside, component)
                    let name = "\(downloads)/name\(round % 40)"
                    _ = symlink(round % 2 == 0 ? "\(outside)/victim" : "\(outside)/new\(round % 40)", name)
                    usleep(300)
                    _ = unlink(component)
                    _ = rename("\(downloads)/aside", component)
                    var status = stat()
                    if lstat(name, &status) == 0, status.st_mode & S_IFMT == S_IFLNK { _ = unlink(name) }
                    usleep(300)
                    swaps.withLock { $0 += 1 }
                }
            }
        }

        func end() { isOver.withLock { $0 = true } }
    }

    @Test("A3: whatever of a path is swapped for a link while files arrive, nothing appears or changes elsewhere")
    func racer() async throws {
        let resource = Resource(size: 20_000)
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<40).map { ("/name\($0)", [ScriptedAnswer.serve(resource)]) }))
        let daemon = try await DaemonProcess.started(
            "retry: {attempts: 3, base-delay: 20ms, max-delay: 50ms}\n")
        let outside = try daemon.directory.makeDirectory("outside")
        try daemon.directory.write("untouched", to: "outside/victim")
        _ = try daemon.directory.makeDirectory("downloads/sub/deep")
        let racer = try Racer(beneath: daemon.downloads, towards: outside)
        defer { racer.end() }
        var ids: [TaskID] = []
        for conflict in ["rename", "overwrite", "rename", "overwrite"] {
            for place in ["sub", "sub/deep", "."] {
                let urls = (0..<40).map { server.url("/name\($0)") }
                let added = try await daemon.dlctl(["add", "-d", place, "--on-conflict", conflict] + urls)
                // A directory that is a link at this moment may be refused at once.
                ids += added.lines.compactMap { Int64($0).map { TaskID($0) } }
            }
        }
        #expect(ids.count >= 160, "\(ids.count)")
        var completed = 0
        for id in ids where try await daemon.settled(id).state == .completed { completed += 1 }
        racer.end()
        #expect(completed >= 160, "\(completed) of \(ids.count)")
        #expect(racer.swaps.withLock { $0 } > 100)
        #expect(TemporaryDirectory.names(beneath: outside) == ["victim"])
        #expect(try text(of: outside + "/victim") == "untouched")
        #expect(daemon.isRunning)
    }
}
