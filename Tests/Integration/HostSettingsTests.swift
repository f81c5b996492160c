import Crypto
import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("What the configuration says of hosts", .serialized, .timeLimit(.minutes(3)))
struct HostSettingsTests {
    private let resource = Resource(size: 12 * mebibyte + 7)

    private var checksum: String {
        let digest = SHA256.hash(data: resource.bytes)
        return "sha-256:" + digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private func nginx(_ locations: [Nginx.Location] = [], http2: Bool = true) async throws -> Nginx {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(locations, tls: .init(certificate: certificates.server), http2: http2)
        try nginx.publish(resource, as: "f")
        return nginx
    }

    private func daemon(hosts: String) async throws -> DaemonProcess {
        let authority = try await TestCertificates.shared.authority.path
        return try await DaemonProcess.started(quickRetries + "tls: {ca-file: \(authority)}\nhosts: {\(hosts)}\n")
    }

    private func download(_ arguments: String..., by daemon: DaemonProcess) async throws {
        let added = try await daemon.dlctl(["add"] + arguments)
        let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }, "\(added.error)"))
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(resource.difference(fromFileAt: try #require(task.path)) == nil)
    }

    @Test("F81: a host and a task have times of their own, and the task's come first")
    func timeouts() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        let hole = try BlackHole()
        let daemon = try await DaemonProcess.started(
            """
            retry: {attempts: 1}
            timeouts: {connect: 1h, stall: 1h}
            hosts:
              127.0.0.1:\(server.port): {timeouts: {stall: 300ms}}
              127.0.0.1:\(hole.port): {timeouts: {connect: 300ms}}
            """)
        func failure(_ arguments: String...) async throws -> TaskFailure? {
            let added = try await daemon.dlctl(["add"] + arguments)
            let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }, "\(added.error)"))
            return try await daemon.settled(id).error
        }
        let stalled = try await failure(server.url("/hang"))
        #expect(stalled?.code == .stalled, "\(String(describing: stalled))")
        #expect(stalled?.message.contains("300 ms") == true, "\(String(describing: stalled))")
        #expect(try await failure(hole.url())?.code == .timeout)
        let own = try await failure("--stall-timeout", "700ms", server.url("/hang"))
        #expect(own?.code == .stalled && own?.message.contains("700 ms") == true, "\(String(describing: own))")
        // A host without times of its own.
        let other = try ScriptedServer(["/hang": [.hang]])
        #expect(try await failure("--stall-timeout", "200ms", other.url("/hang"))?.code == .stalled)
        #expect(try await failure("--connect-timeout", "200ms", hole.url())?.code == .timeout)
    }

    @Test("a host is spoken to in HTTP/2, and one of which nothing is said in HTTP/1.1")
    func http2() async throws {
        let nginx = try await nginx()
        let daemon = try await daemon(hosts: "localhost: {http-version: 2}")
        // A slow machine would need further connections.
        try await download("--connections", "1", nginx.url("/f", host: "localhost"), by: daemon)
        #expect(nginx.accesses().map(\.version) == ["HTTP/2.0"])
        // The first response contained the whole file.
        #expect(nginx.accesses().map(\.bodyBytes) == [resource.size])
        try await download(nginx.url("/f", host: "127.0.0.1"), by: daemon)
        #expect(Set(nginx.accesses().dropFirst().map(\.version)) == ["HTTP/1.1"])
        daemon.expectTidy()
    }

    @Test("so are mirrors and those that redirects lead to, and several connections join under a checksum")
    func http2Beside() async throws {
        let own = try await nginx([.limited("/", bytesPerSecond: 3_000_000)])
        let mirror = try await nginx([.limited("/", bytesPerSecond: 3_000_000)])
        let target = own.url("/f", host: "localhost")
        let server = try ScriptedServer(["/moved": [.redirect(target)]])
        let hosts = "localhost: {http-version: 2}, 'localhost:\(mirror.port)': {connections: 2}"
        let daemon = try await daemon(hosts: hosts)
        try await download(
            "--connections", "4", "--checksum", checksum, "--mirror", mirror.url("/f", host: "localhost"),
            server.url("/moved"), by: daemon)
        #expect(own.accesses().count > 0 && mirror.accesses().count > 0)
        #expect(Set((own.accesses() + mirror.accesses()).map(\.version)) == ["HTTP/2.0"])
        daemon.expectTidy()
    }

    @Test("a server that does not agree to HTTP/2 serves in HTTP/1.1, over as many connections as ever")
    func notAgreed() async throws {
        let nginx = try await nginx([.limited("/", bytesPerSecond: 3_000_000)], http2: false)
        let daemon = try await daemon(hosts: "'*.localhost': {http-version: 1.1}, localhost: {http-version: 2}")
        try await download("--connections", "3", nginx.url("/f", host: "localhost"), by: daemon)
        #expect(Set(nginx.accesses().map(\.version)) == ["HTTP/1.1"])
        #expect(Set(nginx.accesses().map(\.connection)).count >= 3)
        daemon.expectTidy()
    }

    @Test("HTTP/3 is asked for where libcurl has it; where not, that is said, and the download comes all the same")
    func http3() async throws {
        let nginx = try await nginx()
        let daemon = try await daemon(hosts: "localhost: {http-version: 3}")
        try await download("--connections", "1", nginx.url("/f", host: "localhost"), by: daemon)
        #expect(Set(nginx.accesses().map(\.version)) == ["HTTP/2.0"])
        let curl = try await run(["curl", "--version"])
        let warns = !curl.output.split(separator: "\n").contains { $0.hasPrefix("Features:") && $0.contains("HTTP3") }
        #expect(daemon.log.contains("does not support HTTP/3") == warns, "\(daemon.log)")
        try await daemon.terminate()
        let check = try daemon.launch(extra: ["--check-config"])
        #expect(try await check.wait() == .exited(0))
        #expect(check.standardError.contains("warning: libcurl/") == warns, "\(check.standardError)")
        #expect(check.standardError.contains("HTTP/2 is used instead for localhost") == warns)
    }

    @Test("a host has no more connections than it may, whatever a task asks for")
    func connections() async throws {
        let server = try ScriptedServer(line: NetworkLine(roundTrip: 5, rate: 3_000_000), ["/f": [.serve(resource)]])
        let hosts = "127.0.0.1: {connections: 9}, '127.0.0.1:\(server.port)': {connections: 2}"
        let daemon = try await daemon(hosts: hosts)
        let id = try await daemon.add("--connections", "8", server.url("/f"))
        var most = 0
        let task = try await daemon.state(of: id, "to settle") { task in
            most = max(most, task.connections)
            return task.isSettled
        }
        #expect(task.state == .completed && most == 2, "\(most)")
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        daemon.expectTidy()
    }
}
