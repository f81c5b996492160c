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
        let raw = openat(descriptor.raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "read the directory \(path)") }
        guard let stream = fdopendir(raw) else {
            let error = errno
            _ = close(raw)  // nothing was written to it
            throw .file(error, doing: "read the directory \(path)")
        }
        defer { _ = closedir(stream) }  // nothing was written to it
        let (beginning, ending) = (Array(beginning.utf8), Array(ending.utf8))
        var names: [String] = []
        while names.count < limit {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw .file(errno, doing: "read the directory \(path)") }
                break
            }
            withUnsafeBytes(of: &entry.pointee.d_name) { space in
                // Most entries are others' files: nothing is made of their names.
                guard space.starts(with: beginning) else { return }
                let name = space.prefix { $0 != 0 }
                guard name.suffix(ending.count).elementsEqual(ending) else { return }
                if let name = String(validating: name, as: UTF8.self) { names.append(name) }
            }
        }
        return names
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
