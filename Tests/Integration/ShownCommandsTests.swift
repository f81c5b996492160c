import ArgumentParser
import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@testable import dlctl

/// The commands of the documentation and of the help, run as a user would type them. Only the servers' names are
/// replaced by that of a server on this machine.
@Suite("Commands shown to users", .timeLimit(.minutes(4)))
struct ShownCommandsTests {
    /// A private daemon with tasks, and a directory with the files that the commands name.
    private struct Fixture {
        let server: ScriptedServer
        let daemon: DaemonProcess
        let home: String
        private let environment: [String: String?]

        /// - Parameters:
        ///   - tasks: the options of the tasks 1 to 16.
        ///   - path: their path on the server.
        ///   - hangs: whether the server does not answer requests for `a.iso`.
        init(_ tasks: [String], _ path: String, hangs: Bool = false) async throws {
            // The letter a, and its digest.
            let body = [ScriptedAnswer.status(200, body: "a")]
            let digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
            let metalink = """
                <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="m.iso">
                <url>https://example.org/b.iso</url></file></metalink>
                """
            let stored = [ScriptedAnswer.status(201)]
            let type = "Content-Type: application/metalink4+xml"
            server = try ScriptedServer([
                "/a.iso": hangs ? [.hang] : body, "/b.iso": body, "/private": body, "/old.iso": body,
                "/a.iso?signature=fresh": body, "/big.iso?signature=fresh": body,
                "/SUMS": [.status(200, body: "\(digest)  a.iso\n")],
                "/a.iso.meta4": [
                    .status(200, headers: [type], body: metalink.replacing("https://example.org/", with: ""))
                ],
                "/in/report.tar": stored, "/in/a.tar": stored, "/in/b.tar": stored, "/api": stored, "/in": stored,
                "/form": stored, "/in/photos.tar": stored, "/in/1.jpg": stored,
            ])
            daemon = try await DaemonProcess.started()
            home = try daemon.directory.makeDirectory("home")
            let place = daemon.directory
            for directory in [
                "backup", "home/bin", "home/photos", "home/.zfunc", "home/.config/fish/completions",
                "home/.local/share/bash-completion/completions",
            ] { _ = try place.makeDirectory(directory) }
            try FileManager.default.createSymbolicLink(
                atPath: home + "/bin/dlctl", withDestinationPath: DaemonProcess.program("dlctl"))
            environment = [
                "DLD_SOCKET": daemon.socket, "HOME": home, "XDG_STATE_HOME": nil,
                "PATH": home + "/bin:" + (ProcessInfo.processInfo.environment["PATH"] ?? ""),
            ]
            let texts = [
                "urls.txt": "https://example.org/a.iso\nhttps://example.org/b.iso\n", "a.iso.meta4": metalink,
                "aria2.session": "https://example.org/a.iso\n out=session.iso\n", ".secret": "s3cret\n",
                "headers.txt": "X-Token: 1\n", "data.json": "{}",
                "nightly.yaml": "downloads: [https://example.org/old.iso, https://example.org/b.iso]\n",
            ]
            let files = ["a.tar", "b.tar", "report.tar", "photo.jpg", "a.jpg", "photos/1.jpg"].map { ($0, $0) }
            for (name, text) in texts.map({ ($0.key, redirected($0.value)) }) + files {
                _ = try place.write(text, to: "home/" + name)
            }
            let urls = (1...16).map { _ in server.url(path) }
            let added = try await daemon.dlctl(["add"] + tasks + urls)
            // With --wait the paths follow the ids.
            try #require(added.lines.filter { Int($0) != nil }.count == 16, "\(added.error)")
        }

        private func redirected(_ text: String) -> String {
            let here = "http://127.0.0.1:\(server.port)"
            return text.replacing("https://example.org", with: here).replacing("https://example.net", with: here)
                .replacing("/srv/backup", with: daemon.directory.path + "/backup")
        }

        func run(_ command: String) async throws -> Outcome {
            try await TestSupport.run(
                ["sh", "-c", "cd \"$HOME\" && " + redirected(command)], environment: environment, within: .seconds(20))
        }
    }

    /// Whether a command draws a screen, goes on until Ctrl-C or until all tasks have ended, ends the daemon, or needs a
    /// server of another protocol, or a value in the place of a placeholder.
    private static func isApart(_ command: String) -> Bool {
        let arguments = ShownCommands.arguments(of: command)
        return ["top", "shutdown"].contains(arguments.first) || arguments == ["watch"]
            || arguments == ["watch", "--json"]
            || arguments.contains("--follow") || arguments.contains("--exec") || arguments == ["wait", "--all"]
            || ["sftp://", "...", "add URL"].contains { command.contains($0) }
    }

    /// The commands that show how a refusal looks, or end with a condition that is false here.
    private static let failing = [
        "dlctl show 99 --json", "dlctl cancel 19 999 --json",
        "dlctl wait 7 --timeout 60; [ $? -eq 75 ] && echo not yet",
    ]

    private func check(_ commands: [String], _ fixture: Fixture) async throws {
        for command in commands where !Self.isApart(command) {
            let outcome = try await fixture.run(command)
            let status: Int32 = Self.failing.contains(command) ? 1 : 0
            #expect(outcome.status == .exited(status), "\(command): \(outcome.output) \(outcome.error)")
        }
    }

    @Test(
        "every command of a document works",
        arguments: ["docs/commands.md", "docs/administration.md", "docs/backup.md", "docs/terminal.md"])
    func documents(document: String) async throws {
        let fixture = try await Fixture(["--start-at", "+2h"], "/old.iso", hangs: true)
        let ended = try await fixture.daemon.dlctl("resume", "7", "8", "--now")
        #expect(ended.succeeded)
        #expect(try await fixture.daemon.dlctl("wait", "7", "8").succeeded)
        try await check(ShownCommands.commands(of: "dlctl", inDocument: document), fixture)
    }

    @Test(
        "every example of a command's help works",
        arguments: [
            "add", "upload", "list", "show", "pause", "resume", "cancel", "retry", "remove", "set", "move", "wait",
            "watch", "apply", "limit", "status", "reload", "backup", "events", "rpc", "completion",
        ])
    func examples(name: String) async throws {
        let commands = RootCommand.configuration.groupedSubcommands.flatMap(\.subcommands)
        let type = try #require(
            (commands + Queue.configuration.subcommands).first { $0.configuration.commandName == name })
        let fixture =
            switch name {
            case "retry": try await Fixture([], "/missing.iso")
            case "wait", "watch": try await Fixture(["--wait", "--batch", "nightly"], "/old.iso")
            default: try await Fixture(["--start-at", "+2h", "--batch", "nightly"], "/old.iso")
            }
        try await check(ShownCommands.commands(of: "dlctl", inHelp: RootCommand.helpMessage(for: type)), fixture)
    }
}
