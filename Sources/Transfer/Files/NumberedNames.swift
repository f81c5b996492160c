/// The alternative names for a file whose own name is taken: `NAME (1).ext`, `NAME (2).ext`, ….
///
/// The number depends on the directory's content only. Nothing is stored, so the same directory gives the same number
/// in every process. The chosen number is free, and the number below it is taken (1 has none below). If no file was
/// ever deleted, it is the first free number. After deletions, a free number is reused if the search meets it, and is
/// left out otherwise.
package struct NumberedNames {
    let directory: Directory
    let wanted: String
    private let numbering: @Sendable (_ name: String, _ number: Int) -> String

    /// The greatest number searched. No directory holds so many files: a file system that reports every name as taken
    /// is wrong.
    static let limit = 1 << 40

    /// - Parameter numbering: as in ``FileDestination/Conflict/rename(_:)``.
    package init(
        directory: Directory, wanted: String,
        numbering: @escaping @Sendable (_ name: String, _ number: Int) -> String
    ) {
        self.directory = directory
        self.wanted = wanted
        self.numbering = numbering
    }

    package func name(_ number: Int) -> String { numbering(wanted, number) }

    /// Returns a free number, found with about 2·log₂(n) look-ups for the result n.
    ///
    /// - Parameter lost: a number that counts as taken with all below it, whatever the directory contains, because
    ///   another process took the name first.
    /// - Returns: `nil` if all names seem to be taken.
    package func free(above lost: Int = 0) -> Int? {
        Self.free(above: lost) { directory.contains(name($0)) }
    }

    static func free(above lost: Int = 0, isTaken: (Int) -> Bool) -> Int? {
        // The step is doubled from `lost` on; then the interval between a taken and a free number is halved.
        var (taken, step) = (max(0, lost), 1)
        while true {
            guard taken <= limit - step else { return nil }
            if !isTaken(taken + step) { break }
            taken += step
            step *= 2
        }
        var free = taken + step
        while free - taken > 1 {
            let middle = taken + (free - taken) / 2
            if isTaken(middle) { taken = middle } else { free = middle }
        }
        return free
    }
}
