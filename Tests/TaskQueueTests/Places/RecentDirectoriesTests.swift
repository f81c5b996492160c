import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Directories that were checked a moment ago")
struct RecentDirectoriesTests {
    private let temporary: TemporaryDirectory
    private let directories = RecentDirectories()

    init() throws { temporary = try TemporaryDirectory() }

    private func key(_ directory: String? = nil, uid: UInt32 = 1_000) -> RecentDirectories.Key {
        RecentDirectories.Key(directory: directory, user: UserIdentity(uid: uid, groups: []))
    }

    @Test("a check is valid for the same directory and user, and for a moment")
    func validity() throws {
        let directory = try Directory.open(root: temporary.path)
        directories.record(.init(directory: directory, reservedSpace: 7), for: key(), now: 1_000)
        let found = directories.find(key(), now: 1_000 + RecentDirectories.validity - 1)
        #expect(found?.directory === directory && found?.reservedSpace == 7)
        #expect(directories.find(key(), now: 1_000 + RecentDirectories.validity) == nil)
        #expect(directories.find(key("other"), now: 1_000) == nil)
        #expect(directories.find(key(uid: 1_001), now: 1_000) == nil)
    }

    @Test("finding a directory does not make its check newer")
    func repeated() throws {
        let directory = try Directory.open(root: temporary.path)
        directories.record(.init(directory: directory, reservedSpace: 0), for: key(), now: 0)
        for now in 0..<RecentDirectories.validity { #expect(directories.find(key(), now: now) != nil) }
        #expect(directories.find(key(), now: RecentDirectories.validity) == nil)
    }

    @Test("no directory stays open because it was checked")
    func weak() throws {
        do {
            let directory = try Directory.open(root: temporary.path)
            directories.record(.init(directory: directory, reservedSpace: 0), for: key(), now: 0)
        }
        #expect(directories.find(key(), now: 0) == nil)
    }

    @Test("new settings end all checks, and many directories the earlier ones")
    func removal() throws {
        let directory = try Directory.open(root: temporary.path)
        directories.record(.init(directory: directory, reservedSpace: 0), for: key(), now: 0)
        directories.removeAll()
        #expect(directories.find(key(), now: 0) == nil)
        for number in 0..<1_000 {
            directories.record(.init(directory: directory, reservedSpace: 0), for: key("\(number)"), now: 0)
        }
        let kept = (0..<1_000).count { directories.find(key("\($0)"), now: 0) != nil }
        #expect(kept > 0 && kept <= 64)
    }
}
