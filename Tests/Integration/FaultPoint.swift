import TestSupport

/// A moment in the order of writes: the Nth system call of one kind on one kind of file.
struct FaultPoint: Sendable, CustomStringConvertible {
    enum Place: Sendable, CaseIterable {
        /// Part files.
        case parts
        /// The write-ahead log.
        case log
        case database
        /// The directory of the finished files.
        case directory
        case anywhere
    }

    var call: String
    var place: Place
    var occurrence: Int

    var description: String { "\(call) \(occurrence) at \(place)" }

    init(_ call: String, _ place: Place, _ occurrence: Int) {
        self.call = call
        self.place = place
        self.occurrence = occurrence
    }

    /// The kinds of calls to test, one occurrence after another until none is left.
    static let kinds: [(call: String, place: Place)] = [
        ("pwrite64", .parts), ("fdatasync", .parts), ("openat2", .parts), ("openat2", .anywhere),
        ("pwrite64", .log), ("fdatasync", .log), ("pwrite64", .database), ("fdatasync", .database),
        ("fsync", .anywhere), ("renameat2", .anywhere), ("renameat", .anywhere), ("unlinkat", .anywhere),
        ("unlink", .anywhere), ("ftruncate", .anywhere), ("fsetxattr", .anywhere), ("write", .anywhere),
        ("openat", .anywhere),
    ]

    /// The points of a short run.
    static let chosen = [
        FaultPoint("pwrite64", .parts, 1), FaultPoint("pwrite64", .parts, 2), FaultPoint("fdatasync", .parts, 1),
        FaultPoint("openat2", .parts, 1), FaultPoint("pwrite64", .log, 3), FaultPoint("fdatasync", .log, 1),
        FaultPoint("fdatasync", .log, 3), FaultPoint("fsync", .directory, 1), FaultPoint("renameat2", .anywhere, 1),
        FaultPoint("renameat", .anywhere, 1), FaultPoint("unlinkat", .anywhere, 1),
        FaultPoint("pwrite64", .database, 2), FaultPoint("openat", .anywhere, 60),
    ]

    func kill(in set: ShortSet) -> Injection {
        let paths: [String] =
            switch place {
            case .parts: set.parts
            case .log: ["\(set.daemon.stateDirectory)/dld.db-wal"]
            case .database: ["\(set.daemon.stateDirectory)/dld.db"]
            case .directory: [set.daemon.downloads]
            case .anywhere: []
            }
        return Injection(call, .kill, occurrence: "\(occurrence)", at: paths)
    }

    /// Calls `body` with the chosen points, or, under long torture, with one after another of each kind.
    ///
    /// - Parameter body: returns whether the point was reached.
    static func visitAll(_ body: (FaultPoint) async throws -> Bool) async throws {
        guard Torture.isLong else {
            for point in chosen { _ = try await body(point) }
            return
        }
        for kind in kinds {
            // The dynamic loader opens many files before the daemon's own code runs; those calls are equivalent to one
            // another.
            let step = kind.call == "openat" ? 5 : 1
            var occurrence = 1
            while occurrence < 500, try await body(FaultPoint(kind.call, kind.place, occurrence)) { occurrence += step }
            Torture.note("\(kind.call) at \(kind.place): \((occurrence - 1) / step) moments")
        }
    }
}
