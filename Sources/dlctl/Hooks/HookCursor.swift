import FoundationEssentials
import Glibc
import TaskModel

/// The place of a hook in the journal, in a file of the user's state directory.
///
/// The file has lines `position N`, up to the last of which every event is done, a line `journal NAME` that names the
/// journal in which that is, and lines `done N` for later events. The shell that runs a command appends such a line
/// itself when the command has succeeded, so that a kill of this program does not lose the success. One process uses a
/// cursor at a time, and only after the commands of an earlier process have ended.
final class HookCursor {
    let path: String
    /// The file for events whose command has failed too often.
    let deadLetters: String
    /// The descriptor that the shells inherit. It is locked as long as one of them runs.
    let jobsLock: Int32
    private let processLock: Int32
    private(set) var position: Int64?
    private(set) var journal: String?
    private(set) var done: Set<Int64> = []
    /// The number of lines after which the file is written anew.
    static let longest = 10_000
    private var lines = 0
    /// The number of lines that the file had when it was written.
    private var linesAtFirst = 0

    /// Opens a cursor, and waits for the commands of an earlier process.
    ///
    /// - Parameter waits: called before waiting, with those commands.
    init(name: String, directory: String, waits: ([HookRun]) -> Void) throws(Failure) {
        path = directory + "/" + name
        deadLetters = path + ".failed"
        try Self.makeDirectory(directory)
        processLock = try Self.open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC)
        guard flock(processLock, LOCK_EX | LOCK_NB) == 0 else {
            throw Failure(.failed, field: "--cursor", "another dlctl uses the cursor \(name)")
        }
        jobsLock = try Self.open(path + ".jobs", O_RDWR | O_CREAT | O_CLOEXEC)
        if flock(jobsLock, LOCK_EX | LOCK_NB) != 0 {
            waits(HookRun.read(path))
            while flock(jobsLock, LOCK_EX) != 0 {
                guard errno == EINTR else { throw Self.failure("lock", path + ".jobs") }
            }
        }
        try load()
    }

    deinit {
        _ = close(processLock)  // the lock goes with it
        _ = close(jobsLock)  // the lock goes with it
    }

    /// The directory of the cursors.
    static func directory(_ environment: [String: String]) throws(Failure) -> String {
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return state + "/dld/hooks" }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw .usage("--cursor: HOME is not set, so there is no place to remember it", field: "--cursor")
        }
        return home + "/.local/state/dld/hooks"
    }

    static func isName(_ name: String) -> Bool {
        // These are the names of the files beside a cursor.
        ![".failed", ".lock", ".jobs", ".new", HookRun.suffix].contains(where: name.hasSuffix)
            && (1...64).contains(name.utf8.count)
            && name.utf8.first != UInt8(ascii: ".")
            && name.utf8.allSatisfy {
                $0.isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 | 0x20 || [0x2D, 0x2E, 0x5F].contains($0)
            }
    }

    /// Records the commands that run. The record need not outlast a power failure.
    func record(_ runs: [HookRun]) {
        // Without a record, a command that runs for long is not named by other programs.
        guard let data = try? JSONEncoder().encode(runs) else { return }
        try? data.write(to: URL(filePath: path + HookRun.suffix), options: .atomic)
    }

    // MARK: Contents

    private func load() throws(Failure) {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else {
            if access(path, F_OK) == 0 { throw Self.failure("read", path) }
            return
        }
        // A crash may leave half of the last line. Its event is then not done.
        let end = data.lastIndex(of: UInt8(ascii: "\n")) ?? data.startIndex
        for line in data[..<end].split(separator: UInt8(ascii: "\n")) {
            let words = line.split(separator: UInt8(ascii: " "))
            guard words.count == 2 else { continue }
            let value = String(decoding: words[1], as: UTF8.self)
            switch String(decoding: words[0], as: UTF8.self) {
            case "position": if let number = Int64(value), number >= 0 { position = number }
            case "journal": journal = value
            case "done": if let number = Int64(value) { done.insert(number) }
            default: break
            }
            lines += 1
        }
        if let position { done = done.filter { $0 > position } }
        if position == nil, !data.isEmpty {
            throw Failure(.failed, field: "--cursor", "\(path) is not a cursor of dlctl; remove it to start anew")
        }
    }

    /// Whether the file should be written anew, for which no command may run.
    var isLong: Bool { lines >= max(Self.longest, 2 * linesAtFirst) }

    /// Replaces the file by one with a position and the events done after it.
    ///
    /// - Parameters:
    ///   - journal: the name of the journal; `nil` if it is not known.
    ///   - common: the last event that a new journal has in common with the earlier one. Later events that are done
    ///     were others.
    func set(position: Int64, journal: String?, common: Int64? = nil) throws(Failure) {
        let last = common ?? (journal == self.journal ? .max : .min)
        done = done.filter { $0 > position && $0 <= last }
        let text =
            "position \(position)\n" + (journal.map { "journal \($0)\n" } ?? "")
            + done.sorted().map { "done \($0)\n" }.joined()
        let new = path + ".new"
        let descriptor = try Self.open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
        defer { _ = close(descriptor) }  // fsync has reported every error
        try Self.write(text, to: descriptor, new)
        guard fsync(descriptor) == 0, rename(new, path) == 0 else { throw Self.failure("write", path) }
        self.position = position
        self.journal = journal
        lines = 2 + done.count
        linesAtFirst = lines
    }

    /// Records that the events go on in another journal, with which all done events are in common.
    func continueIn(_ journal: String) throws(Failure) {
        try append("journal \(journal)\n")
        self.journal = journal
    }

    /// Records that an event is done.
    ///
    /// - Parameters:
    ///   - isWritten: whether the shell has written the line.
    ///   - position: the number up to which every event is done with this one.
    func add(_ sequence: Int64, isWritten: Bool, position: Int64) throws(Failure) {
        done.insert(sequence)
        var text = isWritten ? "" : "done \(sequence)\n"
        // An old position would later be taken for events that the journal lost.
        let isAhead = position > self.position ?? 0
        if isAhead { text += "position \(position)\n" }
        try append(text)
        guard isAhead else { return }
        self.position = position
        done = done.filter { $0 > position }
    }

    /// Appends lines, and syncs the file.
    private func append(_ text: String) throws(Failure) {
        lines += 1
        let descriptor = try Self.open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
        defer { _ = close(descriptor) }  // fdatasync has reported every error
        try Self.write(text, to: descriptor, path)
        guard fdatasync(descriptor) == 0 else { throw Self.failure("write", path) }
    }

    /// Returns the file for events whose command has failed too often, where there is no cursor.
    static func deadLettersWithoutCursor() throws(Failure) -> String {
        let directory = try directory(Environment.variables)
        try makeDirectory(directory)
        return directory + "/events.failed"
    }

    /// Appends an event to a file of those whose command has failed.
    static func addDeadLetter(_ line: String, to path: String) throws(Failure) {
        let descriptor = try open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC)
        defer { _ = close(descriptor) }  // fdatasync has reported every error
        try write(line + "\n", to: descriptor, path)
        guard fdatasync(descriptor) == 0 else { throw failure("write", path) }
    }

    // MARK: Files

    private static func makeDirectory(_ directory: String) throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Failure(.failed, code: .io, field: "--cursor", "cannot create the directory \(directory)")
        }
    }

    private static func open(_ path: String, _ flags: Int32) throws(Failure) -> Int32 {
        let descriptor = Glibc.open(path, flags, 0o600)
        guard descriptor >= 0 else { throw failure("open", path) }
        return descriptor
    }

    private static func write(_ text: String, to descriptor: Int32, _ path: String) throws(Failure) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { throw failure("write", path) }
        }
    }

    private static func failure(_ action: String, _ path: String) -> Failure {
        Failure(.failed, code: .io, field: "--cursor", "cannot \(action) \(path): \(SystemText.error(errno))")
    }
}
