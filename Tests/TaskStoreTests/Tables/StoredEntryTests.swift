import TaskModel
import Testing

@testable import TaskStore

@Suite("The stored form of what was asked for")
struct StoredEntryTests {
    @Test("every field comes back; one by one, since each has its own column or place in the JSON")
    func roundTrip() throws {
        let changes: [@Sendable (inout TaskSpecification) -> Void] = [
            { _ in }, { $0.kind = .upload }, { $0.output = "o" }, { $0.directory = "d" }, { $0.file = "/f" },
            { $0.method = "POST" }, { $0.contentType = "a/b" }, { $0.checksum = "md5:00" }, { $0.userAgent = "u" },
            { $0.referer = "r" }, { $0.caCertificates = "c" }, { $0.priority = .low }, { $0.priority = .high },
            { $0.maxSize = 5 }, { $0.startAt = 6 }, { $0.onConflict = .skip }, { $0.noMtime = true },
            { $0.mirrors = ["http://i/a"] }, { $0.metalink = true }, { $0.checksumURL = "http://h/s" }, { $0.size = 7 },
            { $0.connections = .auto }, { $0.batch = "b" }, { $0.key = "k" }, { $0.paused = true },
            { $0.update = true },
        ]
        for change in changes {
            var task = NewTask.sample("https://example.org/ä?q=1")
            change(&task.specification)
            #expect(try StoredEntry(task, identity: "01234567").decoded() == task.specification)
        }
    }

    @Test("a task of defaults needs no JSON")
    func plain() throws {
        let task = NewTask.sample(key: "k", batch: "b", output: "o", priority: .high)
        #expect(try StoredEntry(task, identity: "01234567").specification == nil)
    }

    @Test("URLs that differ in their secret alone are told apart")
    func fingerprints() throws {
        func entry(_ url: String?) throws -> StoredEntry {
            try StoredEntry(.sample().with(secretURL: url), identity: "01234567")
        }
        #expect(try entry("https://example.org/a?token=1") == entry("https://example.org/a?token=1"))
        #expect(try entry("https://example.org/a?token=1") != entry("https://example.org/a?token=2"))
        #expect(try entry(nil).urlFingerprint == nil)
    }
}
