/// The faults of a file. The first ones are kept, in the order of the file.
package struct FileFaults {
    /// The maximum number of faults that are listed.
    package static let limit = 20

    private var kept: [FileError] = []
    private var count = 0

    package init() {}

    package var isEmpty: Bool { kept.isEmpty }

    /// Adds a fault. Of several at one position the first counts.
    package mutating func add(_ fault: FileError) {
        guard !kept.contains(where: { $0.position == fault.position }) else { return }
        count += 1
        kept.insert(fault, at: kept.firstIndex { fault.position < $0.position } ?? kept.endIndex)
        if kept.count > Self.limit { kept.removeLast() }
    }

    /// The error that lists the faults; `nil` if there is none.
    package var error: FileError? {
        guard var error = kept.first else { return nil }
        error.others = Array(kept.dropFirst())
        error.unlisted = count - kept.count
        return error
    }

    func throwAny() throws(FileError) {
        if let error { throw error }
    }
}
