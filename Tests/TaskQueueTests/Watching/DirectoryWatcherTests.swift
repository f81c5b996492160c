import Glibc
import Logging
import TaskFiles
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Watched directories", .timeLimit(.minutes(2)))
struct DirectoryWatcherTests {
    private func watcher(_ fixture: DropFixture) -> DirectoryWatcher {
        DirectoryWatcher(
            [fixture.intake.watch], queue: fixture.base.queue, rules: fixture.intake.rules, clock: fixture.clock.clock,
            logger: fixture.intake.logger)
    }

    @Test("files that are written or moved here are taken as they come, and those that were there before")
    func arrivals() async throws {
        let fixture = try await DropFixture()
        try fixture.drop(DropFixture.entry, as: "before")
        let watcher = watcher(fixture)
        watcher.start()
        try await eventually(that: "what was there before is taken") {
            fixture.clock.advance(by: 1_000)
            return fixture.files.contains(".done/before")
        }
        try fixture.drop(DropFixture.entry, as: "written")
        try await eventually(that: "what is written is taken") { fixture.files.contains(".done/written") }
        let elsewhere = try fixture.base.directory.write(DropFixture.entry, to: "elsewhere")
        #expect(rename(elsewhere, "\(fixture.path)/moved") == 0)
        try await eventually(that: "what is moved here is taken") { fixture.files.contains(".done/moved") }
        await watcher.stop()
        #expect(try await fixture.tasks.count == 3)
    }

    @Test("a directory that is not there yet is looked for, and so is one that was taken away")
    func comesLater() async throws {
        let fixture = try await DropFixture()
        #expect(rmdir(fixture.path) == 0)
        let watcher = watcher(fixture)
        watcher.start()
        for name in ["first", "second"] {
            #expect(mkdir(fixture.path, 0o700) == 0)
            try fixture.drop(DropFixture.entry, as: name)
            try await eventually(that: "\(name) is taken") {
                fixture.clock.advance(by: 1_000)
                return fixture.files.contains(".done/\(name)")
            }
            #expect(rename(fixture.path, fixture.path + "-\(name)") == 0)
        }
        await watcher.stop()
        #expect(try await fixture.tasks.count == 2)
    }

    @Test(
        "where the kernel tells nothing, looking finds what comes, also in a directory that took the place of another")
    func polled() async throws {
        let fixture = try await DropFixture()
        let watch = DirectoryWatch(intake: fixture.intake, listen: { _, _ in nil })
        let watching = Task { await watch.run() }
        for name in ["first", "second"] {
            try fixture.drop(DropFixture.entry, as: name)
            try await eventually(that: "\(name) is taken") {
                fixture.clock.advance(by: 1_000)
                return fixture.files.contains(".done/\(name)")
            }
            #expect(rename(fixture.path, fixture.path + "-\(name)") == 0 && mkdir(fixture.path, 0o700) == 0)
        }
        watching.cancel()
        await watching.value
        #expect(try await fixture.tasks.count == 2)
    }

    @Test("after the end nothing is taken")
    func stops() async throws {
        let fixture = try await DropFixture()
        let watcher = watcher(fixture)
        watcher.start()
        await watcher.stop()
        try fixture.drop(DropFixture.entry, as: "late")
        let next = self.watcher(fixture)
        next.start()
        try await eventually(that: "the next one takes it") {
            fixture.clock.advance(by: 1_000)
            return fixture.files.contains(".done/late")
        }
        await next.stop()
        #expect(try await fixture.tasks.count == 1)
    }

    @Test("where downloads may go nothing is watched")
    func downloads() async throws {
        let fixture = try await DropFixture()
        func warnings(_ path: String) -> [String] {
            DirectoryWatcher.warnings(about: [Watch(directory: path)], fixture.base.settings)
        }
        #expect(warnings(fixture.path).isEmpty)
        #expect(warnings(fixture.base.downloads).count == 1)
        #expect(warnings(fixture.base.downloads + "/inner").count == 1)
        #expect(symlink(fixture.base.downloads, fixture.path + "/link") == 0)
        #expect(warnings(fixture.path + "/link").count == 1)
    }
}

@Suite("Changes of directories")
struct DirectoryEventsTests {
    private func event(_ mask: UInt32, _ name: String = "") -> [UInt8] {
        let field = name.isEmpty ? [] : Array(name.utf8) + [UInt8](repeating: 0, count: 16 - name.utf8.count % 16)
        func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
        return word(1) + word(mask) + word(0) + word(UInt32(field.count)) + field
    }

    @Test("of what the kernel tells, complete files, losses and ends are kept")
    func kept() {
        var news = DirectoryEvents.Changes()
        let bytes =
            event(0x08, "a") + event(0x80, "b") + event(0x08, "b") + event(0x4000_0080, "directory") + event(0x02, "c")
        DirectoryEvents.add(bytes[...], to: &news)
        #expect(news == .init(closed: ["a", "b"]))
        DirectoryEvents.add(event(0x4000)[...], to: &news)
        #expect(news.isCut && !news.isGone)
        DirectoryEvents.add(event(0x800)[...], to: &news)
        #expect(news.isGone)
    }

    @Test("of very many names the rest is found by a look", arguments: [4_096, 5_000])
    func bounded(count: Int) {
        var news = DirectoryEvents.Changes()
        for number in 0..<count { DirectoryEvents.add(event(0x08, "\(number)")[...], to: &news) }
        #expect(news.closed.count == 4_096 && news.isCut == (count > 4_096))
    }

    @Test("bytes that are no whole events say nothing")
    func broken() {
        var news = DirectoryEvents.Changes()
        DirectoryEvents.add(event(0x08, "a").dropLast(), to: &news)
        DirectoryEvents.add([1, 2, 3][...], to: &news)
        #expect(news == .init())
    }
}
