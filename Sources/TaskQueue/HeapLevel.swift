/// Says when the memory that ended tasks have freed is to be given back to the system.
///
/// The allocator keeps freed pages for the next task. When half of many tasks have ended, the next ones may be long in
/// coming.
struct HeapLevel {
    /// Tasks that ran at once, at most, since memory was last given back.
    private var most = 0
    /// Looks until memory is given back; `nil` where none is owed.
    private var looksLeft: Int?

    /// Fewer tasks than these are not worth a look.
    static let least = 64
    /// Looks from the end of tasks to the end of the work that follows it.
    static let delay = 4

    /// Whether memory is to be given back at one of the next looks.
    var isPending: Bool { looksLeft != nil }

    /// Notes how many tasks run.
    mutating func note(_ running: Int) {
        most = max(most, running)
        if looksLeft == nil, most >= Self.least, running <= most / 2 { looksLeft = Self.delay }
    }

    /// Notes how many tasks run; to be called in equal intervals.
    ///
    /// - Returns: whether to give memory back now.
    mutating func look(at running: Int) -> Bool {
        note(running)
        guard let left = looksLeft else { return false }
        looksLeft = left > 1 ? left - 1 : nil
        if left > 1 { return false }
        most = running
        return true
    }
}
