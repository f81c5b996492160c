import FoundationEssentials
import Glibc

extension DownloadDecision {
    /// - Parameter path: an absolute path, or one relative to the process's working directory.
    init(path: String, options: DownloadDestination.Options, isPrivate: Bool) throws(TransferError) {
        func refuse(_ words: String) -> TransferError { TransferError(.pathNotAllowed, "the destination \(words)") }
        // The path is split by bytes: a combining mark after a slash forms one `Character` with it.
        var bytes = Array(path.utf8)
        guard !bytes.isEmpty else { throw refuse("is empty") }
        if bytes[0] != UInt8(ascii: "/") {
            bytes = Array((FileManager.default.currentDirectoryPath + "/").utf8) + bytes
        }
        guard !bytes.contains(0) else { throw refuse("contains a NUL byte") }
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

    /// Returns a name of the form `.NAME.XXXXXXXX.part`.
    private static func partName(for name: String) -> String {
        let end = "." + random(8) + partEnd
        return "." + SafeFileName.cut(name, to: SafeFileName.maximumLength - 1 - end.utf8.count) + end
    }

    static func random(_ count: Int) -> String {
        let digits = Array("0123456789abcdefghijklmnopqrstuvwxyz".utf8)
        return String(decoding: (0..<count).map { _ in digits[Int.random(in: 0..<digits.count)] }, as: UTF8.self)
    }

    /// The decision as a destination, for a later attempt that must use the same one.
    var destination: DownloadDestination {
        var destination = DownloadDestination(.path(path, options, isPrivate: isPrivate))
        destination.digest = digest
        return destination
    }

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
            destination.digest = digest
            return destination
        }
        target.decision = self
        return target
    }
}
