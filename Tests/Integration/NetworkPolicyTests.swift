import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The network policy of a daemon that several users share.
@Suite("The network policy by owner", .serialized, .timeLimit(.minutes(3)), .enabled(if: isRoot))
struct NetworkPolicyTests {
    private let resource = Resource(size: 100_000)
    private static let stranger = UInt32(64_301)
    private static let shared = quickRetries + "control: {mode: 0666}\n"

    private func daemon(_ configuration: String, prefix: [String] = []) async throws -> DaemonProcess {
        let daemon = try DaemonProcess(configuration: configuration, prefix: prefix, mode: 0o755)
        try await daemon.start()
        return daemon
    }

    /// Runs `dlctl add --wait` as a user.
    ///
    /// - Returns: the status of the task.
    private func add(_ arguments: String..., as uid: UInt32, to daemon: DaemonProcess) async throws -> TaskStatus {
        let client = try DaemonProcess.program("dlctl")
        let user = ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
        let added = try await run(
            user + [client, "--socket", daemon.socket, "add"] + arguments, within: .seconds(60))
        let id = try #require(added.lines.first.flatMap { Int64($0) }, "\(added)")
        return try await daemon.settled(TaskID(id), within: .seconds(60))
    }

    private func expectDenied(_ task: TaskStatus, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(task.state == .failed, "\(task)", sourceLocation: sourceLocation)
        #expect(task.error?.code == .addressNotAllowed, sourceLocation: sourceLocation)
        #expect(task.attempts == 1, sourceLocation: sourceLocation)
    }

