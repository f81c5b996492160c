import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// A daemon process that is stopped for a while, as when the machine is suspended.
@Suite("A daemon that is frozen", .serialized, .timeLimit(.minutes(3)))
struct FrozenDaemonTests {
    @Test(
        "F26: transfers that stood still, with the daemon, longer than the stall timeout go on without a new attempt"
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
        // The duration matters here: it is two and a half times the stall time-out.
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

    /// A command of each kind, without waiting.
    private static let commands = [
        "status", "list", "show 1", "add http://127.0.0.1:1/x", "pause 1", "pause --all --yes", "resume 1", "cancel 1",
        "retry failed", "remove 1", "set 1 --limit 5K", "move 1 --first", "limit --download 1M", "reload", "backup b",
        "queue list", "queue apply - --batch b", "events", "rpc daemon.status", "shutdown",
        "upload dld.yaml http://127.0.0.1:1/", "list completed", "wait 1", "wait --all",
        "add --wait http://127.0.0.1:1/x", "watch 1",
    ]

    @Test("every command gives a daemon that does not answer up after --timeout, with 75 and what to do")
    func mute() async throws {
        let daemon = try await DaemonProcess.started()
        _ = try await daemon.add("--paused", "http://127.0.0.1:1/a")
        let pid = try #require(daemon.pid)
        #expect(kill(pid, SIGSTOP) == 0)
        for command in Self.commands {
            let words = command.split(separator: " ").map(String.init)
            let began = ContinuousClock.now
            let outcome = try await daemon.dlctl(
                ["--timeout", "300ms"] + words, input: "downloads: [http://127.0.0.1:1/b]\n", within: .seconds(20))
            #expect(outcome.status == .exited(75) && outcome.output.isEmpty, "\(command): \(outcome)")
            #expect(outcome.error.contains("--timeout") || outcome.error.contains("timeout expired"), "\(outcome)")
            #expect(ContinuousClock.now - began < .seconds(10), "\(command)")
        }
        #expect(kill(pid, SIGCONT) == 0)
        #expect(try await daemon.dlctl("status").succeeded)
    }

    /// The source of a preloaded library that adds to the wall clock the number of seconds in the file named by
    /// `CLOCK_STEP`.
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
        // The shim works: the new task was created tomorrow by the wall clock.
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

    /// The source of ``shim`` with simulated notifications of a set clock (timerfd_create(2),
    /// `TFD_TIMER_CANCEL_ON_SET`): one for each byte in the FIFO that `CLOCK_SIGNS` names.
    private static let tellingShim =
        shim + """
            #include <errno.h>
            #include <sys/timerfd.h>

            static int signs = -1;

            int timerfd_create(int clock, int flags) {
                const char *path = getenv("CLOCK_SIGNS");
                if (clock != CLOCK_REALTIME || !path) return syscall(SYS_timerfd_create, clock, flags);
                return signs = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
            }

            int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
                return fd == signs ? 0 : syscall(SYS_timerfd_settime, fd, flags, value, old);
            }

            ssize_t read(int fd, void *bytes, size_t count) {
                ssize_t got = syscall(SYS_read, fd, bytes, fd == signs ? 1 : count);
                if (fd != signs || got <= 0) return got;
                errno = ECANCELED;
                return -1;
            }

            """

    @Test(
        "F25: hours ahead and back, waits for retries keep their length, schedules go by the clock, limits hold",
        .enabled(if: PreloadedShim.isPossible, "there is no C compiler here"), arguments: [5, -5] as [Int64])
    func hours(hours: Int64) async throws {
        let shim = try #require(try await PreloadedShim.make(Self.tellingShim))
        let (small, limited) = (Resource(size: 10), Resource(size: 2 * mebibyte))
        // Each server is its own host, so that the back-off of one does not delay the other.
        let server = try ScriptedServer(["/waits": [.status(503, headers: ["Retry-After: 6"]), .serve(small)]])
        let other = try ScriptedServer([
            "/limited": [.serve(limited)], "/soon": [.serve(small)], "/late": [.serve(small)],
        ])
        let daemon = try DaemonProcess(
            configuration: "retry: {attempts: 3, base-delay: 50ms, max-delay: 60s}\n" + oneConnection)
        let clock = try daemon.directory.write(String(repeating: "\0", count: 8), to: "clock")
        let signs = daemon.directory.file("signs")
        try #require(mkfifo(signs, 0o600) == 0)
        try await daemon.start(
            under: ["env", "CLOCK_STEP=\(clock)", "CLOCK_SIGNS=\(signs)", "LD_PRELOAD=\(shim.path)"])
        func time(in hours: Double) -> String { Date.now.addingTimeInterval(hours * 3600).formatted(.iso8601) }
        let soon = try await daemon.add("--start-at", time(in: 1), other.url("/soon"))
        let late = try await daemon.add("--start-at", time(in: 10), other.url("/late"))
        let begin = ContinuousClock.now
        let limitedID = try await daemon.add("--limit", "400K", other.url("/limited"))
        let waits = try await daemon.add(server.url("/waits"))
        try await daemon.state(of: waits, "to wait") { $0.state == .waiting && $0.notBefore != nil }
        try await daemon.state(of: limitedID, "to run") { $0.bytesDone > 0 }

        let descriptor = open(clock, O_WRONLY | O_CLOEXEC)
        defer { close(descriptor) }
        try #require(withUnsafeBytes(of: hours * 3600) { pwrite(descriptor, $0.baseAddress, 8, 0) } == 8)
        // A pipe with a reader accepts one byte at once.
        let sign = open(signs, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        defer { close(sign) }
        try #require(write(sign, "!", 1) == 1)

        let limitedTask = try await daemon.settled(limitedID)
        #expect(limitedTask.state == .completed && limitedTask.attempts == 1, "\(limitedTask)")
        #expect(begin.duration(to: .now) > .seconds(3))
        #expect(limited.difference(fromFileAt: daemon.path("limited")) == nil)
        #expect(try await daemon.settled(waits, within: .seconds(20)).state == .completed)
        #expect(begin.duration(to: .now) > .seconds(5.5))
        #expect(server.requests().count == 2)
        if hours > 1 {
            #expect(try await daemon.settled(soon, within: .seconds(10)).state == .completed)
        } else {
            #expect(try daemon.task(soon).state == .waiting)
        }
        #expect(try daemon.task(late).state == .waiting)
        #expect(other.requests(for: "/late").isEmpty)
        #expect(other.requests(for: "/soon").count == (hours > 1 ? 1 : 0))
        daemon.expectTidy()
    }
}
