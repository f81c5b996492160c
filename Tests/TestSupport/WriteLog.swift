import CLinux
import FoundationEssentials
import Glibc

/// A log of a program's disk operations, recorded by strace(1). It can produce the disk states that a power cut at any
/// moment could have left: bytes that no sync covered are present or absent, sector by sector and in any order.
///
/// Directories, sizes, names and attributes are ordered as in the journal of ext4: a sync also commits everything
/// before it.
package struct WriteLog: Sendable {
    private enum Action: Sendable {
        /// The creation of a file if it does not exist.
        case create
        /// The creation of a file without a name (O_TMPFILE). strace shows a path for it that does not exist.
        case createUnnamed
        /// A name for such a file.
        case link(String)
        case write(offset: Int64, [UInt8])
        case truncate(Int64)
        case rename(String)
        case unlink
        case makeDirectory
        case set(attribute: String, [UInt8])
        case remove(attribute: String)
        /// A sync of a file, or of a directory with all names and attributes before it.
        case sync
        /// A sync of the file system (syncfs), which covers everything before it.
        case syncAll
        /// A failed system call without effect.
        case failed
    }

    private struct Event: Sendable {
        var path: String
        var action: Action
        /// The line numbers of the log at which the call began and returned.
        var begun: Int
        var ended = Int.max
    }

    private var events: [Event] = []
    /// The number of lines in the log.
    package private(set) var end = 0
    private let roots: [String]

    private static let calls = """
        openat,openat2,pwrite64,pwritev,write,writev,ftruncate,fallocate,fdatasync,fsync,syncfs,rename,renameat,\
        renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,fsetxattr,setxattr,fremovexattr,copy_file_range
        """

    /// Returns a prefix for a program's command line. The program remains the child that was started.
    ///
    /// - Parameter log: the file to which the calls are written.
    package static func prefix(log: String) -> [String] {
        ["strace", "-D", "-f", "-y", "-xx", "-s", "1100000", "-o", log, "-e", "trace=\(calls)"]
    }

    /// Returns the number of lines in a log, as a measure of the program's progress.
    package static func lines(in log: String) -> Int { textOfFile(at: log).utf8.count { $0 == UInt8(ascii: "\n") } }

    /// Returns whether the program has ended and the log is complete.
    package static func isComplete(_ log: String) -> Bool {
        let descriptor = open(log, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var tail = [UInt8](repeating: 0, count: 100)
        let size = lseek(descriptor, 0, SEEK_END)
        let count = pread(descriptor, &tail, tail.count, max(0, size - tail.count))
        return count > 0 && String(decoding: tail[..<count], as: UTF8.self).contains("+++ ")
    }

    /// Reads a log.
    ///
    /// - Parameters:
    ///   - log: the file passed to ``prefix(log:)``.
    ///   - roots: the directories to examine. When the program started they were empty except for the files in `over`.
    ///   - over: the files that existed on disk when the program started, each with the path of a copy of its contents.
    package init(_ log: String, beneath roots: [String], over: [String: String] = [:]) throws {
        self.roots = roots
        for (path, copy) in over {
            let content = [UInt8](try Data(contentsOf: URL(filePath: copy)))
            for action in [.create, .write(offset: 0, content), .sync] as [Action] {
                events.append(Event(path: path, action: action, begun: 0, ended: 0))
            }
        }
        var unfinished: [Substring: Int] = [:]
        // The paths of files without a name, by the descriptors with which they were made.
        var descriptors: [Substring: String] = [:]
        for line in textOfFile(at: log).split(separator: "\n", omittingEmptySubsequences: false) {
            end += 1
            guard let space = line.firstIndex(of: " ") else { continue }
            let thread = line[..<space]
            let call = line[space...].drop { $0 == " " }
            if call.hasPrefix("<... ") {
                guard let index = unfinished.removeValue(forKey: thread) else { continue }
                events[index].ended = Self.failed(call) ? .max : end
                if Self.failed(call) { events[index].action = .failed }
                if case .createUnnamed = events[index].action {
                    events[index].path = Self.returnedPath(of: call)
                    descriptors[Self.returnedNumber(of: call)] = events[index].path
                }
                continue
            }
            let isUnfinished = call.hasSuffix("<unfinished ...>")
            if !isUnfinished, Self.failed(call) { continue }
            guard var event = try event(call, descriptors), isInside(event.path) else { continue }
            if case .createUnnamed = event.action { descriptors[Self.returnedNumber(of: call)] = event.path }
            event.begun = end
            event.ended = isUnfinished ? .max : end
            if isUnfinished { unfinished[thread] = events.count }
            events.append(event)
        }
    }

    /// Returns the path of the descriptor that a call returned.
    private static func returnedPath(of call: Substring) -> String {
        guard let result = call.lastIndex(of: "=") else { return "" }
        return String(decoding: bytes(of: call[result...]), as: UTF8.self)
    }

    /// Returns the number of the descriptor that a call returned.
    private static func returnedNumber(of call: Substring) -> Substring {
        guard let result = call.lastIndex(of: "=") else { return "" }
        return call[result...].dropFirst().drop { $0 == " " }.prefix { $0.isNumber }
    }

    private static func failed(_ call: Substring) -> Bool {
        String(Substring(call.utf8.suffix(100))).contains(" = -1 ")
    }

    private func isInside(_ path: String) -> Bool {
        // Memory-mapped files are written without system calls. They are created again when the database is opened.
        roots.contains { path == $0 || path.hasPrefix($0 + "/") } && !path.hasSuffix("-shm") && !path.hasSuffix("/lock")
    }

    /// Parses a call.
    ///
    /// - Returns: `nil` if the call does not affect the disk.
    private func event(_ call: Substring, _ descriptors: [Substring: String]) throws -> Event? {
        guard let open = call.firstIndex(of: "(") else { return nil }
        let name = call[..<open]
        let words = call[call.index(after: open)...].split(separator: ", ")
        func text(_ index: Int) -> String { String(decoding: Self.bytes(of: words[index]), as: UTF8.self) }
        /// Returns the path of a name relative to the directory in the preceding argument.
        func place(_ index: Int) -> String {
            let (directory, name) = (text(index), text(index + 1))
            return name.hasPrefix("/") ? name : directory + "/" + name
        }
        func number(_ word: Substring) -> Int64 { Int64(word.prefix { $0.isNumber }) ?? 0 }
        func one(_ path: String, _ action: Action) -> Event { Event(path: path, action: action, begun: 0) }
        switch name {
        case "openat" where call.contains("O_TMPFILE"):
            return one(call.hasSuffix("<unfinished ...>") ? text(0) : Self.returnedPath(of: call), .createUnnamed)
        case "linkat" where call.contains("AT_EMPTY_PATH"): return one(text(0), .link(place(2)))
        case "linkat" where call.contains("AT_SYMLINK_FOLLOW"):
            guard let number = text(1).split(separator: "/").last, let path = descriptors[number] else { return nil }
            return one(path, .link(place(2)))
        case "openat", "openat2": return call.contains("O_CREAT") ? one(place(0), .create) : nil
        case "pwrite64":
            let bytes = Self.bytes(of: words[1])
            let path = text(0)
            guard isInside(path) else { return nil }
            guard Int64(bytes.count) == number(words[2]) else { throw Unusable(reason: "strace cut a write short") }
            return one(path, .write(offset: number(words[3]), bytes))
        case "ftruncate": return one(text(0), .truncate(number(words[1])))
        case "fdatasync", "fsync": return one(text(0), .sync)
        case "syncfs": return one(text(0), .syncAll)
        case "rename": return one(text(0), .rename(text(1)))
        case "renameat", "renameat2": return one(place(0), .rename(place(2)))
        case "unlink": return one(text(0), .unlink)
        case "unlinkat": return one(place(0), .unlink)
        case "mkdir": return one(text(0), .makeDirectory)
        case "mkdirat": return one(place(0), .makeDirectory)
        case "fsetxattr": return one(text(0), .set(attribute: text(1), Self.bytes(of: words[2])))
        case "fremovexattr": return one(text(0), .remove(attribute: text(1)))
        default:
            if isInside(text(0)) { throw Unusable(reason: "no one knows what \(name) does to a disk") }
            return nil
        }
    }

    /// Returns the bytes of a string or of a descriptor's path, which strace writes in hexadecimal digits.
    private static func bytes(of word: Substring) -> [UInt8] {
        let digits = Array(word.utf8)
        guard let start = digits.firstIndex(of: UInt8(ascii: "\\")) else { return [] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity((digits.count - start) / 4)
        func value(_ digit: UInt8) -> UInt8 { digit < 0x60 ? digit - 0x30 : digit - 0x57 }
        var index = start
        while index + 3 < digits.count, digits[index] == UInt8(ascii: "\\") {
            bytes.append(value(digits[index + 2]) << 4 | value(digits[index + 3]))
            index += 4
        }
        return bytes
    }

    // MARK: The disk after a power cut

    /// The state of a file on the disk.
    private struct File {
        var content: [UInt8] = []
        var attributes: [String: [UInt8]] = [:]

        mutating func write(_ bytes: ArraySlice<UInt8>, at offset: Int) {
            if content.count < offset + bytes.count {
                content += [UInt8](repeating: 0, count: offset + bytes.count - content.count)
            }
            content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
    }

    private static let sector = 512

    /// Creates below the roots a disk state that a power cut at a given line could have left.
    ///
    /// - Parameter line: a line number of the log, from 0 to ``end``.
    package func leave(cutAt line: Int, using generator: inout some RandomNumberGenerator) throws {
        // Files are identified by number, because their names change.
        var files: [File] = []
        var names: [String: Int] = [:]
        var directories: [String] = []
        let seen = events.filter { $0.begun <= line }
        let subjects = Self.subjects(of: seen)
        let lasting = committed(seen, subjects, at: line, using: &generator)
        let luck = ([0, 0.1, 0.5, 0.9, 1] as [Double]).randomElement(using: &generator) ?? 0.5
        files = Array(repeating: File(), count: (subjects.compactMap(\.self).max() ?? -1) + 1)
        for (index, event) in seen.enumerated() {
            guard let subject = subjects[index] else {
                if case .makeDirectory = event.action, index < lasting { directories.append(event.path) }
                continue
            }
            switch event.action {
            case .write(let offset, let bytes):
                let isDurable = isSynced(index, seen, subjects, at: line)
                for start in stride(from: 0, to: bytes.count, by: Self.sector) {
                    let sector = bytes[start..<min(bytes.count, start + Self.sector)]
                    if isDurable || Double.random(in: 0..<1, using: &generator) < luck {
                        files[subject].write(sector, at: Int(offset) + start)
                    }
                }
            case .create: if index < lasting { names[event.path] = subject }
            case .link(let name):
                // The entry and the file's link count may be in different transactions. Only a sync of the file system
                // surely covers both.
                let isCovered = seen[index...].contains { other in
                    guard case .syncAll = other.action else { return false }
                    return other.begun >= event.ended && other.ended <= line
                }
                let isLucky = Bool.random(using: &generator)
                if isCovered || (index < lasting && isLucky) { names[name] = subject }
            case .truncate(let size):
                guard index < lasting else { break }
                let content = files[subject].content.prefix(Int(size))
                files[subject].content = content + [UInt8](repeating: 0, count: Int(size) - content.count)
            case .rename(let new):
                guard index < lasting else { break }
                names[event.path] = nil
                names[new] = subject
            case .unlink: if index < lasting { names[event.path] = nil }
            case .set(let attribute, let value): if index < lasting { files[subject].attributes[attribute] = value }
            case .remove(let attribute): if index < lasting { files[subject].attributes[attribute] = nil }
            case .makeDirectory, .createUnnamed, .sync, .syncAll, .failed: break
            }
        }
        try put(names.mapValues { files[$0] }, directories)
    }

    /// - Returns: for each event the number of its file, or `nil` if it has none.
    private static func subjects(of events: [Event]) -> [Int?] {
        var names: [String: Int] = [:]
        var count = 0
        return events.map { event in
            switch event.action {
            case .makeDirectory, .syncAll: return nil
            case .create:
                if names[event.path] == nil {
                    names[event.path] = count
                    count += 1
                }
                return names[event.path]
            case .createUnnamed:
                names[event.path] = count
                count += 1
                return names[event.path]
            case .link(let name):
                // strace shows the file under its first path from then on.
                guard let subject = names[event.path] else { return nil }
                if event.ended < .max { names[name] = subject }
                return subject
            case .rename(let new):
                guard let subject = names.removeValue(forKey: event.path) else { return nil }
                if event.ended < .max { names[new] = subject } else { names[event.path] = subject }
                return subject
            case .unlink:
                return event.ended < .max ? names.removeValue(forKey: event.path) : names[event.path]
            case .write, .truncate, .set, .remove, .sync, .failed: return names[event.path]
            }
        }
    }

    private func isSynced(_ index: Int, _ seen: [Event], _ subjects: [Int?], at line: Int) -> Bool {
        seen.indices.contains { other in
            switch seen[other].action {
            case .sync where subjects[other] == subjects[index]: break
            case .syncAll: break
            default: return false
            }
            return seen[other].begun >= seen[index].ended && seen[other].ended <= line
        }
    }

    /// - Returns: the number of events whose names, sizes and attributes are on the disk: all that a sync covers, and a
    ///   random number of later events.
    private func committed(
        _ seen: [Event], _ subjects: [Int?], at line: Int, using generator: inout some RandomNumberGenerator
    ) -> Int {
        var lasting = 0
        for (index, event) in seen.enumerated() {
            switch event.action {
            case .sync, .syncAll: if event.ended > line { continue }
            default: continue
            }
            // The sync of a directory covers everything before it; that of a file covers the operations on that file.
            let covered = seen[..<index].indices.last { other in
                seen[other].ended <= event.begun && (subjects[index] == nil || subjects[other] == subjects[index])
            }
            lasting = max(lasting, (covered ?? -1) + 1)
        }
        return Int.random(in: lasting...seen.count, using: &generator)
    }

    private func put(_ files: [String: File], _ directories: [String]) throws {
        for root in roots {
            for name in try FileManager.default.contentsOfDirectory(atPath: root) {
                try FileManager.default.removeItem(atPath: root + "/" + name)
            }
        }
        for directory in directories where !roots.contains(directory) { _ = mkdir(directory, 0o755) }
        for (path, file) in files {
            let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw SystemError("making \(path)") }
            defer { close(descriptor) }
            guard pwrite(descriptor, file.content, file.content.count, 0) == file.content.count else {
                throw SystemError("writing \(path)")
            }
            for (name, value) in file.attributes {
                guard linux_fsetxattr(descriptor, name, value, value.count) == 0 else { throw SystemError(name) }
            }
        }
    }
}
