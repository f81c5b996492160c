import Glibc
import TaskModel
import TestSupport
import Testing

/// Transfers to and from real FTP and SFTP servers.
@Suite("File servers", .serialized, .timeLimit(.minutes(2)))
struct FileServerTests {
    private let resource = Resource(size: 3 * mebibyte + 7, seed: 6)

    private func source(_ daemon: DaemonProcess) throws -> String {
        let path = daemon.directory.file("source")
        try resource.write(to: path)
        return path
    }

    /// Uploads a file and downloads it again.
    private func roundTrip(
        _ daemon: DaemonProcess, _ url: String, stored: String, _ options: [String] = []
    ) async throws {
        let upload = try await daemon.dlctl(["upload", "--wait", try source(daemon), url] + options)
        #expect(upload.succeeded, "\(upload.error)")
        #expect(resource.difference(fromFileAt: stored) == nil)
        let download = try await daemon.dlctl(["add", "--wait", "-o", "back", url] + options)
        #expect(download.succeeded, "\(download.error)")
        #expect(resource.difference(fromFileAt: daemon.path("back")) == nil)
        for task in try daemon.tasks() {
            #expect(task.state == .completed && task.bytesDone == resource.size && task.bytesTotal == resource.size)
            #expect(task.bytesFetched == resource.size && task.attempts == 1)
        }
        daemon.expectTidy()
    }

    @Test("a file goes to an FTP server and comes back")
    func ftp() async throws {
        let server = try await Vsftpd()
        try await roundTrip(
            try await DaemonProcess.started(), server.url("/upload/there"), stored: "\(server.uploads)/there")
        #expect(TemporaryDirectory.names(beneath: server.uploads) == ["there"])
    }

    @Test("and by FTPS, where the server's certificate holds")
    func ftps() async throws {
        let made = try await TestCertificates.shared
        let server = try await Vsftpd(security: .implicit(made.server))
        let daemon = try await DaemonProcess.started()
        let url = server.url("/upload/there", host: "localhost")
        try await roundTrip(daemon, url, stored: "\(server.uploads)/there", ["--cacert", made.authority.path])
        let id = try await daemon.upload(try source(daemon), server.url("/upload/other", host: "localhost"))
        #expect(try await daemon.settled(id).error?.code == .tls)
        #expect(!exists("\(server.uploads)/other"))
    }

