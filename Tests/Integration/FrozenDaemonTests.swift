import Glibc
import TaskModel
import TestSupport
import Testing

/// The daemon's process stands still for a while, as when the machine sleeps.
@Suite("A daemon that is frozen", .serialized, .timeLimit(.minutes(3)))
struct FrozenDaemonTests {
    @Test(
        "F26: transfers that stood still for longer than the stall timeout, with the daemon, go on without a new attempt"
    )
    func stopped() async throws {
        let resource = Resource(size: 3 * mebibyte)
        let names = ["a", "b", "c", "d", "e", "f"]
        let script = names.map { ("/\($0)", [ScriptedAnswer.drip(resource, bytesPerSecond: 300_000)]) }
        let server = try ScriptedServer(Dictionary(uniqueKeysWithValues: script))
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection + "timeouts: {stall: 2s}\n")
        var ids: [TaskID] = []
        for name in names { ids.append(try await daemon.add(server.url("/\(name)"))) }
        for id in ids { try await daemon.state(of: id, "to run") { $0.bytesDone > 0 } }
        let pid = try #require(daemon.pid)
        #expect(kill(pid, SIGSTOP) == 0)
        // The time is what this is about: two and a half times what a connection may be silent.
        try await Task.sleep(for: .seconds(5))
        #expect(kill(pid, SIGCONT) == 0)
        for (id, name) in zip(ids, names) {
            let task = try await daemon.settled(id)
            #expect(task.state == .completed && task.attempts == 1, "\(task)")
            #expect(resource.difference(fromFileAt: daemon.path(name)) == nil)
            #expect(server.requests(for: "/\(name)").count == 1)
        }
        daemon.expectTidy()
    }

    /// Adds to the clock that people set what stands in the file that `CLOCK_STEP` names, in seconds.
    private static let shim = """
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>

        static volatile long *step;

        __attribute__((constructor)) static void begin(void) {
            const char *path = getenv("CLOCK_STEP");
            int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            void *place = fd < 0 ? MAP_FAILED : mmap(0, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
            if (place != MAP_FAILED) step = place;
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = syscall(SYS_clock_gettime, clock, time);
            if (result == 0 && clock == CLOCK_REALTIME && step) time->tv_sec += *step;
            return result;
        }

        """

    @Test(
        "F25: a clock that jumps a day ahead and two back costs running transfers nothing, and failures no storm",
        .enabled(if: PreloadedShim.isPossible, "there is no C compiler here"))
    func clockSteps() async throws {
        let shim = try #require(try await PreloadedShim.make(Self.shim))
        let resource = Resource(size: 2 * mebibyte)
        let small = Resource(size: 10)
        let server = try ScriptedServer([
            "/a": [.drip(resource, bytesPerSecond: 400_000)], "/b": [.drip(resource, bytesPerSecond: 400_000)],
            "/c": [.status(503, headers: ["Retry-After: 1"]), .serve(small)],
            "/d": [.status(503), .status(503), .serve(small)],
        ])
        let daemon = try DaemonProcess(configuration: quickRetries + oneConnection + "timeouts: {stall: 2s}\n")
        let clock = try daemon.directory.write(String(repeating: "\0", count: 8), to: "clock")
        func step(to seconds: Int64) throws {
            let descriptor = open(clock, O_WRONLY | O_CLOEXEC)
            defer { close(descriptor) }
            try #require(withUnsafeBytes(of: seconds) { pwrite(descriptor, $0.baseAddress, 8, 0) } == 8)
        }
        try await daemon.start(under: ["env", "CLOCK_STEP=\(clock)", "LD_PRELOAD=\(shim.path)"])
        let ids = [try await daemon.add(server.url("/a")), try await daemon.add(server.url("/b"))]
        for id in ids { try await daemon.state(of: id, "to run") { $0.bytesDone > 0 } }
        try step(to: 86_400)
        let ahead = try await daemon.add(server.url("/c"))
        // The shim is at work: what is added now was added tomorrow.
        let created = try daemon.task(ahead).createdAt
        let earlier = try daemon.task(ids[0]).createdAt
        #expect(created - earlier > 80_000_000)
        #expect(try await daemon.settled(ahead).state == .completed)
        try step(to: -86_400)
        let back = try await daemon.add(server.url("/d"))
        #expect(try await daemon.settled(back).state == .completed)
        for (id, name) in zip(ids, ["a", "b"]) {
            let task = try await daemon.settled(id)
            #expect(task.state == .completed && task.attempts == 1, "\(task)")
            #expect(resource.difference(fromFileAt: daemon.path(name)) == nil)
        }
        #expect(["/a", "/b", "/c", "/d"].map { server.requests(for: $0).count } == [1, 1, 2, 3])
        daemon.expectTidy()
    }
}
