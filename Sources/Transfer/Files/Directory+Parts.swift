import Glibc

/// What a directory is asked for that may hold parts which nobody goes on with.
extension Directory {
    /// What can be told of a part without its task.
    package struct PartTraces: Sendable, Equatable {
        /// As it stands on the part; `nil` where nothing does, as on a file system without extended attributes.
        package var owner: String?
        /// When it was last written to, in milliseconds since 1970.
        package var changed: Int64

        package init(owner: String?, changed: Int64) {
            self.owner = owner
            self.changed = changed
        }
    }

    /// The names of entries that begin and end so, in no order; the directory is read as it is, however many it has.
    ///
    /// - Parameter limit: names at most.
    package func names(beginning: String, ending: String, limit: Int) throws(TransferError) -> [String] {
        let (beginning, ending) = (Array(beginning.utf8), Array(ending.utf8))
        return try names(atMost: limit) { $0.starts(with: beginning) && $0.suffix(ending.count).elementsEqual(ending) }
    }

    /// - Returns: `nil` where `name` is no regular file, a link among others, or cannot be read.
    package func traces(ofPart name: String) -> PartTraces? {
        guard let (descriptor, status) = open(reading: name), status.st_mode & S_IFMT == S_IFREG else { return nil }
        let changed = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000)
        return PartTraces(
            owner: PartFile.owner(of: descriptor),
            changed: changed.overflow ? 0 : changed.partialValue &+ Int64(status.st_mtim.tv_nsec) / 1_000_000)
    }

    /// Removes a part that bears the mark of `owner` or none.
    ///
    /// - Returns: whether there was one.
    package func removePart(_ name: String, of owner: String) throws(TransferError) -> Bool {
        guard let traces = traces(ofPart: name), (traces.owner ?? owner) == owner else { return false }
        return try removePart(name)
    }
}
