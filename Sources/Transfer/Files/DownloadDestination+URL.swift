public import FoundationEssentials

extension DownloadDestination {
    /// A closure that decides the destination as a file URL; see ``Decide`` for when and where it runs. A URL of
    /// another scheme than `file` fails the request with ``TransferError/Code/pathNotAllowed``.
    public typealias DecideURL =
        @Sendable (TemporaryFile, ResponseHead) throws -> (
            destinationURL: URL, options: Options
        )

    /// Creates a destination that `decide` chooses as a file URL.
    @_disfavoredOverload
    public init(_ decide: @escaping DecideURL) {
        self.init { temporary, head in
            let (url, options) = try decide(temporary, head)
            return (path: try Self.path(of: url), options: options)
        }
    }

    /// Returns a destination at a file URL.
    ///
    /// - Parameters:
    ///   - url: a URL of the scheme `file`; any other fails the request with ``TransferError/Code/pathNotAllowed``.
    ///   - options: the permitted changes to the file system.
    public static func file(_ url: URL, options: Options = []) -> DownloadDestination {
        do throws(TransferError) {
            return path(try path(of: url), options: options)
        } catch {
            return DownloadDestination(.impossible(error))
        }
    }

    private static func path(of url: URL) throws(TransferError) -> String {
        guard url.isFileURL else { throw TransferError(.pathNotAllowed, "the destination must be a file URL") }
        return url.path(percentEncoded: false)
    }
}

extension TemporaryFile {
    /// The file URL of ``path``.
    public var url: URL { URL(filePath: path) }
}
