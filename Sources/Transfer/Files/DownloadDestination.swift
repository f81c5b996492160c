import FoundationEssentials

/// Where a download's file goes: a path, a directory that the server may name a file in, or what a closure says of the
/// answer.
///
/// The answer's head is judged first, its status and then the request's validators: an error page is nobody's file,
/// and for one nothing is made. Then the destination is decided, once a request: every attempt keeps to it. A name that
/// is taken fails the request with ``TransferError/Code/nameConflict`` before a byte is taken, and again where somebody
/// takes it while the file is on its way; with ``Options/removePreviousFile`` the file that is there is replaced in one
/// step, so that a reader finds the old one or the new one and nothing else.
///
/// Until the file is whole its bytes lie beside it, in a part file with a hidden name of its own (`.NAME.XXXXXXXX.part`)
/// that only its owner may read. **A part stays exactly where there are resume data for it**: those of the request, of
/// its response and of its error are the same. ``ResumeData/discard()`` removes the part of those that nobody will use,
/// ``DownloadRequest/cancel(keepingBytes:)`` with `false` leaves nothing from the beginning, and a request that ends
/// without resume data has removed its part. Only the end of the process leaves a part of which nobody knows, unless
/// ``DownloadRequest/checkpoint()`` was asked for resume data before.
public struct DownloadDestination: Sendable {
    /// What may be done to the file system for the file's sake.
    public struct Options: OptionSet, Sendable, Codable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// A file that has the name is replaced; a directory is not.
        public static let removePreviousFile = Options(rawValue: 1)
        /// Directories that are missing are made.
        public static let createIntermediateDirectories = Options(rawValue: 2)
    }

    /// Decides by the head of the answer. Runs once a request, on a loop's thread, which must not be held up; an error
    /// fails the request before a byte is taken, with ``TransferError/Code/destinationRefused`` unless it is a
    /// ``TransferError`` itself.
    ///
    /// The path is the file's, absolute or relative to the process's directory.
    public typealias Decide = @Sendable (TemporaryFile, ResponseHead) throws -> (path: String, options: Options)

    enum Rule: Sendable {
        case path(String, Options, isPrivate: Bool)
        case suggested(directory: String, Options)
        case closure(Decide)
        case temporary
        /// Never works.
        case impossible(TransferError)
    }

    let rule: Rule

    init(_ rule: Rule) {
        self.rule = rule
    }

    /// What `decide` says of the answer; see ``Decide`` for when and where it runs.
    public init(_ decide: @escaping Decide) {
        self.init(.closure(decide))
    }

    /// The file's final path, absolute or relative to the process's directory.
    public static func path(_ path: String, options: Options = []) -> DownloadDestination {
        DownloadDestination(.path(path, options, isPrivate: false))
    }

    /// The file's final place.
    ///
    /// - Parameters:
    ///   - url: of the scheme `file`; with another one the request fails as ``TransferError/Code/pathNotAllowed``.
    ///   - options: what may be done to the file system for the file's sake.
    public static func file(_ url: URL, options: Options = []) -> DownloadDestination {
        guard url.isFileURL else {
            return DownloadDestination(
                .impossible(TransferError(.pathNotAllowed, "a file can go to a file URL and to no other")))
        }
        return path(url.path(percentEncoded: false), options: options)
    }

    /// Beneath `directory`, under the name that the server suggests (`Content-Disposition`, RFC 6266), otherwise under
    /// the last segment of the URL that was asked for, otherwise as `download`: made safe, so that no name leads out
    /// of the directory, begins with a dot or has more than 255 bytes.
    public static func suggested(in directory: String, options: Options = []) -> DownloadDestination {
        DownloadDestination(.suggested(directory: directory, options))
    }

    /// A file of its own in the system's temporary directory (`TMPDIR`, otherwise `/tmp`) that only its owner may read:
    /// the caller's, to move or to remove.
    public static let temporary = DownloadDestination(.temporary)
}

/// What a file would be if nobody gave it a place.
public struct TemporaryFile: Sendable, Equatable {
    /// A path of its own in the system's temporary directory: a closure that returns this leaves the file there, for
    /// its owner alone to read.
    public let path: String
    /// What the server, or the URL, calls the file, made safe: a name and never a path.
    public let suggestedName: String
    /// Bytes of the whole file, where the head says so.
    public let size: Int64?
}
