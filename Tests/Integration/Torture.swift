import FoundationEssentials
import Glibc
import Synchronization
import TestSupport
import Testing

/// The amount of torture: a dozen rounds of each, or with `DLD_TORTURE=1` (`make torture`) the long numbers.
enum Torture {
    static let isLong = ProcessInfo.processInfo.environment["DLD_TORTURE"] == "1"
    static let seed = ProcessInfo.processInfo.environment["DLD_TORTURE_SEED"].flatMap { UInt64($0) } ?? 20_261_122
    /// The number of kills at random moments.
    static let kills = isLong ? 1_000 : 12
    /// The number of power cuts at random moments.
    static let cuts = isLong ? 200 : 12
    /// The time limit of a whole suite.
    static let patience: TimeLimitTrait.Duration = .minutes(isLong ? 180 : 4)

    private struct Tally {
        var kills = 0
        var cuts = 0
        var refetched: Int64 = 0
    }

    private static let tally = Mutex(Tally())

    static func count(kills: Int = 0, cuts: Int = 0, refetched: Int64 = 0) {
        let line = tally.withLock { tally in
            tally.kills += kills
            tally.cuts += cuts
            tally.refetched += refetched
            return "torture: \(tally.kills) kills, \(tally.cuts) power cuts, \(tally.refetched / mebibyte) MiB "
                + "fetched again\n"
        }
        // The last line written is the one that `make torture` shows at the end, so that an interrupted run has one
        // too.
        if let path = ProcessInfo.processInfo.environment["DLD_TORTURE_SUMMARY"] {
            try? Data(line.utf8).write(to: URL(filePath: path))
        }
    }

    /// Prints a line that shows the progress of a long run.
    static func note(_ text: String) {
        guard isLong else { return }
        var line = "torture: \(text)\n"
        _ = line.withUTF8 { write(2, $0.baseAddress, $0.count) }
    }

    static let hasStrace = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        .contains { access("\($0)/strace", X_OK) == 0 }
    static let hasLoopDevices = isRoot && exists("/dev/loop-control")
}

extension Trait where Self == ConditionTrait {
    static var needsStrace: Self { .enabled(if: Torture.hasStrace, "there is no strace here") }
    static var needsLoopDevices: Self {
        .enabled(if: Torture.hasLoopDevices, "a loop device can be mounted by root alone, where there is one")
    }
    static var needsRoot: Self { .enabled(if: isRoot, "only root can mount") }
}
