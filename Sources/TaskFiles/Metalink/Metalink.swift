import TaskModel

/// What a Metalink asks for: files, each with the places where it lies and the digests that it must have.
///
/// Reads Metalink 4 (RFC 5854) and Metalink 3 (metalinker.org). What neither knows, and what dld has no use for, says
/// nothing: signatures, descriptions, BitTorrent and other protocols.
package struct Metalink: Sendable, Equatable {
    package struct File: Sendable, Equatable {
        /// The directories of the name, each made safe; `nil` for none.
        package var directory: String?
        /// The last segment of the name, made safe.
        package var output: String
        /// Bytes.
        package var size: Int64?
        /// The strongest of the file's digests.
        package var checksum: Checksum?
        package var pieceHashes: PieceHashes?
        /// Best first; never empty, no URL twice.
        package var urls: [String]
        /// From 1.
        package var line: Int
        /// From 1, in characters.
        package var column: Int
    }

    package enum Limit {
        package static let files = 100_000
    }

    /// In the file's order; no two have the same place.
    package var files: [File]

    /// - Parameters:
    ///   - file: the name to print in messages.
    ///   - limit: as many files are taken.
    /// - Throws: ``FileError``, the first in the file: what is no well-formed XML or has a document type definition, a
    ///   name that leads elsewhere, a digest, size or URL that is none, or a file without a URL.
    package init(parsing bytes: [UInt8], file: String, limit: Int = Limit.files) throws(FileError) {
        var reader = try MetalinkReader(bytes, file: file, limit: limit)
        files = try reader.read()
    }
}

extension Metalink.File {
    /// The file as a task. What does not fit into one is left out from the end: mirrors beyond the number that a task
    /// may have.
    package var specification: TaskSpecification {
        // A file server can neither be joined by others nor join them.
        var (urls, others): ([String], [String]) = ([], [])
        for url in self.urls {
            let isHTTP = (try? TaskAddress(parsing: url))?.isHTTP ?? false
            if isHTTP { urls.append(url) } else { others.append(url) }
        }
        urls += others
        var task = TaskSpecification(url: urls.first ?? "")
        var length = 0
        task.mirrors = urls.dropFirst().prefix(TaskSpecification.Limit.mirrors).filter { url in
            length += url.utf8.count
            return length <= TaskSpecification.Limit.mirrorsLength
        }
        task.output = output
        task.directory = directory
        task.checksum = checksum?.description
        task.size = size
        task.pieceHashes = pieceHashes
        return task
    }
}
