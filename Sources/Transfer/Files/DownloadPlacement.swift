import FoundationEssentials
import Glibc

/// The way in which a download obtains its directory and file names.
enum DownloadPlacement: Sendable {
    /// A target known from the start. The caller knows and owns the part file.
    case fixed(DownloadTarget)
    /// A target decided after the response's head is validated. The engine owns the part file.
    case decided(by: DownloadDestination)

    /// Whether the part file has no owner once there are no resume data for it, so that the engine must remove it.
    var ownsPart: Bool {
        switch self {
        case .fixed: false
        case .decided: true
        }
    }
}

/// The result of a destination: the final place of the file, and the place of its part file.
struct DownloadDecision: Sendable, Equatable, Codable {
    /// The absolute path of the directory of the file and its part file.
    var directory: String
    var name: String
    var options: DownloadDestination.Options
    /// Whether only its owner may read the finished file.
    var isPrivate: Bool
    var partName: String
    /// The name of the download as recorded on its part file; it is unique.
    var owner: String

    private static let longestPath = 4096

    /// - Parameter path: an absolute path, or one relative to the process's working directory.
    init(path: String, options: DownloadDestination.Options, isPrivate: Bool) throws(TransferError) {
        func refuse(_ words: String) -> TransferError { TransferError(.pathNotAllowed, "the destination \(words)") }
        // The path is split by bytes: a combining mark after a slash forms one `Character` with it.
        var bytes = Array(path.utf8)
        guard !bytes.isEmpty else { throw refuse("is empty") }
        if bytes[0] != UInt8(ascii: "/") {
            bytes = Array((FileManager.default.currentDirectoryPath + "/").utf8) + bytes
        }
        guard !bytes.contains(0) else { throw refuse("holds a byte that no path can hold") }
        guard bytes.count < Self.longestPath else { throw refuse("is longer than \(Self.longestPath - 1) bytes") }
        let slash = bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0
        let name = String(decoding: bytes[(slash + 1)...], as: UTF8.self)
        guard Self.isName(name) else { throw refuse("\(path) is not the path of a file") }
        self.name = name
        directory = slash == 0 ? "/" : String(decoding: bytes[..<slash], as: UTF8.self)
        self.options = options
        self.isPrivate = isPrivate
        partName = Self.partName(for: name)
        owner = "download-" + Self.random(16)
    }

    private static let (partStart, partEnd) = (UInt8(ascii: "."), ".part")

    /// Returns a name of the form `.NAME.XXXXXXXX.part`.
    private static func partName(for name: String) -> String {
        let end = "." + random(8) + partEnd
        return "." + SafeFileName.cut(name, to: SafeFileName.maximumLength - 1 - end.utf8.count) + end
    }

    static func random(_ count: Int) -> String {
        let digits = Array("0123456789abcdefghijklmnopqrstuvwxyz".utf8)
        return String(decoding: (0..<count).map { _ in digits[Int.random(in: 0..<digits.count)] }, as: UTF8.self)
    }

    /// Whether the value is one that this type could have created. A decoded value may contain anything.
    var isSound: Bool {
        directory.utf8.first == UInt8(ascii: "/") && directory.utf8.count < Self.longestPath
            && !directory.utf8.contains(0) && Self.isName(name) && Self.isName(partName)
            && partName.utf8.first == Self.partStart && partName.utf8.suffix(5).elementsEqual(Self.partEnd.utf8)
            && !owner.isEmpty && owner.utf8.count <= 64 && !owner.utf8.contains(0)
    }

