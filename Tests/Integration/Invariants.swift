import CLinux
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

/// The invariants I1 to I8 of the list of faults, checked on a daemon, its database and its files.
///
/// `atRest` is for a daemon that was killed or lost its power, `alive` for a running one, `finish` for the end.
struct Invariants {
    /// A task whose creation was acknowledged, and its expected outcome.
    struct Wish {
        enum Fate: Equatable {
            case completes
            case fails(ErrorCode)
            case cancelled, removed
            /// A task whose removal was requested and not yet acknowledged.
            case leaving
            /// A task that its user has paused, until it is resumed.
            case paused
        }

        let id: TaskID
        let resource: Resource
        /// The possible names of the file; tasks that want the same name may get it in any order.
        let names: Set<String>
        var fate = Fate.completes
        /// Whether the task was reported as complete, which must not change.
        var wasCompleted = false
    }

    let daemon: DaemonProcess
    /// The directory of the files, without subdirectories.
    let directory: String
    /// The text printed with each failure.
    let context: String
    var wishes: [Wish] = []
    /// Files of the user that the daemon must not touch.
    var bystanders: [String: Resource] = [:]
    /// The contents of files that a task is to replace.
    var replaced: [String: Resource] = [:]

    init(_ daemon: DaemonProcess, directory: String? = nil, context: String = "") {
        self.daemon = daemon
        self.directory = directory ?? daemon.downloads
        self.context = context
    }

    // MARK: Checks without a daemon

    /// Checks I3, I4 and I5: the database is intact, the bytes that it calls done are on disk, and no final name holds
    /// a partial file.
    func atRest() async throws {
        try await database()
        finalNames()
    }

    private func database() async throws {
        let copy = try TemporaryDirectory()
        for name in ["dld.db", "dld.db-wal", "dld.db-journal"] where exists("\(daemon.stateDirectory)/\(name)") {
            // Checks a copy: opening the database itself would perform the daemon's recovery.
            let from = URL(filePath: "\(daemon.stateDirectory)/\(name)")
            try FileManager.default.copyItem(at: from, to: URL(filePath: copy.file(name)))
        }
        guard exists(copy.file("dld.db")) else { return }
        let check = try await run(["sqlite3", copy.file("dld.db"), "PRAGMA integrity_check"])
        #expect(check.output == "ok\n", "I5 \(context): \(check.output) \(check.error)")
        let tables = try await run(["sqlite3", copy.file("dld.db"), ".tables"])
        // A database whose creation was interrupted has no such table.
        guard tables.output.contains("task_resume") else { return }
        let sql = """
            SELECT (SELECT value FROM meta WHERE name = 'identity') || ' ' || task_id || ' ' || CAST(data AS TEXT)
            FROM task_resume
            """
        for line in try await run(["sqlite3", copy.file("dld.db"), sql]).lines {
            let words = line.split(separator: " ", maxSplits: 2)
            let id = try TaskID(#require(Int64(words[1])))
            guard let wish = wishes.first(where: { $0.id == id }) else { continue }
            let claim = try JSONDecoder().decode(Claim.self, from: Data(words[2].utf8))
            expectTrue(claim, of: wish, part: "\(directory)/.dld-\(words[0])-\(id).part")
        }
    }

    /// The database's record of a part file.
    private struct Claim: Decodable {
        var generation: String
        /// Alternating starts and ends of the byte ranges.
        var ranges: [Int64]
    }

    private func expectTrue(_ claim: Claim, of wish: Wish, part: String) {
        let descriptor = open(part, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var mark = [UInt8](repeating: 0, count: 256)
        let count = linux_fgetxattr(descriptor, "user.dld.part", &mark, mark.count)
        // A part file that has since been started anew does not match the claim.
        guard count > 0, mark[..<count].elementsEqual(claim.generation.utf8) else { return }
        for index in stride(from: 0, to: claim.ranges.count - 1, by: 2) {
            let (start, end) = (claim.ranges[index], claim.ranges[index + 1])
            let expected = wish.resource.bytes(start..<end)
            var there = [UInt8](repeating: 0, count: expected.count)
            let got = pread(descriptor, &there, there.count, Int(start))
            #expect(
                got == expected.count && there == expected,
                "I3 \(context): bytes \(start) to \(end) of task \(wish.id) are not on disk as they should be")
        }
    }

    private func finalNames() {
        for wish in wishes {
            for name in wish.names where exists("\(directory)/\(name)") {
                let path = "\(directory)/\(name)"
                let allowed = [bystanders[name], replaced[name], wish.resource].compactMap(\.self)
                #expect(
                    allowed.contains { $0.size == size(of: path) && $0.difference(fromFileAt: path) == nil },
                    "I4 \(context): \(name) holds neither what was there nor the whole file")
            }
        }
    }