    /// Uploads a tree into directories that the server lacks, twice.
    private func uploadTree(
        _ daemon: DaemonProcess, to url: String, stored: String, _ options: [String] = []
    ) async throws {
        let tree = try daemon.directory.makeDirectory("tree")
        for place in ["a", "a/b c", "d"] { try #require(mkdir("\(tree)/\(place)", 0o755) == 0) }
        for name in ["1", "a/2", "a/b c/3", "d/4"] { _ = try daemon.directory.write(name, to: "tree/" + name) }
        for _ in 0..<2 {
            let upload = try await daemon.dlctl(["upload", "--wait", "-r", tree, url] + options)
            #expect(upload.succeeded, "\(upload.error)")
            #expect(TemporaryDirectory.names(beneath: stored).filter { $0.contains(".dld-") } == [])
            for name in ["1", "a/2", "a/b c/3", "d/4"] { #expect(try text(of: "\(stored)/\(name)") == name) }
        }
    }

    @Test("an FTP server gets a tree with its directories")
    func treeByFTP() async throws {
        let server = try await Vsftpd()
        try await uploadTree(
            try await DaemonProcess.started(), to: server.url("/upload/new/in/"), stored: "\(server.uploads)/new/in")
    }

    @Test("an SFTP server gets a tree with its directories", .enabled(if: isRoot))
    func treeBySFTP() async throws {
        let server = try await SFTPServer()
        let home = try server.makeHome(knowing: server.hostKeys.filter { $0.type == .ed25519 })
        try #require(try await run(["cp", server.clientKey.privateKey, home + "/.ssh/id_ed25519"]).succeeded)
        try await uploadTree(
            try await daemon(atHome: home), to: server.url("/new/in/"), stored: "\(server.root)/new/in",
            ["--user", server.user])
    }

    @Test("a login by name and password file, or in the URL; another is for a person to mend", .enabled(if: isRoot))
    func login() async throws {
        let server = try await Vsftpd(login: .user("ann", password: "open sesame"))
        let daemon = try await DaemonProcess.started()
        let password = try daemon.directory.write("open sesame\n", to: "password")
        let url = server.url("/upload/there")
        try await roundTrip(
            daemon, url, stored: "\(server.uploads)/there", ["--user", "ann", "--password-file", password])
        let other = server.url("/upload/other")
        let id = try await daemon.upload(
            try source(daemon), other.replacing("ftp://", with: "ftp://ann:open%20sesame@"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(try daemon.task(id).url == other)
        let refused = try await daemon.upload(
            try source(daemon), other.replacing("ftp://", with: "ftp://ann:mistaken@"))
        let status = try await daemon.settled(refused)
        #expect(status.state == .paused && status.reason == .auth && status.error?.code == .permissionDenied)
        #expect(!daemon.log.contains("sesame") && !daemon.log.contains("mistaken"))
    }

    /// Creates a daemon whose user has the home directory `home`, which contains `.ssh`.
    private func daemon(atHome home: String) async throws -> DaemonProcess {
        let accounts = try TemporaryDirectory()
        let daemon = try await DaemonProcess.started(prefix: try homeOfRoot(home, in: accounts))
        withExtendedLifetime(accounts) {}
        return daemon
    }

    @Test("a file goes to an SFTP server whose key is known, and comes back", .enabled(if: isRoot))
    func sftpByPassword() async throws {
        let server = try await SFTPServer(login: ("ann", "open sesame"))
        let home = try server.makeHome(knowing: server.hostKeys.filter { $0.type == .ed25519 })
        let daemon = try await daemon(atHome: home)
        let password = try daemon.directory.write("open sesame\n", to: "password")
        #expect(chmod(server.root, 0o777) == 0)
        try await roundTrip(
            daemon, server.url("/there"), stored: "\(server.root)/there",
            ["--user", "ann", "--password-file", password])
        #expect(TemporaryDirectory.names(beneath: server.root) == ["there"])
        #expect(!daemon.log.contains("sesame"))
    }

    @Test("the daemon's user enters by the key that lies in the home, others do not", .enabled(if: isRoot))
    func sftpByKey() async throws {
        let server = try await SFTPServer()
        let home = try server.makeHome(knowing: server.hostKeys.filter { $0.type == .ed25519 })
        try #require(try await run(["cp", server.clientKey.privateKey, home + "/.ssh/id_ed25519"]).succeeded)
        let daemon = try await daemon(atHome: home)
        try await roundTrip(
            daemon, server.url("/there"), stored: "\(server.root)/there", ["--user", server.user])
    }

    @Test("an SFTP server that nobody knows gets nothing, and the error says what to do", .enabled(if: isRoot))
    func unknownHost() async throws {
        let server = try await SFTPServer()
        let daemon = try await daemon(atHome: try server.makeHome(knowing: []))
        let id = try await daemon.upload(
            try source(daemon), server.url("/there").replacing("sftp://", with: "sftp://ann:secret@"))
        let status = try await daemon.settled(id)
        #expect(status.state == .failed && status.error?.code == .tls)
        let message = status.error?.message ?? ""
        #expect(message.contains(".ssh/known_hosts or /etc/ssh/ssh_known_hosts") && message.contains("ssh-keyscan"))
        #expect(TemporaryDirectory.names(beneath: server.root) == [])
    }

    @Test("a source that changes on its way leaves nothing on the server, and its task for a person")
    func sourceChanges() async throws {
        let server = try await Vsftpd()
        let daemon = try await DaemonProcess.started()
        let path = try source(daemon)
        let id = try await daemon.upload("--limit", "1M", path, server.url("/upload/there"))
        try await daemon.state(of: id, "to send") { $0.bytesDone > 0 }
        #expect(truncate(path, off_t(resource.size + 1)) == 0)
        let waited = try await daemon.dlctl("wait", "\(id)")
        #expect(waited.status == .exited(1) && waited.error.contains("source-changed"))
        let status = try daemon.task(id)
        #expect(status.state == .paused && status.reason == .sourceChanged && status.error?.code == .sourceChanged)
        try await eventually(that: "what came of it is removed") {
            TemporaryDirectory.names(beneath: server.uploads).isEmpty
        }
        try resource.write(to: path)
        #expect(try await daemon.dlctl("set", "\(id)", "--limit", "none").succeeded)
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: "\(server.uploads)/there") == nil)
    }
}
