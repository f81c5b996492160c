import FoundationEssentials
import Glibc
import TaskFiles
import TaskModel
import TaskStore
import TestSupport

@testable import TaskQueue
@testable import Transfer

/// Two roots that contain links to other places, and a surrounding tree in which nothing may change.
///
/// Each case takes the path of a task in the daemon: admission, the place, the opened directory, the name, and, if it
/// is to be written, the part file and its publication.
final class NameTrial {
    let settings: QueueSettings
    let home: String
    /// The root for absolute directories.
    let other: String
    private let temporary: TemporaryDirectory
    private let outside: String
    private let beside: String
    private let publisher: Publisher
    private let links: [(path: String, target: String)]
    private var before: [String: String] = [:]
    private(set) var refused = 0
    private(set) var opened = 0
    private(set) var written = 0

    /// A violation of the rules.
    struct Escape: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    init() throws {
        temporary = try TemporaryDirectory(isFast: true)
        guard let real = realpath(temporary.path, nil) else { throw SystemError("realpath") }
        defer { free(real) }
        let base = String(cString: real)
        (home, other, outside, beside) = (base + "/home", base + "/roots/other", base + "/outside", base + "/homex")
        for name in ["home/down", "roots/other", "outside/a/b", "homex/a"] { try temporary.makeDirectory(name) }
        for name in ["outside/passwd", "outside/a/f", "homex/f", "above"] { try temporary.write(name, to: name) }
        var links: [(String, String)] = []
        for root in [home, other] {
            let targets = [
                "../outside", outside, "..", ".", "loop", "/", "/proc/self/cwd", outside + "/passwd",
                base + "/roots/other", "down/../../outside/a",
            ]
            links += zip(HostileNames.links, targets).map { (root + "/" + $0, $1) }
        }
        links.append((home + "/down/out", outside))
        self.links = links
        var settings = QueueSettings(Configuration(), downloadDirectory: home, daemonUser: getuid())
        settings.downloadRoots = [home, other]
        self.settings = settings
        publisher = try Publisher()
        restoreLinks()
        before = surroundings()
    }

    deinit { publisher.stop() }

    private func restoreLinks() {
        for (path, target) in links where (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != target {
            unlink(path)
            rmdir(path)
            symlink(target, path)
        }
    }

    /// Returns the identity and times of every file outside the roots, by path.
    private func surroundings() -> [String: String] {
        var found: [String: String] = [:]
        func note(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return }
            found[path] =
                "\(status.st_ino) \(status.st_mode) \(status.st_nlink) \(status.st_size) "
                + "\(status.st_mtim) \(status.st_ctim)"
        }
        for tree in [outside, beside] {
            note(tree)
            for name in TemporaryDirectory.names(beneath: tree) { note(tree + "/" + name) }
        }
        let base = String(home.dropLast("/home".count))
        for path in [base, base + "/roots", base + "/above"] { note(path) }
        return found
    }

    /// The paths outside the roots that have changed.
    var changes: [String] {
        let after = surroundings()
        return Set(before.keys).union(after.keys).filter { before[$0] != after[$0] }.sorted()
    }

    /// Creates a directory that the code under test must never create.
    func meddle() { mkdir(outside + "/a/new", 0o700) }

    // MARK: Admission and writing

    /// The inputs of a task: its specification, and the server's response.
    struct Case {
        var specification: TaskSpecification
        /// The specification before it was changed.
        var before: TaskSpecification?
        /// The lines of its response's head.
        var head: [UInt8]?
        /// The name that an earlier attempt's response suggested.
        var suggested: String?
        /// The name in the Metalink at its URL.
        var described: String?
        /// The fields for which it may be refused.
        var fields: Set<String> = []
    }

    /// - Parameter writes: whether to write the file as well.
    func attempt(_ item: Case, writes: Bool) async throws {
        let task: TaskSpecification
        var admission = Admission(settings: settings, caller: Caller(uid: 1000, isAdministrator: false), now: 0)
        do throws(FieldError) {
            if let before = item.before {
                task = try admission.readmit(item.specification, after: before, names: true, owner: 1000).specification
            } else {
                task = try admission.admit(item.specification).specification
            }
        } catch {
            guard item.fields.contains(error.field) else { throw Escape("\(item) was refused by \(error)") }
            return refuse()
        }
        try await carryOut(task, item, writes: writes)
    }

