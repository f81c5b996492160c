/// The names that are tried for a file whose own name is taken: `NAME (1).ext`, `NAME (2).ext`, ….
///
/// A directory alone decides which number a file gets; nothing is remembered, so that the same directory gives the same
/// number in every life of the process. The number that is given is free and its neighbour below it is taken (1 has
/// none). As long as no file is deleted, that is the first free number. Where some were deleted, a free number is given
/// again if the search comes by it, and is left out otherwise.
package struct NumberedNames {
    let directory: Directory
    let wanted: String
    private let numbering: @Sendable (_ name: String, _ number: Int) -> String

    /// No directory holds so many files: a file system in which every name is taken does not tell the truth.
    static let limit = 1 << 40

    /// - Parameter numbering: as of ``FileDestination/Conflict/rename(_:)``.
    package init(
        directory: Directory, wanted: String,
        numbering: @escaping @Sendable (_ name: String, _ number: Int) -> String
    ) {
        self.directory = directory
        self.wanted = wanted
        self.numbering = numbering
    }

    package func name(_ number: Int) -> String { numbering(wanted, number) }

    /// The free number, in about twice as many looks as its logarithm says.
    ///
    /// - Parameter lost: this number and those below count as taken: somebody was quicker, whatever the directory says.
    /// - Returns: `nil` where every name seems to be taken.
    package func free(above lost: Int = 0) -> Int? {
        Self.free(above: lost) { directory.contains(name($0)) }
    }

    static func free(above lost: Int = 0, isTaken: (Int) -> Bool) -> Int? {
        // Doubling steps from `lost` on, then halves between a taken number and a free one.
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
