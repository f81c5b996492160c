/// The destination of a download's file: a path, a directory in which the server may name the file, or the result of a
/// closure that receives the response's head.
///
/// The response's head is validated first: its status, then the request's validators. An error page never becomes a
/// file, and nothing is created for one. The destination is decided after that, once for each request; every attempt
/// uses it. A taken name fails the request with ``TransferError/Code/nameConflict`` before any byte is received, and
/// again if the name is taken during the transfer. With ``DownloadOptions/removePreviousFile`` the existing file is
/// replaced atomically: a reader finds either the old or the new file.
///
/// Until the file is complete, its bytes are in a part file beside it with a hidden name (`.NAME.XXXXXXXX.part`) that
/// only its owner may read. **The part file is kept if and only if there are resume data for it**; those of the
/// request, of its response and of its error are the same. ``ResumeData/discard()`` removes the part file of unwanted
/// resume data. ``DownloadRequest/cancel(keepingBytes:)`` with `false` keeps neither. A request that ends without
/// resume data has removed its part file. Only the end of the process can leave an unknown part file behind, unless
/// resume data were obtained from ``DownloadRequest/checkpoint()`` before.
public struct DownloadDestination: Sendable {
    /// The permitted changes to the file system.
    public typealias Options = DownloadOptions

    /// A closure that decides the destination by the response's head. It runs once for each request, on an event loop's
    /// thread, and must not block. An error fails the request before any byte is received, with
    /// ``TransferError/Code/destinationRefused`` unless it is a ``TransferError`` itself.
    ///
    /// The path is that of the file, absolute or relative to the process's working directory.
    public typealias Decide = @Sendable (TemporaryFile, ResponseHead) throws -> (path: String, options: Options)

    enum Rule: Sendable {
        case path(String, Options, isPrivate: Bool)
        case suggested(directory: String, Options)
        case closure(Decide)
        case temporary
        /// A destination that fails every request.
        case impossible(TransferError)
    }

    let rule: Rule
    /// The required digest of the file. A file with another one is not published: its attempt fails with
    /// ``TransferError/Code/checksumMismatch``, which the retry policies may answer by fetching the file again.
    public var digest: FileDigest?

    init(_ rule: Rule) {
        self.rule = rule
    }

    /// Creates a destination that `decide` chooses; see ``Decide`` for when and where it runs.
    public init(_ decide: @escaping Decide) {
        self.init(.closure(decide))
    }

    /// Returns a destination at the file's final path, absolute or relative to the process's working directory.
    public static func path(_ path: String, options: Options = []) -> DownloadDestination {
        DownloadDestination(.path(path, options, isPrivate: false))
    }

    /// Returns this destination with a required digest of the file; see ``digest``.
    public func verified(by digest: FileDigest) -> DownloadDestination {
        var destination = self
        destination.digest = digest
        return destination
    }

    /// Returns a destination in `directory`. The file is named by the server's suggestion (`Content-Disposition`, RFC
    /// 6266), otherwise by the last path segment of the requested URL, otherwise `download`. The name is sanitised: it
    /// cannot leave the directory, does not begin with a dot and has at most 255 bytes.
    public static func suggested(in directory: String, options: Options = []) -> DownloadDestination {
        DownloadDestination(.suggested(directory: directory, options))
    }

    /// A new file in the system's temporary directory (`TMPDIR`, otherwise `/tmp`) that only its owner may read. The
    /// caller is responsible for moving or removing it.
    public static let temporary = DownloadDestination(.temporary)
}

/// The default placement of a file in the system's temporary directory, offered to a destination closure.
public struct TemporaryFile: Sendable, Equatable {
    /// A unique path in the system's temporary directory. If the closure returns it, the file stays there, readable by
    /// its owner only.
    public let path: String
    /// The file name suggested by the server or the URL, sanitised; it contains no slash.
    public let suggestedName: String
    /// The size of the complete file in bytes, if the head states it.
    public let size: Int64?
}