    func refuse() { refused += 1 }

    private func carryOut(_ task: TaskSpecification, _ item: Case, writes: Bool) async throws {
        let place = try DownloadPlace(directory: task.directory, owner: 0, settings: settings)
        guard [home, other].contains(place.root) else { throw Escape("\(task.directory ?? "") has another root") }
        let directory: Directory
        do throws(TransferError) {
            directory = try Directory.open(
                root: place.root, subdirectory: place.subdirectory, makesRoot: place.makesRoot)
        } catch {
            // Links and files in the path, and paths that are too long for the system.
            guard let number = error.systemError, [ELOOP, EXDEV, ENOTDIR, ENAMETOOLONG].contains(number),
                error.message.contains("the directory \(place.root)")
            else { throw Escape("\(place) was refused by \(error)") }
            return refuse()
        }
        opened += 1
        // Links are not followed, even if they stay beneath the root.
        let expected = place.root + (place.subdirectory.isEmpty ? "" : "/") + place.subdirectory
        let real = try Self.realPath(of: directory)
        guard real.utf8.elementsEqual(expected.utf8), directory.path.utf8.elementsEqual(expected.utf8) else {
            throw Escape("\(place) was opened at \(real)")
        }
        let head = item.head.map { ResponseHead(status: 200, version: "1.1", lines: $0) }
        let resource = ResourceMetadata(head: head, suggestedFileName: head?.suggestedFileName ?? item.suggested)
        var naming = DownloadNaming(specification: task, settings: settings)
        naming.described = item.described
        let destination = try naming.destination(resource, in: directory, known: nil)
        try Self.check(destination.name, isOwn: task.output != nil)
        try Self.check(FileName.numbered(destination.name, 7), isOwn: task.output != nil)
        if writes { try await write(destination, in: directory) }
    }

    private static func realPath(of directory: Directory) throws -> String {
        var buffer = [CChar](repeating: 0, count: 8192)
        let link = "/proc/self/fd/\(directory.descriptor.raw)"
        let count = readlink(link, &buffer, buffer.count)
        guard count > 0 else { throw SystemError("readlink \(link)") }
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// - Parameter isOwn: whether a person chose the name, who may use any name that the system allows, unlike a
    /// server.
    private static func check(_ name: String, isOwn: Bool) throws {
        let bytes = Array(name.utf8)
        let isFile =
            (1...255).contains(bytes.count) && name != "." && name != ".." && !bytes.starts(with: ".dld-".utf8)
            && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
        let isPlain =
            isOwn
            || (!bytes.contains(UInt8(ascii: "\\")) && bytes.first != UInt8(ascii: ".")
                && bytes.first != UInt8(ascii: "-") && bytes.first != UInt8(ascii: "~"))
        guard isFile, isPlain else { throw Escape("\(name.debugDescription) is to be a file's name") }
    }

    private func write(_ destination: FileDestination, in directory: Directory) async throws {
        let part = try PartFile.make(in: directory, name: ".dld-01234567-1.part", owner: "01234567-1-a")
        let inode = try part.descriptor.status().st_ino
        let result = await withCheckedContinuation { continuation in
            publisher.publish(
                Publisher.Item(part: part, destination: destination, owner: "01234567-1-a", size: 0) {
                    continuation.resume(returning: $0)
                }, isUrgent: true)
        }
        let file: PublishedFile
        do throws(TransferError) {
            file = try result.get()
        } catch {
            // A directory has the name.
            guard error.code == .nameConflict else { throw error }
            return refuse()
        }
        written += 1
        let name = FileName.last(of: file.path)
        var status = stat()
        guard file.path.utf8.elementsEqual(directory.path(of: name).utf8),
            fstatat(directory.descriptor.raw, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_ino == inode,
            status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o7111 == 0
        else { throw Escape("the file \(file.path.debugDescription) is not where it should be") }
        try directory.remove(name)
        restoreLinks()
    }
}
