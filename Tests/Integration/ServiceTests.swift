import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The daemon's interface to service managers and shells.
@Suite("The service", .serialized, .timeLimit(.minutes(1)))
struct ServiceTests {
    @Test("F24: a second daemon on one state directory is refused with 75 and told who is first")
    func second() async throws {
        let daemon = try await DaemonProcess.started()
        let other = try DaemonProcess(stateDirectory: daemon.stateDirectory)
        let child = try other.launch()
        #expect(try await child.wait() == .exited(75))
        let first = try #require(daemon.pid)
        #expect(child.standardError.contains("\(first)"), "\(child.standardError)")
        #expect(daemon.answers)
    }

    @Test("a socket that a killed daemon left behind is replaced")
    func staleSocket() async throws {
        let daemon = try await DaemonProcess.started()
        try await daemon.kill()
        #expect(exists(daemon.socket))
        try await daemon.start()
        #expect(daemon.answers)
        #expect(try await daemon.terminate() == .exited(0))
        #expect(!exists(daemon.socket))
    }

    @Test("READY=1 is said once the socket answers, and not before")
    func ready() async throws {
        let place = try TemporaryDirectory()
        let supervisor = try NotifySocket(path: place.file("notify"))
        let daemon = try DaemonProcess(environment: ["NOTIFY_SOCKET": place.file("notify")])
        let child = try daemon.launch()
        try await eventually(that: "READY=1", within: .seconds(20), every: .milliseconds(1)) {
            #expect(child.poll() == nil)
            return supervisor.message()?.contains("READY=1") == true
        }
        #expect(daemon.answers)
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("the status text follows the tasks, and the watchdog is fed, at once where tasks begin to run")
    func reports() async throws {
        let place = try TemporaryDirectory()
        let supervisor = try NotifySocket(path: place.file("notify"))
        let server = try ScriptedServer(["/a": [.hang], "/b": [.hang]])
        let daemon = try DaemonProcess(
            environment: ["NOTIFY_SOCKET": place.file("notify"), "WATCHDOG_USEC": "600000000"])
        try await daemon.start()
        func message(_ text: String) async throws {
            try await eventually(that: text, within: .seconds(20), every: .milliseconds(5)) {
                while let message = supervisor.message() {
                    if message.contains(text) { return true }
                }
                return false
            }
        }
        try await message("WATCHDOG=1")
        try await message("WATCHDOG_USEC=1200000000")
        _ = try await daemon.add("--paused", server.url("/b"))
        try await message("STATUS=1 paused")
        _ = try await daemon.add(server.url("/a"))
        try await message("STATUS=1 active, 1 paused")
        try await message("WATCHDOG=1")
        try await message("WATCHDOG_USEC=600000000")
        #expect(try await daemon.terminate() == .exited(0))
        try await message("EXTEND_TIMEOUT_USEC=")
    }

    /// The source of a preloaded library that makes a program exit with 99 if it lets OpenSSL free memory that other
    /// threads may still use.
    private static let shim = """
        #include <unistd.h>

        void OPENSSL_cleanup(void) { _exit(99); }

        """

    @Test(
        "the daemon's end does not free OpenSSL under the threads that close its connections",
        .enabled(if: PreloadedShim.isPossible, "there is no C compiler here"))
    func keepsOpenSSL() async throws {
        let shim = try #require(try await PreloadedShim.make(Self.shim))
        let daemon = try DaemonProcess()
        try await daemon.start(under: ["env", "LD_PRELOAD=\(shim.path)"])
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("dlctl shutdown ends the daemon with 0")
    func shutdown() async throws {
        let daemon = try await DaemonProcess.started()
        #expect(try await daemon.dlctl("shutdown").succeeded)
        try await eventually(that: "the daemon ends") { !daemon.isRunning }
        #expect(try await daemon.terminate() == .exited(0))
    }

    @Test("status tells who answers; rpc calls a method by name")
    func status() async throws {
        let daemon = try await DaemonProcess.started()
        let status = try await daemon.dlctl("status", "--json")
        #expect(status.succeeded)
        struct Status: Decodable {
            let pid: pid_t
            let stateDirectory: String
        }
        let told = try JSONDecoder().decode(Status.self, from: Data(status.output.utf8))
        #expect(told.pid == daemon.pid)
        #expect(told.stateDirectory == daemon.stateDirectory)
        let raw = try await daemon.dlctl("rpc", "task.list", "{}")
        #expect(raw.succeeded)
        #expect(raw.output.contains("\"tasks\""))
    }

    @Test("state, socket and database are closed to others")
    func permissions() async throws {
        let daemon = try await DaemonProcess.started()
        func mode(_ path: String) -> mode_t? {
            var status = stat()
            return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
        }
        #expect(mode("\(daemon.stateDirectory)/dld.db") == 0o600)
        #expect(mode(daemon.socket).map { $0 & 0o007 } == 0)
    }

    /// Connects a client that has sent a request and waits for its response.
    private static func ask(_ path: String) throws -> Int32 {
        let client = try StreamSocket(path: path)
        client.setReadTimeout(30)
        client.send(#"{"jsonrpc":"2.0","id":1,"method":"daemon.status"}"#.utf8 + [0x0A])
        return dup(client.descriptor)
    }

    /// Returns the number of clients that receive a response; a client whose connection ends without one asks once
    /// more, as `dlctl` does.
    private func answers(_ clients: [Int32], _ path: String) async throws -> Int {
        try await onThread {
            var count = 0
            for client in clients {
                var line = try? StreamSocket(adopting: client).readLine()
                if line == nil { line = try StreamSocket(adopting: Self.ask(path)).readLine() }
                if line?.contains("\"result\"") == true { count += 1 }
            }
            return count
        }
    }

    @Test("F65: a hundred clients that connect before the daemon is there, and while it restarts, are all served")
    func hundredClients() async throws {
        let daemon = try DaemonProcess()
        let unit = try SocketUnit(daemon)
        // No daemon runs yet: all clients wait in the socket's backlog.
        let early = try (0..<100).map { _ in try Self.ask(daemon.socket) }
        #expect(try await answers(early, daemon.socket) == 100)
        for signal in [SIGTERM, SIGKILL] {
            let pid = try #require(daemon.pid)
            var clients = try (0..<30).map { _ in try Self.ask(daemon.socket) }
            #expect(kill(pid, signal) == 0)
            // None of these is refused, whether the old daemon still runs, none does, or the next one.
            clients += try (0..<70).map { _ in try Self.ask(daemon.socket) }
            #expect(try await answers(clients, daemon.socket) == 100)
            // A daemon that ends may have served them all: one more client makes sure that there is another daemon.
            try await eventually(that: "the daemon ends") { daemon.pid != pid || !daemon.isRunning }
            #expect(try await answers([Self.ask(daemon.socket)], daemon.socket) == 1)
            #expect(daemon.pid != pid)
        }
        #expect(try await unit.stop() == [.exited(0), .killed(signal: SIGKILL), .exited(0)], "\(daemon.log)")
    }

    @Test("F65: the daemon serves the socket that systemd hands over, and leaves it there")
    func socketActivation() async throws {
        let resource = Resource(size: 1000)
        let server = try ScriptedServer(["/file": [.serve(resource)]])
        let daemon = try DaemonProcess()
        let unit = try SocketUnit(daemon)
        // The first client starts the daemon, and is served.
        let outcome = try await daemon.dlctl("add", "--wait", server.url("/file"))
        #expect(outcome.succeeded, "\(outcome.error)\(daemon.log)")
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        #expect(try await unit.stop() == [.exited(0)], "\(daemon.log)")
        #expect(exists(daemon.socket))
    }
}
