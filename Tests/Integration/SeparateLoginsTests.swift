import Glibc
import TaskModel
import TestSupport
import Testing

/// Two users of one daemon with different logins at one host.
@Suite("Logins of several users at one host", .timeLimit(.minutes(2)), .enabled(if: isRoot))
struct SeparateLoginsTests {
    @Test("A25: no request of one user carries another's login, header or cookie, whichever connection it goes by")
    func separate() async throws {
        let resource = Resource(size: 50_000)
        let users: [(uid: uid_t, name: String)] = [(64_201, "ann"), (64_202, "ben")]
        var script: [String: [ScriptedAnswer]] = [:]
        for number in 0..<12 {
            for user in users {
                let challenge = ["WWW-Authenticate: Basic realm=\"r\"", "Set-Cookie: challenge=of-\(user.name)"]
                script["/\(user.name)\(number)"] = [
                    .status(401, headers: challenge),
                    .serve(resource, headers: ["Set-Cookie: session=of-\(user.name); Path=/"]),
                ]
            }
            script["/nobody\(number)"] = [.serve(resource)]
        }
        let server = try ScriptedServer(script)
        let daemon = try DaemonProcess(configuration: quickRetries + "control: {mode: 0666}\n", mode: 0o755)
        try await daemon.start()
        let client = try DaemonProcess.program("dlctl")
        for (uid, name) in users {
            let password = try daemon.directory.write("secret-of-\(name)\n", to: "password-\(name)")
            let header = try daemon.directory.write("X-Token: token-of-\(name)\n", to: "header-\(name)")
            #expect(chmod(password, 0o644) == 0 && chmod(header, 0o644) == 0)
            let plain = ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups", client]
            let urls = (0..<12).map { server.url("/\(name)\($0)") }
            let added = try await run(
                plain + ["--socket", daemon.socket, "add", "--user", name, "--password-file", password]
                    + ["--header", "@\(header)"] + urls)
            #expect(added.succeeded, "\(added.error)")
        }
        // Tasks without a login as well.
        let added = try await daemon.dlctl(["add"] + (0..<12).map { server.url("/nobody\($0)") })
        #expect(added.succeeded, "\(added.error)")
        for task in try daemon.tasks() { #expect(try await daemon.settled(task.id).state == .completed) }

        var usersOfConnections: [Int: Set<String>] = [:]
        for request in server.requests() {
            let name = String(request.path.dropFirst().prefix { !$0.isNumber })
            usersOfConnections[request.connection, default: []].insert(name)
            let isChallenged = name != "nobody" && request.header("authorization") == nil
            #expect(request.header("cookie") == (name == "nobody" || isChallenged ? nil : "challenge=of-\(name)"))
            if isChallenged { continue }
            if name == "nobody" {
                #expect(request.header("authorization") == nil && request.header("x-token") == nil, "\(request)")
            } else {
                let basic = name == "ann" ? "YW5uOnNlY3JldC1vZi1hbm4=" : "YmVuOnNlY3JldC1vZi1iZW4="
                #expect(request.header("authorization") == "Basic \(basic)", "\(request)")
                #expect(request.header("x-token") == "token-of-\(name)", "\(request)")
            }
        }
        // Only the contents of each request authenticate its user (Basic, Digest, header fields), so that connections
        // may be shared between users. A login bound to a connection, as with NTLM, would rule that out.
        #expect(usersOfConnections.count >= 1)
        for request in server.requests() {
            #expect(request.header("authorization")?.hasPrefix("NTLM") != true)
            #expect(request.header("authorization")?.hasPrefix("Negotiate") != true)
        }
        daemon.expectTidy()
    }
}
