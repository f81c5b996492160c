import TaskModel
import TestSupport
import Testing

@Suite("Networks that the configuration denies", .serialized, .timeLimit(.minutes(3)))
struct DeniedAddressTests {
    private let resource = Resource(size: 100_000)

    private func expectDenied(_ arguments: String..., by daemon: DaemonProcess) async throws {
        let added = try await daemon.dlctl(["add", "--wait", "--json"] + arguments)
        #expect(added.status == .exited(1), "\(added.error)")
        let task = try #require(try daemon.tasks().last)
        #expect(task.state == .failed)
        #expect(task.error?.code == .addressNotAllowed)
        let message =
            "the address 127.0.0.2 is in the denied network 127.0.0.2/32 "
            + "(\"network.deny\" of the daemon's configuration)"
        // For a list of digests or a Metalink, the message is prefixed with what the failure is about.
        #expect(task.error?.message.hasSuffix(message) == true, "\(task.error?.message ?? "")")
        #expect(task.attempts == 1)
    }

    @Test("A11: what leads to a denied network fails for good at the first attempt, and nothing connects there")
    func denied() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let server = try ScriptedServer(["/f": [.serve(resource)], "/moved": [.redirect(inner.url("/f"))]])
        let daemon = try await DaemonProcess.started(quickRetries + "network: {deny: [127.0.0.2]}\n")
        try await expectDenied(inner.url("/f"), by: daemon)
        try await expectDenied(server.url("/moved"), by: daemon)
        try await expectDenied("--checksum-url", inner.url("/sums"), server.url("/f"), by: daemon)
        try await expectDenied("--metalink", inner.url("/f.meta4"), by: daemon)
        for scheme in ["ftp", "ftps", "sftp"] {
            try await expectDenied("\(scheme)://u:p@127.0.0.2:\(inner.port)/f", by: daemon)
        }
        #expect(inner.connectionsAccepted == 0)
        let allowed = try await daemon.dlctl("add", "--wait", "-o", "allowed", server.url("/f"))
        #expect(allowed.succeeded, "\(allowed.error)")
        #expect(resource.difference(fromFileAt: daemon.path("allowed")) == nil)
        daemon.expectTidy()
    }

    @Test("A11: a reload takes up what is denied, and a list that is wrong is refused with its place")
    func reload() async throws {
        let inner = try ScriptedServer(host: 2, ["/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries)
        #expect(try await daemon.dlctl("add", "--wait", inner.url("/f")).succeeded)
        // A reused connection from before the reload would still serve the file.
        let count = inner.connectionsAccepted
        try daemon.configure(quickRetries + "network: {deny: [127.0.0.2/32]}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        try await expectDenied(inner.url("/f"), by: daemon)

        try daemon.configure(quickRetries + "network: {deny: [127.0.0.2/8]}\n")
        let refused = try await daemon.dlctl("reload")
        let line = quickRetries.count { $0 == "\n" } + 1
        let mistake =
            ":\(line):18: \"deny\": \"127.0.0.2/8\" has bits beyond its prefix; is it 127.0.0.0/8 or 127.0.0.2?"
        #expect(refused.status == .exited(1) && refused.error.contains(mistake), "\(refused.error)")
        try await expectDenied(inner.url("/f"), by: daemon)
        #expect(inner.connectionsAccepted == count)

        try daemon.configure(quickRetries)
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await daemon.dlctl("retry", "--all", "--yes").succeeded)
        try await eventually(that: "all are done") { try daemon.tasks().allSatisfy { $0.state == .completed } }
        daemon.expectTidy()

        try await daemon.terminate()
        try daemon.configure(quickRetries + "network: {deny: [127.0.0.2/8]}\n")
        let check = try daemon.launch(extra: ["--check-config"])
        #expect(try await check.wait() == .exited(78))
        #expect(check.standardError.contains(mistake), "\(check.standardError)")
    }
}