    // MARK: Checks with a daemon

    /// Checks I1, I2 and I8: every task exists in the state that was reported, and every complete one is complete on
    /// disk.
    mutating func alive() throws {
        let tasks = Dictionary(uniqueKeysWithValues: try daemon.tasks().map { ($0.id, $0) })
        for index in wishes.indices {
            let wish = wishes[index]
            guard let task = tasks[wish.id] else {
                #expect([.removed, .leaving].contains(wish.fate), "I1 \(context): task \(wish.id) is gone")
                continue
            }
            #expect(wish.fate != .removed, "I8 \(context): task \(wish.id) is back")
            if wish.fate == .cancelled { #expect(task.state == .cancelled, "I8 \(context): \(task)") }
            if wish.fate == .paused { #expect(task.state == .paused && task.reason == .user, "I8 \(context): \(task)") }
            if wish.wasCompleted { #expect(task.state == .completed, "I2 \(context): \(task)") }
            if task.state == .completed {
                if !wish.wasCompleted { expectWhole(task, wish) }
                wishes[index].wasCompleted = true
            }
        }
    }

    private func expectWhole(_ task: TaskStatus, _ wish: Wish) {
        let path = task.path ?? ""
        let name = String(path.split(separator: "/").last ?? "")
        #expect(
            path == "\(directory)/\(name)" && wish.names.contains(name), "I2 \(context): \(task.id) is called \(path)")
        #expect(wish.resource.difference(fromFileAt: path) == nil, "I2 \(context): task \(task.id)")
    }

    /// Checks I6, I7 and all others: every task ends by itself, and nothing is left over.
    ///
    /// - Returns: the number of bytes that were fetched more than once.
    @discardableResult
    mutating func finish(within limit: Duration = .seconds(90)) async throws -> Int64 {
        var refetched: Int64 = 0
        var names = Set(bystanders.keys)
        var parts = 0
        for index in wishes.indices {
            let wish = wishes[index]
            switch wish.fate {
            case .completes:
                let task = try await daemon.settled(wish.id, within: limit)
                #expect(task.state == .completed, "I6 \(context): \(task)")
                wishes[index].wasCompleted = task.state == .completed
                expectWhole(task, wish)
                let isNew = names.insert(String(task.path?.split(separator: "/").last ?? "")).inserted
                #expect(isNew, "I7 \(context): two tasks are called \(task.path ?? "")")
                refetched += max(0, task.bytesFetched - wish.resource.size)
            case .fails(let code):
                let task = try await daemon.settled(wish.id, within: limit)
                #expect(task.state == .failed && task.error?.code == code, "I6 \(context): \(task)")
                // Its removed part file may reappear after a power cut: the task still exists, and removing it removes
                // the file.
                parts += 1
            case .cancelled, .paused: parts += 1
            case .removed, .leaving: break
            }
        }
        try alive()
        finalNames()
        for (name, resource) in bystanders {
            #expect(resource.difference(fromFileAt: "\(directory)/\(name)") == nil, "\(context): \(name) was touched")
        }
        let found = Set(try FileManager.default.contentsOfDirectory(atPath: directory))
        let left = found.filter { $0.hasPrefix(".dld-") }
        #expect(left.count <= parts, "I7 \(context): \(left) are left over")
        #expect(found.subtracting(left).subtracting(["lost+found"]) == names, "I7 \(context)")
        let known = Set(wishes.filter { $0.fate != .removed }.map(\.id))
        #expect(Set(try daemon.tasks().map(\.id)) == known, "I7 \(context)")
        #expect(daemon.isRunning, "I6 \(context): \(daemon.log.suffix(2000))")
        return refetched
    }
}
