import Glibc
import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Admission")
struct AdmissionTests {
    private static func settings(uploadRoots: [String] = [], daemonUser: UInt32 = 500) -> QueueSettings {
        var settings = QueueSettings(Configuration(), downloadDirectory: "/home/me/dl", daemonUser: daemonUser)
        settings.downloadRoots = ["/srv"]
        settings.uploadRoots = uploadRoots
        return settings
    }

    private static func admit(
        _ specification: TaskSpecification, _ settings: QueueSettings = settings(), uid: UInt32 = 1000
    ) throws(FieldError) -> NewTask {
        var admission = Admission(settings: settings, caller: Caller(uid: uid, isAdministrator: false), now: 5)
        return try admission.admit(specification)
    }

    private static func refusal(of specification: TaskSpecification) -> FieldError? {
        do throws(FieldError) {
            _ = try admit(specification)
            return nil
        } catch {
            return error
        }
    }

    @Test("an administrator leads no task to a host where only its owner has a credential, nor moves it there")
    func credentialsOfAnother() throws {
        func fault(_ url: String, by uid: UInt32, _ change: (inout TaskSpecification) -> Void) -> String? {
            var settings = Self.settings()
            settings.hostAccess = HostTable([
                "h": HostAccess(credential: .bearer("t"), owners: HostOwners(users: [7, 9]))
            ])
            let before = TaskSpecification(url: url)
            var asked = before
            change(&asked)
            var admission = Admission(settings: settings, caller: Caller(uid: uid, isAdministrator: true), now: 5)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: true, owner: 7)
                return nil
            } catch {
                #expect(error.code == .permissionDenied)
                return error.field
            }
        }
        for uid: UInt32 in [0, 7, 8, 9, 500] {
            let (url, directory, mirrors) = uid == 8 ? ("url", "directory", "mirrors") : (nil, nil, nil)
            #expect(fault("https://other/a", by: uid) { $0.url = "https://h/a" } == url)
            #expect(fault("https://h/a", by: uid) { $0.url = "https://h/b" } == url)
            #expect(fault("https://h/a", by: uid) { $0.directory = "/srv/b" } == directory)
            #expect(fault("https://h/a", by: uid) { $0.limit = 5 } == nil)
            // Another server may redirect to the host.
            #expect(fault("https://h/a", by: uid) { $0.url = "https://other/a" } == url)
            #expect(fault("https://other/a", by: uid) { $0.mirrors = ["https://h/a"] } == mirrors)
        }
    }

    @Test("a login in the URL of a task goes through no proxy that another user names")
    func loginInURL() throws {
        for (url, isRefused) in [("http://anna:pw@h/a", true), ("http://h/a", false)] {
            var asked = TaskSpecification(url: url)
            let before = asked
            asked.proxy = "http://proxy:3128"
            var admission = Admission(
                settings: Self.settings(), caller: Caller(uid: 8, isAdministrator: true), now: 5)
            var field: String?
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: true, owner: 7)
            } catch {
                field = error.field
            }
            #expect(field == (isRefused ? "proxy" : nil))
        }
    }

    @Test("a task enters with its place, its host and without its secrets")
    func admitted() throws {
        var specification = TaskSpecification(url: "https://u:p@Example.org/a%20b.iso?sig=x")
        specification.directory = "isos"
        specification.startAt = 9
        let task = try Self.admit(specification)
        #expect(task.path == "/home/me/dl/isos/a b.iso")
        #expect(task.host == "https://example.org:443" && task.owner == 1000)
        #expect(task.specification.url == "https://Example.org/a%20b.iso?sig=REDACTED")
        #expect(task.secrets.url == specification.url)
        #expect(task.lifecycle == TaskLifecycle(startAt: 9, now: 5))
        specification.output = "named"
        #expect(try Self.admit(specification).path == "/home/me/dl/isos/named")
    }

    @Test(
        "a place outside the roots is refused",
        arguments: ["/etc", "/srvx/a", "/srv/../etc", "../up", "a/../../b", "/srv/..", "..\u{2F}\u{301}x"])
    func place(directory: String) {
        var specification = TaskSpecification(url: "http://h/a")
        specification.directory = directory
        #expect(Self.refusal(of: specification)?.field == "directory")
        #expect(Self.refusal(of: specification)?.code == .pathNotAllowed)
    }

    @Test("tasks go by five protocols, both ways")
    func protocols() throws {
        for scheme in TaskAddress.schemes {
            var specification = TaskSpecification(url: "\(scheme)://h/a")
            specification.mirrors = ["\(scheme)://i/a"]
            specification.checksumURL = "\(scheme)://h/SHA256SUMS"
            #expect(try Self.admit(specification).path == "/home/me/dl/a")
            var upload = TaskSpecification(kind: .upload, url: "\(scheme)://h/a")
            upload.file = "/no/such/file"
            #expect(Self.refusal(of: upload)?.field == "file")
        }
    }

    @Test("another protocol is refused, for a mirror and a list of digests too", arguments: ["file:///a", "scp://h/a"])
    func otherProtocols(url: String) {
        #expect(Self.refusal(of: TaskSpecification(url: url))?.code == .protocolNotAllowed)
        var specification = TaskSpecification(url: "http://h/a")
        specification.mirrors = ["http://i/a", url]
        #expect(Self.refusal(of: specification)?.field == "mirrors[1]")
        specification.mirrors = []
        specification.checksumURL = url
        #expect(Self.refusal(of: specification)?.field == "checksumURL")
    }

    @Test(
        "a directory of a file server is no file",
        arguments: ["ftp://h", "ftp://h/", "sftp://u:p@h/a/", "ftps://h:990"])
    func directories(url: String) {
        #expect(Self.refusal(of: TaskSpecification(url: url))?.field == "url")
        #expect(Self.refusal(of: TaskSpecification(url: url))?.code == .invalid)
        var upload = TaskSpecification(kind: .upload, url: url)
        upload.file = "/etc/passwd"
        #expect(Self.refusal(of: upload)?.field == "url")
    }

    @Test("F78: lines that are neither cookies nor comments are passed over and counted, and shown to nobody")
    func cookies() throws {
        func refusal(_ cookies: String) -> FieldError? {
            var specification = TaskSpecification(url: "http://h/a")
            specification.cookies = cookies
            return Self.refusal(of: specification)
        }
        let cookie = "h\tFALSE\t/\tFALSE\t0\tname\tvalue"
        #expect(refusal("# a comment\r\n\r\n\(cookie)\r\n#HttpOnly_\(cookie)\n") == nil)
        let wrong = ["s3cret", "Cookie: a=s3cret", "h FALSE / FALSE 0 name s3cret", cookie + "\ts3cret"]
        for line in wrong {
            let error = refusal("\u{FEFF}\(line)\n")
            #expect(error?.field == "cookies" && error?.message.contains("line 1 is not in Netscape format") == true)
            #expect(error?.message.contains("s3cret") == false)
        }
        var admission = Admission(settings: Self.settings(), caller: Caller(uid: 7, isAdministrator: false), now: 5)
        var specification = TaskSpecification(url: "http://h/a")
        specification.cookies = "\u{FEFF}\(cookie)\n" + wrong.joined(separator: "\n")
        for _ in 0..<2 { _ = try admission.admit(specification) }
        #expect(
            admission.notes
                == (2...5).map {
                    "cookies:\($0):1: is passed over: it is not in Netscape format, seven fields separated by tabs"
                })
        let many = String(repeating: "s3cret\n", count: 22)
        specification.cookies = many + cookie
        var other = Admission(settings: Self.settings(), caller: Caller(uid: 7, isAdministrator: false), now: 5)
        _ = try other.admit(specification)
        #expect(other.notes.count == 21 && other.notes.last == "cookies: 2 more lines are passed over")
        #expect(refusal(many)?.message.contains("lines 1, 2, 3, ") == true)
        #expect(refusal(many)?.message.contains(", 20 and 2 more are not in Netscape format") == true)
        #expect(refusal("")?.message == "contain no cookie")
        #expect(refusal("# a comment")?.message == "contain no cookie")
        #expect(refusal(String(repeating: cookie + "\n", count: 3_001))?.field == "cookies")
    }

    @Test("a login in the URL of a file server is a secret")
    func login() throws {
        let task = try Self.admit(TaskSpecification(url: "sftp://u:p@h/a"))
        #expect(task.specification.url == "sftp://h/a" && task.secrets.url == "sftp://u:p@h/a")
    }

    @Test("what a task that is there asks for anew is judged as a new one is, but for its source")
    func readmitted() throws {
        var admission = Admission(
            settings: Self.settings(), caller: Caller(uid: 0, isAdministrator: true), now: 5)
        var specification = TaskSpecification(url: "https://h/b?sig=x")
        let named = try admission.readmit(specification, after: specification, names: true, owner: 7)
        #expect(named.path == "/home/me/dl/b" && named.owner == 7 && named.secrets.url == specification.url)
        #expect(try admission.readmit(specification, after: specification, names: false, owner: 7).path == nil)
        specification.url = "ftp://h/"
        #expect(throws: FieldError.self) {
            try admission.readmit(specification, after: specification, names: true, owner: 7)
        }
        var upload = TaskSpecification(kind: .upload, url: "http://h/a")
        upload.file = "/no/such/file"
        #expect(try admission.readmit(upload, after: upload, names: true, owner: 7).path == nil)
    }

    @Test("an administrator sends what another user's task carries to no mirror on another host either; root may")
    func secretsToMirrors() throws {
        var before = TaskSpecification(url: "https://h/a")
        before.mirrors = ["https://m/a"]
        before.headers = ["X-Key: secret"]
        func fault(_ mirrors: [String], by uid: UInt32, _ change: (inout TaskSpecification) -> Void = { _ in })
            -> FieldError?
        {
            var admission = Admission(
                settings: Self.settings(), caller: Caller(uid: uid, isAdministrator: true), now: 5)
            var asked = before
            asked.mirrors = mirrors
            change(&asked)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: false, owner: 7)
                return nil
            } catch {
                return error
            }
        }
        let other = ["https://m/b", "https://other/a"]
        #expect(fault(other, by: 8)?.code == .permissionDenied && fault(other, by: 8)?.field == "mirrors[1]")
        for uid: UInt32 in [0, 7, 500] { #expect(fault(other, by: uid) == nil) }
        #expect(fault(["https://h/b", "https://m/b"], by: 8) == nil && fault([], by: 8) == nil)
        #expect(fault(["https://m:444/a"], by: 8) != nil && fault(["http://m/a"], by: 8) != nil)
        #expect(fault(other, by: 8) { $0.headers = ["A: b"] } == nil)
        (before.headers, before.user, before.password) = ([], "me", "secret")
        #expect(fault(other, by: 8) != nil)
        #expect(fault(other, by: 8) { $0.user = "you" } != nil, "the password is still the owner's")
        #expect(fault(other, by: 8) { ($0.user, $0.password) = ("you", "mine") } == nil)
        #expect(fault(other, by: 8) { ($0.user, $0.password) = (nil, nil) } == nil)
    }

    @Test(
        "under which name another user's download is laid, and over which file, an administrator does not say",
        arguments: [(UInt32(8), true), (0, false), (500, false), (7, false)])
    func nameOfAnother(uid: UInt32, isRefused: Bool) {
        func field(_ change: (inout TaskSpecification) -> Void, policy: ConflictPolicy?) -> String? {
            var before = TaskSpecification(url: "https://h/a")
            before.onConflict = policy
            var asked = before
            change(&asked)
            var admission = Admission(
                settings: Self.settings(), caller: Caller(uid: uid, isAdministrator: true), now: 5)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: true, owner: 7)
                return nil
            } catch {
                return error.code == .permissionDenied ? error.field : "\(error)"
            }
        }
        #expect(field({ $0.output = "root.conf" }, policy: nil) == (isRefused ? "output" : nil))
        #expect(field({ $0.url = "https://h/root.conf" }, policy: .overwrite) == (isRefused ? "url" : nil))
        #expect(field({ $0.mirrors = ["https://i/x"] }, policy: .overwrite) == (isRefused ? "mirrors" : nil))
        #expect(field({ $0.url = "https://h/fresh" }, policy: nil) == nil)
        #expect(field({ $0.limit = 5 }, policy: .overwrite) == nil)
    }

    @Test("an administrator does not send another user's header fields or password to another host; root may")
    func secretsOfAnother() throws {
        var before = TaskSpecification(url: "https://h/a")
        before.headers = ["Authorization: secret"]
        func code(_ url: String, by uid: UInt32, _ change: (inout TaskSpecification) -> Void = { _ in }) -> ErrorCode? {
            var admission = Admission(
                settings: Self.settings(), caller: Caller(uid: uid, isAdministrator: true), now: 5)
            var asked = before
            asked.url = url
            change(&asked)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: true, owner: 7)
                return nil
            } catch {
                #expect(error.field == "url")
                return error.code
            }
        }
        for url in ["https://other/a", "http://h/a", "https://h:444/a"] {
            #expect(code(url, by: 8) == .permissionDenied)
            for uid: UInt32 in [0, 7, 500] { #expect(code(url, by: uid) == nil) }
            #expect(code(url, by: 8) { $0.headers = [] } == nil)
            #expect(code(url, by: 8) { $0.headers = ["Accept: a/b"] } == nil)
            before.user = "me"
            #expect(code(url, by: 8) { $0.headers = [] } == .permissionDenied)
            before.user = nil
        }
        #expect(code("https://h/b?c", by: 8) == nil)
        // A host at which a key would log the owner in, and the caller not.
        before.headers = []
        func isRefused(owner: UInt32) -> Bool {
            var admission = Admission(settings: Self.settings(), caller: Caller(uid: 8, isAdministrator: true), now: 5)
            var asked = before
            asked.url = "sftp://me@other/a"
            return (try? admission.readmit(asked, after: before, names: true, owner: owner)) == nil
        }
        #expect(isRefused(owner: 500) && isRefused(owner: 0) && !isRefused(owner: 7))
        // A form is sent with its upload, to whatever host.
        before = TaskSpecification(kind: .upload, url: "https://h/a")
        (before.file, before.form) = ("/f", ["token=secret"])
        #expect(code("https://other/a", by: 8) == .permissionDenied && code("https://other/a", by: 7) == nil)
    }

    @Test("an administrator does not redirect an upload whose file she could not send herself; root and its owner may")
    func contentOfAnother() throws {
        let directory = try TemporaryDirectory(mode: 0o755)
        var before = TaskSpecification(kind: .upload, url: "https://h/a")
        before.file = try directory.write("a", to: "file")
        let path = before.file ?? ""
        func fault(_ uid: UInt32, _ change: (inout TaskSpecification) -> Void) -> FieldError? {
            var asked = before
            change(&asked)
            var admission = Admission(
                settings: Self.settings(uploadRoots: [directory.path]),
                caller: Caller(uid: uid, isAdministrator: true), now: 5)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: false, owner: 7)
                return nil
            } catch {
                return error
            }
        }
        let changes: [(String, (inout TaskSpecification) -> Void)] = [
            ("url", { $0.url = "https://h/other" }), ("url", { $0.url = "https://other/a" }),
            ("user", { $0.user = "me" }), ("headers", { $0.headers = ["Host: other"] }),
        ]
        #expect(chmod(path, 0o600) == 0)
        for (field, change) in changes {
            #expect(fault(8, change)?.field == field && fault(8, change)?.code == .permissionDenied)
            for uid: UInt32 in [0, 7, 500] { #expect(fault(uid, change) == nil) }
        }
        #expect(fault(8) { $0.priority = .high } == nil)
        // A file that the caller may read could have been sent there by the caller.
        #expect(chmod(path, 0o644) == 0)
        for (_, change) in changes { #expect(fault(8, change) == nil) }
    }

    @Test("an administrator sends, and lays, nothing elsewhere that another user's cookies, proxy or rights bring")
    func secretsThatStay() throws {
        func fault(
            _ owner: UInt32, _ prepare: (inout TaskSpecification) -> Void, _ change: (inout TaskSpecification) -> Void
        )
            -> FieldError?
        {
            var before = TaskSpecification(url: "https://h/a")
            prepare(&before)
            var asked = before
            change(&asked)
            var admission = Admission(
                settings: Self.settings(), caller: Caller(uid: 8, isAdministrator: true), now: 5)
            do throws(FieldError) {
                _ = try admission.readmit(asked, after: before, names: true, owner: owner)
                return nil
            } catch {
                return error
            }
        }
        let secrets: [(inout TaskSpecification) -> Void] = [
            { $0.cookies = "h\tFALSE\t/\tFALSE\t0\ta\tb" }, { $0.proxy = "http://u:p@proxy:3128" },
            { $0.headers = ["Authorization: secret"] }, { $0.user = "me" }, { $0.netrc = "machine h login me" },
        ]
        for secret in secrets {
            #expect(fault(7, secret) { $0.url = "https://other/a" }?.field == "url")
            #expect(fault(7, secret) { $0.directory = "/srv/elsewhere" }?.field == "directory")
            #expect(fault(7, secret) { $0.insecure = true }?.field == "insecure")
            let isKept = fault(7, secret) { $0.proxy = "http://elsewhere:3128" }?.field == "proxy"
            var task = TaskSpecification(url: "https://h/a")
            secret(&task)
            // With its own proxy a task loses the only secret that it had.
            #expect(isKept == (task.proxy == nil))
            #expect(fault(7, secret) { $0.limit = 5 } == nil)
        }
        #expect(fault(7, { _ in }) { $0.url = "https://other/a" } == nil)
        #expect(fault(7, { _ in }) { $0.directory = "/srv/elsewhere" } == nil)
        #expect(fault(7, { _ in }) { $0.insecure = true } == nil)
        #expect(fault(7, { $0.insecure = true }) { $0.insecure = false } == nil)
        #expect(fault(0, { _ in }) { $0.directory = "/srv/elsewhere" }?.field == "directory", "root's rights bring it")
    }

    @Test("a file that is not there, or none, is no source")
    func missingSource() throws {
        let directory = try TemporaryDirectory()
        for path in [directory.file("none"), directory.path, "/dev/null"] {
            var specification = TaskSpecification(kind: .upload, url: "http://h/a")
            specification.file = path
            #expect {
                try Self.admit(specification, Self.settings(daemonUser: 1000))
            } throws: { error in
                (error as? FieldError)?.field == "file"
            }
        }
    }

    /// Returns whether `owner` may upload `path`; the daemon runs as uid 500.
    private static func may(
        _ owner: UInt32, groups: [UInt32] = [], _ path: String, roots: [String]
    ) throws -> Bool {
        do throws(TransferError) {
            let user = UserIdentity(uid: owner, groups: groups)
            _ = try UploadPermission(settings: settings(uploadRoots: roots), user: user).open(path)
            return true
        } catch {
            #expect(error.code == .permissionDenied)
            return false
        }
    }

    @Test("the daemon's own user and root may send any file, others what is theirs or everyone's beneath the roots")
    func uploads() throws {
        let directory = try TemporaryDirectory(mode: 0o755)
        let root = try directory.makeDirectory("out")
        try directory.makeDirectory("outside")
        let inside = try directory.write("a", to: "out/inside")
        let outside = try directory.write("a", to: "outside/file")
        let me = getuid()
        // Root may read everything; the files then belong to another user.
        let owner: UInt32 = me == 0 ? 4_000 : me
        if me == 0 { try #require(chown(inside, 4_000, 4_000) == 0 && chown(outside, 4_000, 4_000) == 0) }
        chmod(inside, 0o600)
        chmod(outside, 0o644)

        #expect(try Self.may(0, outside, roots: []))
        #expect(try Self.may(500, outside, roots: []))
        #expect(try !Self.may(owner, outside, roots: []))
        #expect(try !Self.may(owner, outside, roots: [root]))
        #expect(try Self.may(owner, inside, roots: [root]))
        #expect(try Self.may(owner, inside, roots: [root + "/"]))
        #expect(try Self.may(owner, inside, roots: ["/"]))
        #expect(try !Self.may(owner, inside, roots: [directory.file("ou")]), "a root is a directory, not a prefix")
        #expect(try !Self.may(4_001, inside, roots: [root]), "it is neither theirs nor everyone's")
        chmod(inside, 0o604)
        #expect(try Self.may(4_001, inside, roots: [root]))
        #expect(try !Self.may(4_001, root + "/../outside/file", roots: [root]))
    }

    @Test("a link leads out of the roots for nobody, and a root may be a link itself")
    func links() throws {
        let directory = try TemporaryDirectory(mode: 0o755)
        let root = try directory.makeDirectory("out")
        let inside = try directory.write("a", to: "out/inside")
        let outside = try directory.write("a", to: "outside")
        chmod(inside, 0o644)
        chmod(outside, 0o644)
        try #require(symlink(outside, root + "/link") == 0 && symlink(root, directory.file("alias")) == 0)
        #expect(try !Self.may(4_000, root + "/link", roots: [root]))
        #expect(try Self.may(4_000, directory.file("alias/inside"), roots: [root]))
        #expect(try Self.may(4_000, inside, roots: [directory.file("alias")]))
    }

    @Test(
        "a file is anyone's to send only as far as the kernel would let them read it",
        .enabled(if: getuid() == 0, "needs files of several users"),
        arguments: [
            // The mode of the file, whose owner and group are 4000; the mode of the directory above it; the caller's
            // uid and groups; whether access is allowed.
            (0o604, 0o755, 4_001, [4_000], false), (0o604, 0o755, 4_001, [7], true),
            (0o640, 0o755, 4_001, [7, 4_000], true),
            (0o640, 0o755, 4_001, [], false), (0o044, 0o755, 4_000, [4_000], false), (0o644, 0o700, 4_001, [], false),
            (0o644, 0o701, 4_001, [], true), (0o644, 0o750, 4_001, [4_000], true),
            (0o644, 0o705, 4_001, [4_000], false),
        ] as [(Int, Int, UInt32, [UInt32], Bool)])
    func rights(file: Int, above: Int, uid: UInt32, groups: [UInt32], isAllowed: Bool) throws {
        let directory = try TemporaryDirectory(mode: 0o755)
        let root = try directory.makeDirectory("out")
        let inner = try directory.makeDirectory("out/inner/deep")
        let path = try directory.write("a", to: "out/inner/deep/file")
        for made in [root + "/inner", inner, path] { try #require(chown(made, 4_000, 4_000) == 0) }
        try #require(chmod(root, 0o755) == 0 && chmod(inner, 0o755) == 0)
        try #require(chmod(path, mode_t(file)) == 0 && chmod(root + "/inner", mode_t(above)) == 0)
        #expect(try Self.may(uid, groups: groups, path, roots: [root]) == isAllowed)
        // The kernel's verdict.
        let command =
            ["setpriv", "--reuid", "\(uid)", "--regid", "\(groups.first ?? 9)"]
            + (groups.isEmpty ? ["--clear-groups"] : ["--groups", groups.map(String.init).joined(separator: ",")])
        #expect(try Self.reads(command, path) == isAllowed)
    }

    /// Returns whether a process that `command` starts may read a file.
    private static func reads(_ command: [String], _ path: String) throws -> Bool {
        let child = try ChildProcess(command + ["test", "-r", path])
        while true {
            if let status = child.poll() { return status == .exited(0) }
            usleep(2_000)
        }
    }

    @Test("no path is followed where nothing may be uploaded")
    func unfollowed() throws {
        let directory = try TemporaryDirectory(mode: 0o755)
        let link = directory.file("link")
        try #require(symlink(try directory.write("a", to: "file"), link) == 0)
        // Following a link updates its access time, unless its file system keeps none.
        func isRead(_ roots: [String]) throws -> Bool {
            let times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            try #require(utimensat(AT_FDCWD, link, times, AT_SYMLINK_NOFOLLOW) == 0)
            _ = try Self.may(4_000, link, roots: roots)
            var status = stat()
            try #require(lstat(link, &status) == 0)
            return status.st_atim.tv_sec != 1
        }
        guard try isRead([directory.path]) else { return }
        #expect(try !isRead([]))
    }
}
