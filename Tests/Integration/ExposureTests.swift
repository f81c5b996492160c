import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The daemon's exposure to other users: its sockets, and the modes of the files that it creates.
@Suite("What lies open", .serialized, .timeLimit(.minutes(2)))
struct ExposureTests {
    /// Returns the inodes of the sockets that a process holds.
    private func sockets(of pid: pid_t) -> Set<String> {
        let place = "/proc/\(pid)/fd"
        let links = TemporaryDirectory.names(in: place).compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(place)/\($0)")
        }
        return Set(links.filter { $0.hasPrefix("socket:[") }.map { String($0.dropFirst(8).dropLast()) })
    }

    /// Returns the inodes and states in a socket table (proc(5), `/proc/net/tcp`).
    private func table(_ name: String) -> [(inode: String, state: String)] {
        let lines = textOfProcessFile("/proc/net/\(name)").split(separator: "\n").dropFirst()
        return lines.compactMap { line in
            let fields = line.split(separator: " ")
            return fields.count > 9 ? (String(fields[9]), String(fields[3])) : nil
        }
    }

    @Test("A13: the daemon listens on no port, at rest and while transfers run, and on one Unix socket alone")
    func noPorts() async throws {
        let resource = Resource(size: 2 * mebibyte)
        let server = try ScriptedServer(["/f": [.drip(resource, after: mebibyte, bytesPerSecond: 50_000)]])
        let daemon = try await DaemonProcess.started()
        let pid = try #require(daemon.pid)
        func check() throws {
            let own = sockets(of: pid)
            #expect(!own.isEmpty)
            for name in ["tcp", "tcp6"] {
                // 0A is TCP_LISTEN.
                #expect(!table(name).contains { own.contains($0.inode) && $0.state == "0A" })
            }
            for name in ["udp", "udp6", "raw", "raw6"] {
                #expect(!table(name).contains { own.contains($0.inode) }, "\(name)")
            }
            // Flags 00010000 mean that a Unix socket is listening.
            let listening = textOfProcessFile("/proc/net/unix").split(separator: "\n").filter { line in
                let fields = line.split(separator: " ")
                return fields.count > 6 && fields[3] == "00010000" && own.contains(String(fields[6]))
            }
            #expect(listening.count == 1 && listening[0].hasSuffix(daemon.socket), "\(listening)")
        }
        try check()
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to run") { $0.bytesDone >= mebibyte / 2 }
        // The check itself works: it finds the transfer's own connection.
        let own = sockets(of: pid)
        #expect(table("tcp").contains { own.contains($0.inode) })
        try check()
    }

    @Test("A34: started with a umask of 0, what the daemon keeps is its own, and nothing published can be run")
    func noUmask() async throws {
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer([
            "/run.sh": [.serve(resource)], "/plain": [.serve(resource)],
            "/slow": [.drip(Resource(size: 2 * mebibyte), after: mebibyte, bytesPerSecond: 20_000)],
        ])
        let base = try TemporaryDirectory()
        let state = base.file("made")
        let started = try DaemonProcess(
            configuration: quickRetries + "control: {mode: 0640}\n", stateDirectory: state,
            prefix: ["sh", "-c", "umask 000 && exec \"$@\"", "sh"])
        try await started.start()
        for name in ["run.sh", "plain"] {
            let id = try await started.add("-d", "sub/deep", server.url("/\(name)"))
            #expect(try await started.settled(id).state == .completed)
        }
        let slow = try await started.add("-d", "sub", server.url("/slow"))
        try await started.state(of: slow, "to run") { $0.bytesDone >= mebibyte / 2 }

        #expect(try mode(state) & 0o777 == 0o700)
        let kept = TemporaryDirectory.names(beneath: state)
        #expect(kept.contains("dld.db"))
        for name in kept {
            let mode = try mode("\(state)/\(name)")
            #expect(mode & 0o7177 == 0 || (mode & S_IFMT == S_IFDIR && mode & 0o7077 == 0), "\(name) \(mode)")
        }
        #expect(try mode(started.socket) & 0o7777 == 0o640)
        let parts = started.partFiles
        #expect(parts.count == 1)
        for part in parts { #expect(try mode(started.path(part)) & 0o7777 == 0o600) }
        for name in ["sub/deep/run.sh", "sub/deep/plain"] {
            #expect(try mode(started.path(name)) & 0o7111 == 0, "\(name)")
        }
        for name in ["sub", "sub/deep"] {
            let mode = try mode(started.path(name))
            #expect(mode & 0o7000 == 0, "\(name) \(mode)")
        }
        withExtendedLifetime(base) {}
    }

    @Test(
        "A34: what is published has the modes that the umask leaves, and a part is the daemon's alone under any",
        arguments: [0o000, 0o002, 0o022, 0o027, 0o077] as [mode_t])
    func umasks(mask: mode_t) async throws {
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer([
            "/f": [.serve(resource)], "/small": [.status(200, body: "x")],
            "/slow": [.drip(Resource(size: 2 * mebibyte), after: mebibyte, bytesPerSecond: 20_000)],
        ])
        let daemon = try await DaemonProcess.started(
            prefix: ["sh", "-c", "umask \(String(mask, radix: 8)) && exec \"$@\"", "sh"])
        for name in ["f", "small"] {
            let id = try await daemon.add(server.url("/\(name)"))
            #expect(try await daemon.settled(id).state == .completed)
            #expect(try mode(daemon.path(name)) & 0o7777 == 0o666 & ~mask, "\(name)")
        }
        let slow = try await daemon.add(server.url("/slow"))
        try await daemon.state(of: slow, "to run") { $0.bytesDone >= mebibyte / 2 }
        #expect(daemon.partFiles.count == 1)
        for part in daemon.partFiles { #expect(try mode(daemon.path(part)) & 0o7777 == 0o600) }
        #expect(try mode("\(daemon.stateDirectory)/dld.db") & 0o7777 == 0o600)
    }

    @Test("A33: what the environment says of proxies, logins and key logs bends nothing")
    func environment() async throws {
        let certificates = try await TestCertificates.shared
        let resource = Resource(size: 10_000)
        let nginx = try await Nginx([], tls: .init(certificate: certificates.server))
        try nginx.publish(resource, as: "f")
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let home = try TemporaryDirectory()
        try home.write("machine 127.0.0.1 login anna password of-netrc\n", to: ".netrc")
        try home.write("user = anna:of-curlrc\nproxy = 127.0.0.1:9\n", to: ".curlrc")
        var environment: [String: String?] = ["HOME": home.path, "CURL_HOME": home.path]
        environment["NETRC"] = home.file(".netrc")
        environment["SSLKEYLOGFILE"] = home.file("keys")
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            environment[name] = "http://127.0.0.1:9"
        }
        let daemon = try DaemonProcess(
            configuration: quickRetries + "tls: {ca-file: \(certificates.authority.path)}\n", environment: environment)
        try await daemon.start()
        for (url, name) in [(server.url("/f"), "plain"), (nginx.url("/f", host: "localhost"), "secure")] {
            let id = try await daemon.add("-o", name, url)
            let task = try await daemon.settled(id)
            #expect(task.state == .completed, "\(String(describing: task.error))")
            #expect(resource.difference(fromFileAt: daemon.path(name)) == nil)
        }
        #expect(server.requests().allSatisfy { $0.header("authorization") == nil })
        #expect(!exists(home.file("keys")))
    }

    private func mode(_ path: String) throws -> mode_t {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw SystemError("lstat \(path)") }
        return status.st_mode
    }
}

/// Returns the text of a file of proc(5), whose size the kernel does not report.
func textOfProcessFile(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
        let got = read(descriptor, &buffer, buffer.count)
        guard got > 0 else { return String(decoding: bytes, as: UTF8.self) }
        bytes += buffer[..<got]
    }
}
