import Glibc

/// Queries on a directory that may contain abandoned part files.
extension Directory {
    /// The facts about a part file that are known without its task.
    package struct PartTraces: Sendable, Equatable {
        /// The owner recorded on the part; `nil` if there is none, as on a file system without extended attributes.
        package var owner: String?
        /// The time of the last write, in milliseconds since 1970.
        package var changed: Int64

        package init(owner: String?, changed: Int64) {
            self.owner = owner
            self.changed = changed
        }
    }

    /// Returns the names of the entries with this prefix and suffix, in no particular order. The directory is read
    /// entry by entry, whatever its size.
    ///
    /// - Parameter limit: the maximum number of names returned.
    package func names(beginning: String, ending: String, limit: Int) throws(TransferError) -> [String] {
        let (beginning, ending) = (Array(beginning.utf8), Array(ending.utf8))
        return try names(atMost: limit) { $0.starts(with: beginning) && $0.suffix(ending.count).elementsEqual(ending) }
    }

    /// Returns the facts about a part file.
    ///
    /// - Returns: `nil` if `name` is not a regular file (a symbolic link included), or cannot be opened.
    package func traces(ofPart name: String) -> PartTraces? {
        guard let (descriptor, status) = open(reading: name), status.st_mode & S_IFMT == S_IFREG else { return nil }
        let changed = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000)
        return PartTraces(
            owner: PartFile.owner(of: descriptor),
            changed: changed.overflow ? 0 : changed.partialValue &+ Int64(status.st_mtim.tv_nsec) / 1_000_000)
    }

    /// Removes a part file that is marked with `owner` or has no mark.
    ///
    /// - Returns: whether there was such a part file.
    package func removePart(_ name: String, of owner: String) throws(TransferError) -> Bool {
        guard let traces = traces(ofPart: name), (traces.owner ?? owner) == owner else { return false }
        return try removePart(name)
    }
}
