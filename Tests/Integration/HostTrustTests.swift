import TaskModel
import TestSupport
import Testing

/// What the configuration says of the trust in a host.
@Suite("Trust in hosts", .serialized, .timeLimit(.minutes(3)))
struct HostTrustTests {
    @Test("a pin counts beside each task's own certificates, at its host alone, and its error says what to do")
    func pin() async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: made.server))
        let resource = Resource(size: 50_000)
        try nginx.publish(resource, as: "f")
        let wrong = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        func configuration(_ trust: String) -> String {
            quickRetries + "hosts: {localhost: {trust: \(trust)}, '127.0.0.1': {trust: default}}\n"
        }
        let daemon = try await DaemonProcess.started(
            configuration("{pin: '\(wrong)', ca-file: \(made.authority.path)}"))
        let url = nginx.url("/f", host: "localhost")
        let refused = try await daemon.settled(try await daemon.add(url))
        #expect(refused.error?.code == .tls)
        let message = refused.error?.message ?? ""
        #expect(
            message.contains("none of its keys is pinned") && message.contains(made.serverPublicKeyPin), "\(message)")
        #expect(message.hasSuffix("pin one of them"), "\(message)")
        #expect(nginx.accesses().isEmpty)
        let own = try await daemon.add("--cacert", made.authority.path, url)
        #expect(try await daemon.settled(own).error?.code == .tls)
        let server = try ScriptedServer(["/moved": [.redirect(url)]])
        #expect(try await daemon.settled(try await daemon.add(server.url("/moved"))).error?.code == .tls)
        // The server by another name is trusted as usual.
        let other = try await daemon.add("--cacert", made.authority.path, nginx.url("/f"))
        #expect(try await daemon.settled(other).state == .completed)

        try daemon.configure(
            configuration("{pin: ['\(wrong)', '\(made.serverPublicKeyPin)'], ca-file: \(made.authority.path)}"))
        #expect(try await daemon.dlctl("reload").succeeded)
        for _ in 0..<2 {
            let accepted = try await daemon.settled(try await daemon.add(url))
            #expect(accepted.state == .completed, "\(String(describing: accepted.error))")
        }
        // A connection that another pin let in serves no request after the reload.
        try daemon.configure(configuration("{pin: '\(wrong)', ca-file: \(made.authority.path)}"))
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.settled(try await daemon.add(url)).error?.code == .tls)
    }

    @Test("--insecure accepts any certificate, says so, and is undone; the trust of a host counts nevertheless")
    func insecure() async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: made.server))
        try nginx.publish(Resource(size: 1_000), as: "f")
        let daemon = try await DaemonProcess.started(quickRetries + "hosts: {localhost: {trust: default}}\n")
        let url = nginx.url("/f")
        let added = try await daemon.dlctl("add", "--wait", "--insecure", url)
        #expect(added.succeeded && added.error.contains("warning: insecure: the certificates"), "\(added)")
        let shown = try await daemon.dlctl("show", "1")
        #expect(shown.output.contains("the certificates of servers are NOT verified"), "\(shown)")
        #expect(daemon.log.contains("insecure: the certificates"))
        // A connection that was accepted without a check serves no other task.
        let checked = try await daemon.add(url)
        #expect(try await daemon.settled(checked).error?.code == .tls)
        #expect(try await daemon.dlctl("set", "\(checked)", "--insecure").succeeded)
        #expect(try await daemon.dlctl("wait", "\(checked)").succeeded)
        let paused = try await daemon.add("--paused", "--insecure", url)
        #expect(try await daemon.dlctl("set", "\(paused)", "--no-insecure").succeeded)
        #expect(try await daemon.dlctl("resume", "\(paused)").succeeded)
        #expect(try await daemon.settled(paused).error?.code == .tls)
        let trusted = try await daemon.add("--insecure", nginx.url("/f", host: "localhost"))
        #expect(try await daemon.settled(trusted).error?.code == .tls)
    }

    @Test("both count for FTPS too")
    func ftps() async throws {
        let made = try await TestCertificates.shared
        let server = try await Vsftpd(security: .implicit(made.server))
        try server.publish(Resource(size: 1_000), as: "f")
        let url = server.url("/f", host: "localhost")
        let wrong = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let daemon = try await DaemonProcess.started()
        for (trust, isTrusted) in [
            ("{ca-file: \(made.authority.path)}", true),
            ("{ca-file: \(made.authority.path), pin: '\(made.serverPublicKeyPin)'}", true),
            ("{ca-file: \(made.authority.path), pin: '\(wrong)'}", false), ("default", false),
        ] {
            try daemon.configure(quickRetries + "hosts: {localhost: {trust: \(trust)}}\n")
            #expect(try await daemon.dlctl("reload").succeeded)
            let status = try await daemon.settled(try await daemon.add(url))
            #expect(status.state == (isTrusted ? .completed : .failed), "\(trust): \(status)")
            if !isTrusted { #expect(status.error?.code == .tls) }
        }
    }

    @Test("certificates of a host take the place of the system's there, and a task's own take theirs")
    func certificates() async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(tls: .init(certificate: made.server))
        try nginx.publish(Resource(size: 1_000), as: "f")
        let name = "localhost:\(nginx.port)"
        let daemon = try await DaemonProcess.started(
            quickRetries + "hosts: {'\(name)': {trust: {ca-file: \(made.authority.path)}}}\n")
        let url = nginx.url("/f", host: "localhost")
        #expect(try await daemon.settled(try await daemon.add(url)).state == .completed)
        // The same server by another name is not covered.
        let unknown = try await daemon.settled(try await daemon.add(nginx.url("/f"))).error
        #expect(unknown?.code == .tls)
        #expect(
            unknown?.message.hasSuffix("--cacert FILE, or hosts.NAME.trust of the configuration") == true,
            "\(unknown?.message ?? "")")
        let strange = try await daemon.add("--cacert", made.selfSigned.certificate.path, url)
        #expect(try await daemon.settled(strange).error?.code == .tls)
        try daemon.configure(
            quickRetries + "hosts: {'\(name)': {trust: {ca-file: \(made.selfSigned.certificate.path)}}}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.settled(try await daemon.add(url)).error?.code == .tls)
        #expect(
            try await daemon.settled(try await daemon.add("--cacert", made.authority.path, url)).state == .completed)
    }
}
