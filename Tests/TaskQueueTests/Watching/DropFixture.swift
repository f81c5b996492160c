import FoundationEssentials
import Glibc
import Logging
import TaskFiles
import TaskModel
import TaskStore
import TestSupport
import Transfer

@testable import TaskQueue

/// A watched directory, a queue, and a clock that advances only on request.
final class DropFixture: Sendable {
    let base: QueueFixture
    let clock = ManualClock()
    let path: String
    private let defaults: EntryDefaults
    private let mayQueue: Bool

    static let entry = "downloads: [{url: 'http://h/a', paused: true}]\n"

    init(
        defaults: String? = nil, mayQueue: Bool = true, _ change: (inout QueueSettings) -> Void = { _ in }
    ) async throws {
        base = try await QueueFixture(clock: clock.clock, change)
        path = try base.directory.makeDirectory("drop")
        self.mayQueue = mayQueue
        let text = "watch: [{directory: \(path), defaults: \(defaults ?? "{}")}]"
        self.defaults = try Configuration(parsing: text, file: "f").watch.first?.defaults ?? EntryDefaults()
    }

    var intake: DropIntake {
        let mayQueue = mayQueue
        return DropIntake(
            watch: Watch(directory: path, defaults: defaults), queue: base.queue,
            rules: DropRules(
                mayQueue: { _ in mayQueue }, isAdministrator: { _ in false },
                readFile: { (path, _) throws(UnreadableFile) in Array("secret of \(path)".utf8) }),
            clock: clock.clock, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            work: BlockingWork(name: "test"))
    }

    var directory: Directory {
        get throws { try Directory.open(root: path) }
    }

    func round(polls: Bool = false) throws -> DropRound {
        DropRound(directory: try directory, intake: intake, polls: polls)
    }

    func drop(_ text: String, as name: String) throws {
        try base.directory.write(text, to: "drop/\(name)")
    }

    /// The paths of all entries beneath the watched directory except directories.
    var files: [String] {
        TemporaryDirectory.names(beneath: path).filter { name in
            var status = stat()
            return lstat("\(path)/\(name)", &status) == 0 && status.st_mode & S_IFMT != S_IFDIR
        }.sorted()
    }

    func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: "\(path)/\(name)")), as: UTF8.self)
    }

    var tasks: [TaskStatus] {
        get async throws {
            try await base.queue.page(
                TaskFilter(), after: nil, limit: 100, newest: nil, for: QueueFixture.administrator)
        }
    }

    var receipts: [String] {
        get throws { try base.queue.receipts(beginningWith: "") }
    }

    /// Returns the identity of a file in the watched directory.
    func identity(of name: String) throws -> UploadSource.Identity {
        guard case .file(let file) = try directory.entry(name) else { throw SystemError("opening \(name)") }
        return file.identity
    }
}
