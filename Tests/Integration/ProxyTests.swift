import Glibc
import TaskModel
import TestSupport
import Testing

/// Proxies that ask for a login, those that refuse, and servers that are reached without them, with the built daemon.
@Suite("Proxies", .serialized, .timeLimit(.minutes(3)))
struct ProxyTests {
    private let resource = Resource(size: 100_000)

    private func configuration(_ network: String, hosts: String = "") async throws -> String {
        let authority = try await TestCertificates.shared.authority.path
        return quickRetries + oneConnection + "tls: {ca-file: \(authority)}\nnetwork: {\(network)}\n"
            + (hosts.isEmpty ? "" : "hosts:\n\(hosts)\n")
    }

    private func nginx(isSecure: Bool, http2: Bool = false) async throws -> Nginx {
        let identity = try await TestCertificates.shared.server
        let nginx = try await Nginx(
            [.dav("/in/")], tls: isSecure ? .init(certificate: identity) : nil, http2: http2)
        try nginx.publish(resource, as: "f")
        return nginx
    }

    @Test(
        "F76: a proxy that asks for a digest gets one, for plain requests and for tunnels, and never the password",
        arguments: DigestProxy.Algorithm.allCases, [false, true])
    func digest(algorithm: DigestProxy.Algorithm, isSecure: Bool) async throws {
        let proxy = try DigestProxy(algorithm, stale: 2)
        let nginx = try await nginx(isSecure: isSecure)
        let daemon = try await DaemonProcess.started(configuration("proxy: '\(proxy.url)'"))
        let url = nginx.url("/f", host: "localhost")
        let task = try await daemon.settled(daemon.add(url))
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(resource.difference(fromFileAt: try #require(task.path)) == nil)
        let file = try daemon.directory.write("content", to: "file")
        let upload = try await daemon.settled(daemon.upload(file, nginx.url("/in/g", host: "localhost")))
        #expect(upload.state == .completed, "\(String(describing: upload.error))")
        #expect(proxy.credentials.contains { $0?.contains("algorithm=\(algorithm.rawValue)") == true })
        #expect(proxy.credentials.allSatisfy { $0?.hasPrefix("Digest ") ?? true })
        #expect(proxy.heads.contains { $0.first?.hasPrefix(isSecure ? "CONNECT " : "GET http://") == true })
        for line in proxy.heads.joined() { #expect(!line.contains(DigestProxy.password)) }
        // The request without a login shows that the server is reached by the proxy alone.
        let none = try await daemon.settled(daemon.add("--proxy", proxy.bareURL, url))
        #expect(none.error?.httpStatus == 407, "\(none)")
        daemon.expectTidy()
    }

    @Test("F76: a tunnel that the login of one task opened serves no other task")
    func ownTunnel() async throws {
        let proxy = try DigestProxy(.sha256)
        let nginx = try await nginx(isSecure: true, http2: true)
        let url = nginx.url("/f", host: "localhost")
        let daemon = try await DaemonProcess.started(
            configuration("no-proxy: []", hosts: "  localhost: {http-version: 2}"))
        #expect(try await daemon.settled(daemon.add("--proxy", proxy.url, url)).state == .completed)
        let running = try await daemon.add("--proxy", proxy.url, "--limit", "20K", url)
        try await daemon.state(of: running, "to begin") { $0.bytesDone > 0 }
        let other = try await daemon.settled(daemon.add("--proxy", proxy.bareURL, url))
        #expect(other.error?.httpStatus == 407, "\(other)")
    }

    @Test("F76: a proxy that refuses is named, with the setting that mends it", arguments: [false, true])
    func refusal(isSecure: Bool) async throws {
        let asking = try DigestProxy(.sha256)
        let refusing = try DigestProxy(.md5, refusal: 403)
        let nginx = try await nginx(isSecure: isSecure)
        let daemon = try await DaemonProcess.started(configuration("proxy: '\(asking.bareURL)'"))
        let url = nginx.url("/f", host: "localhost")
        let missing = try await daemon.settled(daemon.add(url))
        #expect(missing.state == .paused && missing.reason == .auth)
        let words = try #require(missing.error?.message)
        #expect(words.hasPrefix("the proxy 127.0.0.1:\(asking.port) requires a user name and password (407)"))
        #expect(words.contains("network.proxy") && words.contains("network.no-proxy"), "\(words)")

        let wrong = try await daemon.add("--proxy", asking.url.replacing(DigestProxy.password, with: "c4nary"), url)
        let rejected = try await daemon.settled(wrong)
        #expect(rejected.reason == .auth)
        #expect(rejected.error?.message.contains("rejected the user name and password (407)") == true)
        #expect(rejected.error?.message.contains("dlctl set --proxy") == true)
        #expect(rejected.error?.message.contains("c4nary") == false)

        let refused = try await daemon.settled(daemon.add("--proxy", refusing.url, url))
        #expect(refused.reason == .auth && refused.error?.httpStatus == 403)
        #expect(refused.error?.message.hasPrefix("the proxy 127.0.0.1:\(refusing.port) refuses") == true)
        #expect(refused.error?.message.contains("dlctl set --proxy") == true)

        // Another proxy resumes a task that waits for its owner.
        #expect(try await daemon.dlctl("set", "\(wrong)", "--proxy", asking.url).succeeded)
        #expect(try await daemon.settled(wrong).state == .completed)
    }

    @Test("F76: servers of network.no-proxy and hosts are reached as they say, over redirects too")
    func exemptions() async throws {
        let proxy = try DigestProxy(.md5)
        let other = try DigestProxy(.md5)
        let nginx = try await nginx(isSecure: false)
        let far = try ScriptedServer(["/f": [.serve(resource)]])
        let near = try ScriptedServer(host: 2, ["/moved": [.redirect(far.url("/f"))], "/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(
            configuration(
                "proxy: '\(proxy.url)', no-proxy: [127.0.0.2/32, '.localhost:\(nginx.port)']",
                hosts: "  127.0.0.1:\(far.port): {proxy: '\(other.url)'}\n  127.0.0.3: {proxy: none}"))
        func get(_ url: String) async throws -> (mine: Int, others: Int) {
            let before = (proxy.heads.count, other.heads.count)
            let task = try await daemon.settled(daemon.add(url))
            #expect(task.state == .completed, "\(String(describing: task.error))")
            return (proxy.heads.count - before.0, other.heads.count - before.1)
        }
        #expect(try await get(near.url("/f")) == (0, 0))
        #expect(try await get(nginx.url("/f", host: "localhost")) == (0, 0))
        #expect(try await get(nginx.url("/f")) == (2, 0))
        #expect(try await get(far.url("/f")) == (0, 2))
        #expect(try await get(near.url("/moved")) == (0, 2))
        let third = try ScriptedServer(host: 3, ["/f": [.serve(resource)]])
        #expect(try await get(third.url("/f")) == (0, 0))
        // A reload changes the list.
        try daemon.configure(await configuration("proxy: '\(proxy.url)', no-proxy: '*'"))
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await get(nginx.url("/f")) == (0, 0))
    }

    @Test("F76: a user's own daemon takes NO_PROXY of its environment, unless the configuration has a list")
    func environment() async throws {
        let proxy = try DigestProxy(.md5)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let home = try TemporaryDirectory()
        for list in [nil, "[]"] {
            let daemon = try DaemonProcess(
                configuration: quickRetries + "network: {proxy: '\(proxy.url)'"
                    + (list.map { ", no-proxy: \($0)" } ?? "") + "}\n",
                environment: ["STATE_DIRECTORY": home.path, "NO_PROXY": "example.org, 127.0.0.0/8", "no_proxy": nil])
            try await daemon.start()
            let before = proxy.heads.count
            #expect(try await daemon.settled(daemon.add(server.url("/f"))).state == .completed)
            #expect((proxy.heads.count == before) == (list == nil))
        }
    }
}
