package import TaskModel

/// The contents of a Metalink: files with their URLs and digests.
///
/// Metalink 4 (RFC 5854) and Metalink 3 (metalinker.org) are supported. Unknown elements and those that dld has no use
/// for are ignored: signatures, descriptions, BitTorrent and other protocols.
package struct Metalink: Sendable, Equatable {
    package struct File: Sendable, Equatable {
        /// The directory part of the name, each segment made safe; `nil` for none.
        package var directory: String?
        /// The last segment of the name, made safe.
        package var output: String
        /// The size in bytes.
        package var size: Int64?
        /// The strongest of the file's digests.
        package var checksum: Checksum?
        package var pieceHashes: PieceHashes?
        /// The URLs, best first; never empty, without duplicates.
        package var urls: [String]
        /// The line number, from 1.
        package var line: Int
        /// The column in characters, from 1.
        package var column: Int
    }

    package enum Limit {
        package static let files = 100_000
    }

    /// The files in the document's order; no two have the same directory and name.
    package var files: [File]
}

extension Metalink.File {
    /// The file as a task. Mirrors beyond the limits of a task are omitted, from the end of the list.
    package var specification: TaskSpecification {
        // HTTP URLs come first: a source with another protocol cannot fetch one file together with other sources.
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