    private static func isName(_ name: String) -> Bool {
        (1...SafeFileName.maximumLength).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 != UInt8(ascii: "/") && $0 != 0 }
    }

    var path: String { directory + (directory == "/" ? "" : "/") + name }

    /// The decision as a destination, for a later attempt that must use the same one.
    var destination: DownloadDestination { DownloadDestination(.path(path, options, isPrivate: isPrivate)) }

    // MARK: The file system

    /// Opens the directory.
    ///
    /// - Throws: ``TransferError/Code/directoryMissing`` if it does not exist and may not be created.
    func open() throws(TransferError) -> Directory {
        do {
            return try Directory.open(
                root: directory, makesRoot: options.contains(.createIntermediateDirectories))
        } catch {
            guard error.systemError == ENOENT else { throw error }
            throw TransferError(.directoryMissing, "there is no directory \(directory)", systemError: ENOENT)
        }
    }

    /// Validates that the name is available.
    ///
    /// - Throws: ``TransferError/Code/nameConflict`` if the name is taken by something that may not be replaced.
    func checkName(in directory: Directory) throws(TransferError) {
        guard directory.contains(name) else { return }
        if options.contains(.removePreviousFile) {
            guard directory.isDirectory(name) else { return }
            throw TransferError(.nameConflict, "\(directory.path(of: name)) is a directory")
        }
        // A file that this download published, in a process that ended before it recorded that, is not a conflict.
        guard directory.publishedSize(of: name, by: owner) == nil else { return }
        throw .taken(name, in: directory)
    }

    func target(in directory: Directory) -> DownloadTarget {
        var target = DownloadTarget(directory: directory, partName: partName, owner: owner) {
            (_: ResourceMetadata) throws(TransferError) in
            try checkName(in: directory)
            var destination = FileDestination(
                name: name, conflict: options.contains(.removePreviousFile) ? .overwrite : .fail)
            destination.isPrivate = isPrivate
            return destination
        }
        target.decision = self
        return target
    }
}

extension DownloadDestination {
    /// The facts known when a destination is decided.
    struct Occasion {
        /// The response's head; `nil` if all bytes were already present.
        var head: ResponseHead?
        /// The file name from `Content-Disposition`.
        var suggestedFileName: String?
        /// The URL of the original request.
        var url: String
        /// The size of the complete file in bytes.
        var size: Int64?
        /// The closure's decision in an earlier task, from the resume data.
        var earlier: DownloadDecision?
    }

    /// Validates the destination as far as possible before any request is sent.
    func check() throws(TransferError) {
        switch rule {
        case .path(let path, let options, let isPrivate):
            _ = try DownloadDecision(path: path, options: options, isPrivate: isPrivate)
        case .impossible(let error): throw error
        case .suggested, .closure, .temporary: break
        }
    }

    func decide(_ occasion: Occasion) throws(TransferError) -> DownloadDecision {
        switch rule {
        case .path(let path, let options, let isPrivate):
            return try DownloadDecision(path: path, options: options, isPrivate: isPrivate)
        case .suggested(let directory, let options):
            let separator = directory.utf8.last == UInt8(ascii: "/") || directory.isEmpty ? "" : "/"
            return try DownloadDecision(
                path: directory + separator + Self.name(occasion), options: options, isPrivate: false)
        case .temporary:
            return try DownloadDecision(path: Self.temporaryPath(), options: [], isPrivate: true)
        case .impossible(let error): throw error
        case .closure(let decide):
            guard let head = occasion.head else {
                // Without a response head the closure cannot run; its earlier decision stands.
                guard let earlier = occasion.earlier else {
                    throw TransferError(.internal, "a file without an answer or a destination")
                }
                return earlier
            }
            let temporary = TemporaryFile(
                path: Self.temporaryPath(), suggestedName: Self.name(occasion), size: occasion.size)
            let said: (path: String, options: Options)
            do {
                said = try decide(temporary, head)
            } catch let error as TransferError {
                throw error
            } catch {
                throw TransferError(
                    .destinationRefused, "the destination was refused: \(error)", underlying: error)
            }
            return try DownloadDecision(
                path: said.path, options: said.options, isPrivate: said.path == temporary.path)
        }
    }

    private static func name(_ occasion: Occasion) -> String {
        occasion.suggestedFileName.flatMap(SafeFileName.make(from:)) ?? SafeFileName.make(fromURL: occasion.url)
    }

    private static func temporaryPath() -> String {
        var directory = FileManager.default.temporaryDirectory.path(percentEncoded: false)
        if directory.utf8.last != UInt8(ascii: "/") { directory += "/" }
        return directory + "download-" + DownloadDecision.random(16)
    }
}