    @Test("A11, A25: root is exempt and another user is not, whoever connected to the host before")
    func owners() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let server = try ScriptedServer(["/moved": [.redirect(inner.url("/f"))], "/f": [.serve(resource)]])
        let daemon = try await daemon(
            "network: {deny: [127.0.0.2], exempt: administrators}\nlimits: {connections-per-task: 1}\n" + Self.shared)
        // More rounds than there are loops, so that each has a connection of root.
        for _ in 0..<3 {
            expectDenied(try await add(inner.url("/f"), as: Self.stranger, to: daemon))
            expectDenied(try await add(server.url("/moved"), as: Self.stranger, to: daemon))
            for _ in 0..<2 {
                #expect(try await add(inner.url("/f"), as: 0, to: daemon).state == .completed)
                #expect(try await add(server.url("/moved"), as: 0, to: daemon).state == .completed)
            }
        }
        #expect(inner.requests().count == 12)
        #expect(try await add(server.url("/f"), as: Self.stranger, to: daemon).state == .completed)
        daemon.expectTidy()
    }

    @Test("A25: over HTTP/2 too")
    func multiplexed() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: certificates.server), http2: true)
        try nginx.publish(resource, as: "f")
        let daemon = try await daemon(
            "network: {deny: [127.0.0.0/8, '::1'], exempt: administrators}\nhosts: {localhost: {http-version: 2}}\n"
                + "tls: {ca-file: \(certificates.authority.path)}\n" + Self.shared)
        let url = nginx.url("/f", host: "localhost")
        for _ in 0..<3 {
            #expect(try await add(url, as: 0, to: daemon).state == .completed)
            expectDenied(try await add(url, as: Self.stranger, to: daemon))
        }
        #expect(nginx.accesses().map(\.version) == Array(repeating: "HTTP/2.0", count: 3))
        daemon.expectTidy()
    }

    @Test("A11: members of the administrators' group are exempt, and a reload takes up another group or none")
    func members() async throws {
        // The user daemon has the group daemon as its primary group on every Linux system.
        let member = UInt32(1)
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let policy = "network: {deny: [127.0.0.2], exempt: administrators}\n" + quickRetries
        let daemon = try await daemon(policy + "control: {mode: 0666, admin-group: daemon}\n")
        #expect(try await add(inner.url("/f"), as: member, to: daemon).state == .completed)
        expectDenied(try await add(inner.url("/f"), as: Self.stranger, to: daemon))
        try daemon.configure(policy + "control: {mode: 0666, admin-group: bin}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        expectDenied(try await add(inner.url("/f"), as: member, to: daemon))
        try daemon.configure(policy.replacing("administrators", with: "none") + "control: {mode: 0666}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        expectDenied(try await add(inner.url("/f"), as: 0, to: daemon))
        #expect(inner.requests().count == 1)
    }

    @Test(
        "A11: the installed configuration denies this machine and metadata services, however written, and not to root")
    func installed() async throws {
        let source = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "config/dld.yaml")
        let text = try String(contentsOf: source, encoding: .utf8)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let daemon = try await daemon(text.replacing("# mode: 0660", with: "mode: 0666"))
        #expect(!daemon.log.contains("queue file"), "\(daemon.log)")
        let hosts = [
            "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0.0.0.0",
            "localhost", "[::1]", "[::]",
            "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "169.254.169.254",
            "2852039166", "0xa9fea9fe", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1]",
            "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "[fd20:ce::254]",
        ]
        for host in hosts {
            let task = try await add("http://\(host):\(server.port)/f", as: Self.stranger, to: daemon)
            #expect(task.error?.code == .addressNotAllowed, "\(host): \(task)")
        }
        #expect(server.connectionsAccepted == 0)
        #expect(try await add(server.url("/f"), as: 0, to: daemon).state == .completed)
    }

    @Test("A11: FTP's data connection is judged by the task's owner, as the control connection is")
    func fileServer() async throws {
        let server = try ScriptedFTPServer(.init(files: ["file": [1, 2, 3]]))
        // libcurl connects to the server's own address, whatever the reply to PASV names.
        server.manner.passiveAddress = "127,0,0,2"
        let daemon = try await daemon("network: {deny: [127.0.0.1], exempt: administrators}\n" + Self.shared)
        expectDenied(try await add(server.url("/file"), as: Self.stranger, to: daemon))
        #expect(try await add(server.url("/file"), as: 0, to: daemon).state == .completed)
    }

    @Test("A12: a name that leads elsewhere a moment later, at a retry or at a redirect, leads into no denied network")
    func rebinding() async throws {
        let (names, place) = (try NameServer(), try TemporaryDirectory())
        let server = try ScriptedServer(["/f": [.serve(resource)], "/big": [.drip(resource, bytesPerSecond: 200_000)]])
        let inner = try ScriptedServer(
            host: 2, port: server.port, ["/f": [.serve(resource)], "/big": [.serve(resource)]])
        let closed = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let daemon = try await daemon(
            "network: {deny: [127.0.0.2]}\n" + Self.shared, prefix: try names.prefix(in: place))
        // The first answer is used for the whole transfer: one look-up, for one family each.
        names.say(.inTurn([1, 2]))
        let pinned = try await add("http://pinned.example:\(server.port)/big", as: Self.stranger, to: daemon)
        #expect(pinned.state == .completed, "\(pinned)")
        #expect(names.questions <= 2)
        // Nothing listens at the first address. The retry looks the name up again.
        names.say(.inTurn([1, 2]))
        let retried = try await add("http://retried.example:\(closed.port)/f", as: Self.stranger, to: daemon)
        #expect(retried.error?.code == .addressNotAllowed && retried.attempts == 2, "\(retried)")
        // A redirect to a name is a look-up of its own.
        let moved = try ScriptedServer(["/f": [.redirect("http://target.example:\(server.port)/f")]])
        names.say(.inTurn([1, 2]))
        let redirected = try await add("http://start.example:\(moved.port)/f", as: Self.stranger, to: daemon)
        expectDenied(redirected)
        #expect(moved.requests().count == 1)
        // The other way round, the permitted address of the second answer is used by another task.
        names.say(.inTurn([2, 1]))
        expectDenied(try await add("http://first.example:\(server.port)/f", as: Self.stranger, to: daemon))
        #expect(inner.connectionsAccepted == 0 && closed.connectionsAccepted == 0)
        daemon.expectTidy()
    }

    @Test("a webhook in a denied network is refused with advice that the status shows, and sent once it is exempt")
    func webhooks() async throws {
        let receiver = try ScriptedServer(host: 2, ["/h": [.status(200)]])
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let webhooks = "notify: [{url: '\(receiver.url("/h"))', on: [completed]}]\n" + Self.shared
        let daemon = try await daemon("network: {deny: [127.0.0.2]}\n" + webhooks)
        #expect(try await add(server.url("/f"), as: 0, to: daemon).state == .completed)
        try await eventually(that: "the status says why") {
            let status = try await daemon.dlctl("status").output
            return status.contains("address-not-allowed: the address 127.0.0.2 is in the denied network 127.0.0.2/32")
                && status.contains("set network.exempt to administrators")
        }
        #expect(receiver.connectionsAccepted == 0)
        try daemon.configure("network: {deny: [127.0.0.2], exempt: administrators}\n" + webhooks)
        #expect(try await daemon.dlctl("reload").succeeded)
        try await eventually(that: "the event arrives") { receiver.requests(for: "/h").count == 1 }
    }
}
