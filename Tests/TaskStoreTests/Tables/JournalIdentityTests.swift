import GRDB
import TestSupport
import Testing

@testable import TaskStore

@Suite("The identity of the journal")
struct JournalIdentityTests {
    private let journal = JournalIdentity(name: "b", origins: [.init(name: "a", last: 40)])

    private func start(_ sequence: Int64, _ name: String?) -> JournalIdentity.Start {
        journal.start(after: sequence, in: name, last: 60)
    }

    @Test("a position in this journal holds, and one behind its end is lost")
    func own() {
        for name in ["b", nil] {
            #expect(start(50, name) == .init(sequence: 50, isLost: false))
            #expect(start(60, name) == .init(sequence: 60, isLost: false))
            #expect(start(61, name) == .init(sequence: 60, isLost: true))
            #expect(start(.max, name) == .init(sequence: 60, isLost: true))
            #expect(start(.min, name) == .init(sequence: .min, isLost: false))
        }
    }

    @Test("a position in the original of a backup holds up to the backup")
    func continued() {
        #expect(start(40, "a") == .init(sequence: 40, isLost: false))
        #expect(start(41, "a") == .init(sequence: 40, isLost: true))
        #expect(start(100, "a") == .init(sequence: 40, isLost: true))
    }

    @Test("nothing is known of a position in an unrelated journal")
    func unrelated() {
        #expect(start(0, "c") == .init(sequence: 0, isLost: false))
        #expect(start(5, "c") == .init(sequence: 0, isLost: true))
    }

    @Test("an event keeps its key in the journals that continue its own, and no other event has it")
    func keys() async throws {
        let directory = try TemporaryDirectory()
        var names: [String] = []
        // A store after none, one, two, … restored backups. Between the second and the third nothing happens.
        for events in [2, 1, 0, 1] {
            let store = try TaskStore(directory: directory.path)
            names.append(store.journal.name)
            for _ in 0..<events { _ = try await store.add([.sample()], now: 1) }
            try await store.writes.perform { try JournalIdentity.renew(in: $0) }
            try store.close()
        }
        let store = try TaskStore(directory: directory.path)
        #expect(
            (1...5).map { store.journal.key(of: $0) } == [
                "\(names[0])-1", "\(names[0])-2", "\(names[1])-3", "\(names[3])-4", "\(store.journal.name)-5",
            ])
        #expect(Set(names + [store.journal.name]).count == 5)
        try store.close()
    }

    @Test("the identity survives a restart, and a new one knows where it begins")
    func stored() async throws {
        let directory = try TemporaryDirectory()
        let first = try TaskStore(directory: directory.path)
        let name = first.journal.name
        #expect(name.utf8.count == 16 && first.journal.origins.isEmpty)
        _ = try await first.add([.sample(), .sample()], now: 1)
        try first.close()
        let second = try TaskStore(directory: directory.path)
        #expect(second.journal == first.journal)
        try await second.writes.perform { try JournalIdentity.renew(in: $0) }
        try second.close()
        let third = try TaskStore(directory: directory.path)
        #expect(third.journal.name != name)
        #expect(third.journal.origins == [.init(name: name, last: 2)])
        try third.close()
    }
}
