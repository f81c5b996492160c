import Glibc
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Dropped files")
struct DropRoundTests {
    @Test("a file that was closed is queued for its owner and moved away with a note of it")
    func closed() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop(DropFixture.entry, as: "a.yaml")
        #expect(try await round.process(closed: ["a.yaml"], .named) == nil)
        let tasks = try await fixture.tasks
        #expect(tasks.map(\.url) == ["http://h/a"] && tasks.map(\.owner) == [getuid()])
        #expect(tasks.map(\.batch) == [nil])
        #expect(fixture.files == [".done/a.yaml", ".done/a.yaml.note.txt"])
        #expect(try fixture.text(".done/a.yaml.note.txt") == "1 added, 0 updated, 0 unchanged\nids: 1\n")
        #expect(try fixture.receipts.isEmpty)
    }

    @Test("a queue file's own batch is applied, so that a second one updates the first")
    func batch() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        for name in ["a", "b"] {
            try fixture.drop("batch: nightly\n" + DropFixture.entry, as: name)
            _ = try await round.process(closed: [name], .named)
        }
        #expect(try await fixture.tasks.map(\.batch) == ["nightly"])
        #expect(try fixture.text(".done/b.note.txt") == "batch nightly: 0 added, 0 updated, 1 unchanged\n")
    }

    @Test("A40: a file under a lease is tried again later, and the files beside it are queued")
    func leased() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop(DropFixture.entry, as: "a.yaml")
        try fixture.drop(DropFixture.entry, as: "b.yaml")
        var holder: FileLease? = try FileLease(on: fixture.path + "/a.yaml")
        #expect(holder != nil)
        #expect(try await round.process(closed: ["a.yaml", "b.yaml"], .named) == DropRound.delay)
        #expect(fixture.files == [".done/b.yaml", ".done/b.yaml.note.txt", "a.yaml"])
        holder = nil
        fixture.clock.advance(by: DropRound.delay)
        #expect(try await round.process(closed: [], .known) == nil)
        #expect(fixture.files.contains(".done/a.yaml"))
    }

    @Test("a file that was found is taken when two looks some seconds apart find it the same")
    func found() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop("http://h/a\n", as: "list")
        #expect(try await round.process(closed: [], .all) == DropRound.settleTime)
        fixture.clock.advance(by: DropRound.settleTime)
        try fixture.drop("http://h/a\nhttp://h/b\n", as: "list")
        #expect(try await round.process(closed: [], .all) == DropRound.settleTime)
        fixture.clock.advance(by: DropRound.settleTime - 1)
        #expect(try await round.process(closed: [], .known) == 1)
        #expect(try await fixture.tasks.isEmpty)
        fixture.clock.advance(by: 1)
        #expect(try await round.process(closed: [], .known) == nil)
        #expect(try await fixture.tasks.count == 2)
        #expect(fixture.files == [".done/list", ".done/list.note.txt"])
    }

    @Test("a file of which the kernel will tell is not taken before it does, however long it keeps still")
    func untold() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        #expect(try await round.process(closed: [], .all) == nil)
        try fixture.drop("http://h/a\n", as: "list")
        for _ in 0..<3 {
            fixture.clock.advance(by: 60_000)
            #expect(try await round.process(closed: [], .known) == nil)
        }
        #expect(fixture.files == ["list"])
        _ = try await round.process(closed: ["list"], .named)
        #expect(fixture.files == [".done/list", ".done/list.note.txt"])
    }

    @Test("where nobody can tell whether a file is open, it must keep still for longer")
    func patience() {
        #expect(DropRound.settleTime(.none) == 2_000 && DropRound.settleTime(.unknown) == 30_000)
    }

    @Test("where only looking tells, there is always a next look")
    func polls() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round(polls: true)
        #expect(try await round.process(closed: [], .all) == DropRound.pollInterval)
    }

    @Test("a file that someone has open to write is left alone until it is closed")
    func halfWritten() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop("http://h/a\n", as: "list")
        let writer = open("\(fixture.path)/list", O_WRONLY | O_APPEND)
        try #require(writer >= 0)
        for _ in 0..<3 {
            #expect(try await round.process(closed: ["list"], .all) == nil)
            fixture.clock.advance(by: 60_000)
        }
        #expect(fixture.files == ["list"])
        close(writer)
        #expect(try await round.process(closed: ["list"], .named) == nil)
        #expect(fixture.files == [".done/list", ".done/list.note.txt"])
    }

    @Test("what is no plain file, or has the name of an unfinished one, is left alone")
    func leftAlone() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        let names = [".hidden", "a.part", "b.tmp", "c~", "d.crdownload"]
        for name in names { try fixture.drop("http://h/a\n", as: name) }
        let outside = try fixture.base.directory.write("http://h/a\n", to: "outside")
        #expect(symlink(outside, "\(fixture.path)/link") == 0)
        #expect(link(outside, "\(fixture.path)/name") == 0)
        #expect(mkfifo("\(fixture.path)/fifo", 0o600) == 0)
        try fixture.base.directory.makeDirectory("drop/inner")
        for _ in 0..<3 {
            #expect(try await round.process(closed: names + ["link", "name", "fifo", "inner"], .all) == nil)
            fixture.clock.advance(by: 60_000)
        }
        #expect(try await fixture.tasks.isEmpty)
        #expect(fixture.files == (names + ["link", "name", "fifo"]).sorted())
    }

    @Test(
        "a wrong file is moved away with the place of what is wrong, and nothing of it is queued",
        arguments: [
            (
                "http://h/a\nfile:///x\n",
                "a:2:1: \"url\": the protocol file is not allowed; use http, https, ftp, ftps or sftp\n"
            ),
            (
                "http:///\nhttp://h/a\nhttp:///\n",
                "a:1:1: \"url\": has no host; write it in full, as in https://example.org/file\n"
                    + "a:3:1: \"url\": has no host; write it in full, as in https://example.org/file\n"
            ),
            (
                "downloads: [http://h/b]\ndowloads: []\n",
                "a:2:1: \"dowloads\" is not a key here; did you mean \"downloads\"?\n"
            ),
            (
                "downloads:\n- http://h/a\n- {url: http://h/b, directory: /elsewhere}\n",
                "a:3:3: \"directory\": "
            ),
        ])
    func wrong(text: String, note: String) async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop(text, as: "a")
        #expect(try await round.process(closed: ["a"], .named) == nil)
        #expect(fixture.files == [".failed/a", ".failed/a.note.txt"])
        let written = try fixture.text(".failed/a.note.txt")
        #expect(written.hasPrefix(note) && written.hasSuffix("\n"), "\(written)")
        #expect(try await fixture.tasks.isEmpty)
    }

    @Test("what is passed over stands in the note")
    func notes() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop("http://h/a\n pause=true\n disk-cache=0\n", as: "a")
        _ = try await round.process(closed: ["a"], .named)
        #expect(
            try fixture.text(".done/a.note.txt").hasSuffix(
                "ids: 1\na:3:2: warning: \"disk-cache\" only tunes aria2; it is ignored\n"))
    }

    @Test("names that are taken get a number")
    func taken() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        for _ in 0..<2 {
            try fixture.drop("http://h/a\n", as: "a.txt")
            _ = try await round.process(closed: ["a.txt"], .named)
        }
        #expect(try await fixture.tasks.count == 2)
        #expect(
            fixture.files == [
                ".done/a (1).txt", ".done/a (1).txt.note.txt", ".done/a.txt", ".done/a.txt.note.txt",
            ])
    }

    @Test("a kill between queueing and moving leaves nothing that is queued twice")
    func killedBeforeMoving() async throws {
        let fixture = try await DropFixture()
        try fixture.drop("http://h/a\n", as: "a")
        let receipt = DropIntake.receipt(
            try fixture.identity(of: "a"), in: try fixture.directory, fixture.intake.watch)
        var task = TaskSpecification(url: "http://h/a")
        task.paused = true
        _ = try await fixture.base.queue.applyOnce([task], batch: nil, receipt: receipt, by: QueueFixture.me)
        #expect(fixture.files == ["a"])
        // The note was written before the kill.
        try fixture.base.directory.makeDirectory("drop/.done")
        try fixture.drop("1 added, 0 updated, 0 unchanged\nids: 1\n", as: ".done/b.note.txt")
        // The restarted daemon finds the file, even if it was renamed meanwhile.
        #expect(rename("\(fixture.path)/a", "\(fixture.path)/b") == 0)
        var round = try fixture.round()
        _ = try await round.process(closed: [], .all)
        fixture.clock.advance(by: DropRound.settleTime)
        _ = try await round.process(closed: [], .all)
        #expect(try await fixture.tasks.count == 1)
        #expect(fixture.files == [".done/b", ".done/b.note.txt"])
        #expect(try fixture.text(".done/b.note.txt") == "1 added, 0 updated, 0 unchanged\nids: 1\n")
        #expect(try fixture.receipts.isEmpty)
    }

    @Test("a kill between moving and forgetting leaves no receipt behind, and the file may be dropped again")
    func killedAfterMoving() async throws {
        let fixture = try await DropFixture()
        try fixture.drop(DropFixture.entry, as: "a")
        let watch = fixture.intake.watch
        let receipt = DropIntake.receipt(try fixture.identity(of: "a"), in: try fixture.directory, watch)
        _ = try await fixture.base.queue.apply(
            [TaskSpecification(url: "http://h/a")], batch: nil, receipt: receipt, by: QueueFixture.me)
        try fixture.base.directory.makeDirectory("drop/.done")
        #expect(rename("\(fixture.path)/a", "\(fixture.path)/.done/a") == 0)
        var round = try fixture.round()
        _ = try await round.process(closed: [], .all)
        #expect(try fixture.receipts.isEmpty)
        #expect(rename("\(fixture.path)/.done/a", "\(fixture.path)/a") == 0)
        _ = try await round.process(closed: ["a"], .named)
        #expect(try await fixture.tasks.count == 2)
    }

    @Test("a file that cannot be moved away is queued once")
    func stuck() async throws {
        let fixture = try await DropFixture()
        try fixture.drop("not a directory", as: ".done")
        try fixture.drop(DropFixture.entry, as: "a")
        var round = try fixture.round()
        for _ in 0..<3 {
            _ = try await round.process(closed: ["a"], .all)
            fixture.clock.advance(by: 60_000)
        }
        var next = try fixture.round()
        _ = try await next.process(closed: ["a"], .all)
        #expect(try await fixture.tasks.count == 1)
        #expect(fixture.files == [".done", "a"])
    }

    @Test("a file that could not be moved away is moved as soon as that is possible, and was queued once")
    func movedLater() async throws {
        let fixture = try await DropFixture()
        try fixture.drop("not a directory", as: ".done")
        try fixture.drop("not a directory", as: ".failed")
        try fixture.drop(DropFixture.entry, as: "a")
        try fixture.drop("no URL\n", as: "b")
        var round = try fixture.round()
        #expect(try await round.process(closed: ["a", "b"], .named) == DropRound.delay)
        let problems = round.intake.problems.lines
        #expect(problems.map { $0.hasPrefix("\(fixture.path)/") } == [true, true])
        #expect(problems.allSatisfy { $0.contains("\(fixture.path)/.") && $0.contains("Not a directory") })
        #expect(unlink("\(fixture.path)/.done") == 0 && unlink("\(fixture.path)/.failed") == 0)
        fixture.clock.advance(by: DropRound.delay)
        #expect(try await round.process(closed: [], .known) == nil)
        #expect(round.intake.problems.lines.isEmpty)
        #expect(
            fixture.files == [".done/a", ".done/a.note.txt", ".failed/b", ".failed/b.note.txt"])
        #expect(try await fixture.tasks.count == 1)
        #expect(try fixture.receipts.isEmpty)
    }

    @Test("what fails for a reason that passes is left, and tried again every minute")
    func later() async throws {
        let fixture = try await DropFixture { $0.quota.tasksPerOwner = 1 }
        var round = try fixture.round()
        for name in ["a", "b"] { try fixture.drop(DropFixture.entry, as: name) }
        #expect(try await round.process(closed: ["a", "b"], .named) == DropRound.delay)
        #expect(fixture.files == [".done/a", ".done/a.note.txt", "b"])
        let me = Caller(uid: getuid(), isAdministrator: false)
        _ = try await fixture.base.queue.remove([TaskID(1)], deletesFiles: false, by: me)
        fixture.clock.advance(by: DropRound.delay - 1)
        #expect(try await round.process(closed: [], .known) == 1)
        #expect(fixture.files.contains("b"))
        fixture.clock.advance(by: 1)
        #expect(try await round.process(closed: [], .known) == nil)
        #expect(!fixture.files.contains("b"))
    }

    @Test("entries take the directory's defaults, and a time counts from the moment of the drop")
    func defaults() async throws {
        let fixture = try await DropFixture(defaults: "{directory: isos, priority: low, start-at: +1h}")
        var round = try fixture.round()
        try fixture.drop("http://h/a\nhttp://h/b\n", as: "a")
        fixture.clock.advance(by: 5_000)
        _ = try await round.process(closed: ["a"], .named)
        let tasks = try await fixture.tasks
        #expect(tasks.map(\.priority) == [.low, .low])
        #expect(tasks.map(\.path) == ["a", "b"].map { "\(fixture.base.downloads)/isos/\($0)" })
        #expect(tasks.map(\.notBefore) == Array(repeating: fixture.clock.now + 3_600_000, count: 2))
    }

    @Test("an owner who may not use the daemon queues nothing")
    func stranger() async throws {
        let fixture = try await DropFixture(mayQueue: false)
        var round = try fixture.round()
        try fixture.drop(DropFixture.entry, as: "a")
        _ = try await round.process(closed: ["a"], .named)
        #expect(try fixture.text(".failed/a.note.txt") == "user \(getuid()) may not use this daemon\n")
        #expect(try await fixture.tasks.isEmpty)
    }

    @Test("paths that a file names are opened for the daemon's own user and root, and for no one else")
    func secrets() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        let text = "downloads: [{url: 'http://h/a', user: u, password-file: pw, paused: true}]\n"
        try fixture.drop(text, as: "mine")
        _ = try await round.process(closed: ["mine"], .named)
        #expect(try await fixture.tasks.count == 1)
        guard getuid() == 0 else { return }
        try fixture.drop(text, as: "theirs")
        #expect(chown("\(fixture.path)/theirs", 1000, 1000) == 0)
        _ = try await round.process(closed: ["theirs"], .named)
        #expect(
            try fixture.text(".failed/theirs.note.txt").hasPrefix(
                "theirs:1:57: \"password-file\": the daemon does not open"))
        // Without a password file the task belongs to the file's owner.
        try fixture.drop(DropFixture.entry, as: "plain")
        #expect(chown("\(fixture.path)/plain", 1000, 1000) == 0)
        _ = try await round.process(closed: ["plain"], .named)
        #expect(try await fixture.tasks.map(\.owner) == [0, 1000])
    }

    @Test("sources of uploads are relative to the watched directory")
    func uploads() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.base.directory.write("content", to: "report")
        try fixture.drop("uploads: [{file: ../report, url: 'http://h/r', paused: true}]\n", as: "a")
        _ = try await round.process(closed: ["a"], .named)
        #expect(try await fixture.tasks.map(\.path) == ["\(fixture.path)/../report"])
    }

    @Test("a file that is too large is refused")
    func large() async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop("#", as: "a")
        #expect(truncate("\(fixture.path)/a", off_t(DropIntake.sizeLimit) + 1) == 0)
        _ = try await round.process(closed: ["a"], .named)
        #expect(try fixture.text(".failed/a.note.txt").hasPrefix("a is longer than 16.0 MiB"))
    }

    @Test(
        "a file with more values than memory is granted for is refused before it is parsed",
        arguments: ["a,", "- a\n", "{", "a: b ", "<a>", "? "])
    func manyValues(value: String) async throws {
        let fixture = try await DropFixture()
        var round = try fixture.round()
        try fixture.drop("downloads: [" + String(repeating: value, count: 500_001), as: "a.yaml")
        _ = try await round.process(closed: ["a.yaml"], .named)
        let note = try fixture.text(".failed/a.yaml.note.txt")
        #expect(note.hasPrefix("a.yaml may have more than 500000 values"), "\(note)")
    }
}
