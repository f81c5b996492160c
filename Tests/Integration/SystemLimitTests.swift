import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// System limits and calls that do less than asked: few descriptors, short writes, interrupted calls.
@Suite("System limits", .serialized, .timeLimit(.minutes(3)))
struct SystemLimitTests {
    /// A reference to a connection, so that an array can hold it.
    private final class Client {
        private let socket: StreamSocket

        init(_ socket: consuming StreamSocket) { self.socket = socket }
    }

    /// Starts a server with the files `/slow/f0`, `/slow/f1` and so on, which it sends slowly.
    ///
    /// - Returns: the server, and the content of each file.
    private func slowFiles(_ count: Int) async throws -> (nginx: Nginx, resource: Resource) {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 200_000)])
        let resource = Resource(size: 150_000)
        for index in 0..<count { try nginx.publish(resource, as: "f\(index)") }
        return (nginx, resource)
    }

    @Test("F18: with 64 descriptors and many tasks the daemon answers, does not spin, and completes them all")
    func descriptors() async throws {
        let (nginx, resource) = try await slowFiles(60)
        let daemon = try await DaemonProcess.started(
            """
            retry: {attempts: 10, base-delay: 200ms, max-delay: 1s}
            limits: {active-tasks: 60, connections-per-host: 60}

            """, prefix: ["prlimit", "--nofile=64:64"])
        let begun = ContinuousClock.now
        let added = try await daemon.dlctl(["add"] + (0..<60).map { nginx.url("/slow/f\($0)") })
        #expect(added.succeeded, "\(added.error)")
        let ids = added.lines.compactMap { Int64($0) }.map { TaskID($0) }
        try #require(ids.count == 60)
        // Clients that take all remaining descriptors and stay connected: libdispatch, which inspects its threads once
        // a second, must still find a descriptor.
        var clients = try (0..<60).map { _ in try Client(StreamSocket(path: daemon.socket)) }
        try await Task.sleep(for: .seconds(3))
        #expect(daemon.isRunning)
        #expect(clients.count == 60)
        clients = []
        var slowest = Duration.zero
        try await eventually(that: "all have ended", within: .seconds(90), every: .milliseconds(100)) {
            let asked = ContinuousClock.now
            let tasks = try daemon.tasks()
            slowest = max(slowest, ContinuousClock.now - asked)
            return tasks.allSatisfy(\.isSettled)
        }
        let time = ContinuousClock.now - begun
        // Other tests run beside this one, and this daemon is a debug build.
        #expect(slowest < .seconds(5))
        #expect(daemon.processorTime < time / 2 + .seconds(2))
        // Waiting clients cost no processor time.
        let before = daemon.processorTime
        clients = try (0..<60).map { _ in try Client(StreamSocket(path: daemon.socket)) }
        try await Task.sleep(for: .seconds(1))
        #expect(daemon.processorTime - before < .milliseconds(400))
        #expect(clients.count == 60)
        clients = []
        try await eventually(that: "it answers again", within: .seconds(20)) { daemon.answers }
        var invariants = Invariants(daemon, context: "F18")
        invariants.wishes = zip(ids, 0...).map { .init(id: $0, resource: resource, names: ["f\($1)"]) }
        try await invariants.finish()
    }

    /// The source of a preloaded library that shortens reads and writes of regular files, and interrupts every third
    /// call before it begins. Sockets are left alone: such short calls occur on them without it.
    private static let shim = """
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/stat.h>
        #include <unistd.h>

        static atomic_uint calls;

        static int tampers(int fd, size_t *count) {
            struct stat status;
            int before = errno;
            int is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
            errno = before;
            if (!is_file) return 0;
            unsigned number = atomic_fetch_add(&calls, 1);
            if (number % 3 == 2) {
                errno = EINTR;
                return 1;
            }
            if (*count > 1) *count = number % 2 ? *count / 2 : (*count < 4000 ? *count : 4000);
            return 0;
        }

        #define REAL(type, name, ...) \\
            static type (*real)(__VA_ARGS__); \\
            if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);

        ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
            REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
            return tampers(fd, &count) ? -1 : real(fd, bytes, count, offset);
        }

        ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
            return pwrite64(fd, bytes, count, offset);
        }

        ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset) {
            REAL(ssize_t, pread64, int, void *, size_t, off64_t)
            return tampers(fd, &count) ? -1 : real(fd, bytes, count, offset);
        }

        ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
            return pread64(fd, bytes, count, offset);
        }

        /* Of what is beneath downloads alone: SQLite takes an interrupted sync for a failed one, and Linux interrupts
           none on a disk. */
        static int is_download(int fd) {
            char link[64], path[4096];
            snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
            ssize_t count = readlink(link, path, sizeof path - 1);
            if (count < 0) return 0;
            path[count] = 0;
            return strstr(path, "/downloads") != 0;
        }

        static int interrupts(int fd) {
            static atomic_uint number;
            if (!is_download(fd) || atomic_fetch_add(&number, 1) % 2) return 0;
            errno = EINTR;
            return 1;
        }

        int fdatasync(int fd) {
            REAL(int, fdatasync, int)
            return interrupts(fd) ? -1 : real(fd);
        }

        int fsync(int fd) {
            REAL(int, fsync, int)
            return interrupts(fd) ? -1 : real(fd);
        }

        """

    @Test("F18: files that a slow disk has still to publish take no descriptors that other tasks need", .needsStrace)
    func descriptorsOfEndingTasks() async throws {
        let nginx = try await Nginx()
        for index in 0..<300 { try nginx.publish(Resource(size: 4_000), as: "f\(index)") }
        let daemon = try await DaemonProcess.started(
            quickRetries + "disk: {min-free: 0}\n", prefix: ["prlimit", "--nofile=256:256"])
        let fault = try await Injection("syncfs", .delay(400)).attach(to: #require(daemon.pid))
        let added = try await daemon.dlctl(["add", "--wait"] + (0..<300).map { nginx.url("/f\($0)") })
        #expect(added.succeeded, "\(added.error)")
        try await fault.detach()
        let attempts = try daemon.tasks().map(\.attempts)
        #expect(attempts.count == 300 && attempts.allSatisfy { $0 == 1 }, "\(attempts)")
    }

    @Test("A19: with 128 descriptors subscribers, a webhook and a backup get what they wait for beside many tasks")
    func descriptorsOfObservers() async throws {
        let receiver = try ScriptedServer(["/hook": [.status(200)]])
        let (nginx, _) = try await slowFiles(40)
        let daemon = try await DaemonProcess.started(
            """
            retry: {attempts: 10, base-delay: 200ms, max-delay: 1s}
            limits: {active-tasks: 40, connections-per-host: 40}
            notify: [{url: '\(receiver.url("/hook"))', on: [completed]}]

            """, prefix: ["prlimit", "--nofile=128:128"])
        // Subscribers take what descriptors clients may have.
        let subscribe = #"{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"types":["completed"]}}"#
        let unread = try (0..<40).map { _ in
            let socket = try StreamSocket(path: daemon.socket)
            socket.send(subscribe.utf8 + [0x0A])
            return Client(socket)
        }
        let added = try await daemon.dlctl(["add"] + (0..<40).map { nginx.url("/slow/f\($0)") })
        #expect(added.succeeded, "\(added.error)")
        let backup = try await daemon.dlctl("backup", daemon.directory.file("copy"))
        #expect(backup.succeeded, "\(backup.error)")
        try await eventually(that: "all have completed", every: .milliseconds(100)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        try await eventually(that: "the receiver has each event") { receiver.requests().count >= 40 }
        let events = try await daemon.dlctl("events", "--after", "0", "--on", "completed", "--json")
        #expect(events.lines.count == 40, "\(events)")
        #expect(unread.count == 40)
        daemon.expectTidy()
    }

    @Test(
        "F19: short writes, short reads and interrupted calls make a longer way to the same file",
        .enabled(if: PreloadedShim.isPossible, "there is no C compiler here"))
    func shortWrites() async throws {
        let shim = try #require(try await PreloadedShim.make(Self.shim))
        let resource = Resource(size: 9 * mebibyte + 17)
        let server = try ScriptedServer([
            "/f": [.drip(resource, after: 5 * mebibyte, bytesPerSecond: 1_000_000), .serve(resource)],
            "/g": [.serve(resource)],
        ])
        let daemon = try DaemonProcess(configuration: oneConnection + ShortSet.configuration)
        try await daemon.start(under: ["env", "LD_PRELOAD=\(shim.path)"])
        let isLoaded = try await run(["grep", "-q", shim.path, "/proc/\(#require(daemon.pid))/maps"]).succeeded
        #expect(isLoaded)
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to begin") { $0.bytesDone > 4 * mebibyte }
        #expect(try await daemon.dlctl("pause", id.description).succeeded)
        #expect(try await daemon.dlctl("resume", id.description).succeeded)
        let sum = try await checksum(of: resource)
        let other = try await daemon.add("--checksum", "sha-256:\(sum)", server.url("/g"))
        var invariants = Invariants(daemon, context: "F19")
        invariants.wishes = [
            .init(id: id, resource: resource, names: ["f"]), .init(id: other, resource: resource, names: ["g"]),
        ]
        let refetched = try await invariants.finish()
        #expect(refetched < 2 * mebibyte)
        #expect(try daemon.task(other).verified)
        try await daemon.kill()
        try await invariants.atRest()
    }
}

/// Returns the SHA-256 of a resource, as `sha256sum` prints it.
func checksum(of resource: Resource) async throws -> String {
    let directory = try TemporaryDirectory()
    try resource.write(to: directory.file("f"))
    return String(try await run(["sha256sum", directory.file("f")]).output.prefix(64))
}
