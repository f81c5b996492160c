import Synchronization

/// Which numbered names finished files have, by the owners that stand on the files.
///
/// A life that ends between a file's naming and the note of it leaves a file that its task does not know of; so does a
/// directory that could not be brought to the disk after the naming. Its number is among the last that were given. Each
/// file is opened once, since what came since is all that a later look reads.
package final class EarlierNames: Sendable {
    private struct Series: Hashable {
        var directory: Inode
        var wanted: String
    }

    /// Numbers that are looked at: more than files can be under way at a time.
    private static let depth = 8_192
    /// Owners that are remembered.
    private static let limit = 65_536

    private struct Known {
        var numbers: [String: Int] = [:]
        /// The free number of the last look: every file below it has been read.
        var free = 1
    }

    private struct State {
        private var known: [Series: Known] = [:]
        /// Series, and owners in them.
        private var count = 0

        mutating func take(_ series: Series) -> Known {
            guard let taken = known.removeValue(forKey: series) else { return Known() }
            count -= taken.numbers.count + 1
            return taken
        }

        mutating func put(_ read: Known, _ series: Series) {
            _ = take(series)
            if count + read.numbers.count >= limit { self = State() }
            known[series] = read
            count += read.numbers.count + 1
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// - Parameter numbering: as of ``FileDestination/Conflict/rename(_:)``.
    /// - Returns: the numbered name of the finished file that `owner` brought, and its bytes; `nil` where there is none.
    package func find(
        _ owner: String, wanting wanted: String, in directory: Directory,
        numbering: @escaping @Sendable (_ name: String, _ number: Int) -> String
    ) -> (name: String, size: Int64)? {
        let names = NumberedNames(directory: directory, wanted: wanted, numbering: numbering)
        guard let free = names.free() else { return nil }
        let series = Series(directory: directory.inode, wanted: wanted)
        // Taken out, so that it changes in place; whoever else asks meanwhile reads for himself.
        var read = state.withLock { $0.take(series) }
        if read.free != free { Self.update(&read, names, upTo: free) }
        state.withLock { $0.put(read, series) }
        guard let number = read.numbers[owner] else { return nil }
        // It may have been deleted or replaced since.
        let name = names.name(number)
        return directory.publishedSize(of: name, by: owner).map { (name, $0) }
    }

    private static func update(_ known: inout Known, _ names: NumberedNames, upTo free: Int) {
        // Files were deleted: those that came in their places are read with the others.
        if free < known.free { known = Known() }
        for number in max(known.free, free - depth)..<free {
            if let owner = PartFile.publisher(of: names.name(number), in: names.directory) {
                known.numbers[owner] = number
            }
        }
        known.free = free
    }
}
