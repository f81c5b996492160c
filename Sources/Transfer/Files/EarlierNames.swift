import Synchronization

/// The numbered names of finished files, indexed by the owner recorded on each file.
///
/// If a process ends between the publication of a file and the record of it, the task does not know the file. The same
/// happens if the directory could not be synced after the publication. The number of such a file is among the last ones
/// assigned. Each file is opened once: a later lookup reads only the files added since the previous one.
package final class EarlierNames: Sendable {
    private struct Series: Hashable {
        var directory: Inode
        var wanted: String
    }

    /// The number of the latest numbers examined: more than the number of files that can be in transfer at a time.
    private static let depth = 8_192
    /// The maximum number of entries kept: series and owners.
    private static let limit = 65_536

    private struct Known {
        var numbers: [String: Int] = [:]
        /// The first free number of the last lookup: all files below it have been read.
        var free = 1
    }

    private struct State {
        private var known: [Series: Known] = [:]
        /// The number of series, plus the number of owners in them.
        private var count = 0

        mutating func beginReading(_ series: Series) -> Known {
            guard let taken = known.removeValue(forKey: series) else { return Known() }
            count -= taken.numbers.count + 1
            return taken
        }

        mutating func put(_ read: Known, _ series: Series) {
            _ = beginReading(series)
            if count + read.numbers.count >= limit { self = State() }
            known[series] = read
            count += read.numbers.count + 1
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Finds the finished file that `owner` published under a numbered name.
    ///
    /// - Parameter numbering: as in ``FileDestination/Conflict/rename(_:)``.
    /// - Returns: the file's name and its size in bytes; `nil` if there is none.
    package func find(
        _ owner: String, wanting wanted: String, in directory: Directory,
        numbering: @escaping @Sendable (_ name: String, _ number: Int) -> String
    ) -> (name: String, size: Int64)? {
        let names = NumberedNames(directory: directory, wanted: wanted, numbering: numbering)
        guard let free = names.free() else { return nil }
        let series = Series(directory: directory.inode, wanted: wanted)
        // The entry is removed so that it can be changed without a copy. A concurrent lookup reads the files itself.
        var read = state.withLock { $0.beginReading(series) }
        if read.free != free { Self.update(&read, names, upTo: free) }
        state.withLock { $0.put(read, series) }
        guard let number = read.numbers[owner] else { return nil }
        // The file may have been deleted or replaced since.
        let name = names.name(number)
        return directory.publishedSize(of: name, by: owner).map { (name, $0) }
    }

    private static func update(_ known: inout Known, _ names: NumberedNames, upTo free: Int) {
        // Files were deleted, and others may have taken their numbers: all are read again.
        if free < known.free { known = Known() }
        for number in max(known.free, free - depth)..<free {
            if let owner = PartFile.publisher(of: names.name(number), in: names.directory) {
                known.numbers[owner] = number
            }
        }
        known.free = free
    }
}
