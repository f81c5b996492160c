/// Says when the memory that ended tasks have freed is to be given back to the system.
///
/// The allocator keeps freed pages for the next task. When half of many tasks have ended, the next ones may be long in
/// coming. Where fewer run, what they free is scattered, and adds up with their number.
struct HeapLevel {
    /// Tasks that ran at once, at most, since memory was last given back.
    private var most = 0
    /// Looks until memory is given back; `nil` where none is owed.
    private var looksLeft: Int?
    /// Tasks that have ended since memory was last given back.
    private var ended = 0
    /// Looks since then.
    private var looks = 0

    /// Fewer tasks than these are not worth a look.
    static let least = 64
    /// Looks from the end of tasks to the end of the work that follows it.
    static let delay = 4
    /// Ended tasks after which memory is given back however few ran at once.
    static let many = 64
    /// Looks from one time to the next where only the number of ended tasks asks for it.
    static let interval = 60

    /// Whether memory is to be given back at one of the next looks.
    var isPending: Bool { looksLeft != nil || ended >= Self.many }

    /// Notes how many tasks run, and how many have ended.
    mutating func note(_ running: Int, ended: Int = 0) {
        most = max(most, running)
        self.ended += ended
        if looksLeft == nil, most >= Self.least, running <= most / 2 { looksLeft = Self.delay }
    }

    /// Notes how many tasks run; to be called in equal intervals.
    ///
    /// - Returns: whether to give memory back now.
    mutating func look(at running: Int) -> Bool {
        note(running)
        looks += 1
        if let left = looksLeft {
            looksLeft = left > 1 ? left - 1 : nil
            if left > 1 { return false }
        } else if ended < Self.many || looks < Self.interval {
            return false
        }
        (most, ended, looks) = (running, 0, 0)
        return true
    }
}
