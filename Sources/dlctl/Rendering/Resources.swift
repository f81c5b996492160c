import ControlProtocol
import Glibc
import TaskModel

/// The limits, disks and hosts of the daemon, as lines of `dlctl status`.
enum Resources {
    /// Returns the rates with their origin, then the numbers of tasks and connections.
    static func limits(_ limits: DaemonStatus.Limits?, clock: (Milliseconds) -> String) -> [String] {
        guard let limits else { return [] }
        let down = "\(rate(limits.downloadRate)) down"
        let up = "\(rate(limits.uploadRate)) up"
        let (downFrom, upFrom) = (
            origin(limits.downloadSource, limits.window, clock), origin(limits.uploadSource, limits.window, clock)
        )
        let rates: [String] =
            limits.downloadSource == limits.uploadSource
            ? ["\(down), \(up)\(upFrom)"] : ["\(down)\(downFrom)", "\(up)\(upFrom)"]
        let connections = limits.connectionsPerTask.map { Describe.count($0, "connection") } ?? "automatic connections"
        return rates + [
            "\(Describe.count(limits.activeTasks, "task")) at a time\(limits.activeTasksPerOwner.map { " (\($0) of one owner)" } ?? ""), \(connections) each, "
                + "\(limits.connectionsPerHost) per host"
        ]
    }

    private static func rate(_ rate: Int64?) -> String { rate.map { Describe.rate($0) } ?? "no limit" }

    private static func origin(
        _ source: String, _ window: DaemonStatus.Window?, _ clock: (Milliseconds) -> String
    ) -> String {
        switch source {
        case "schedule":
            guard let window else { return " (schedule)" }
            let until = window.until.map { ", until \(clock($0))" } ?? ""
            return " (schedule \(window.days) \(window.from)-\(window.to)\(until))"
        case "command": return " (set with dlctl limit)"
        default: return ""
        }
    }

    /// The maximum number of disks and hosts shown.
    private static let shown = 8

    /// Returns one line for each disk, such as `/srv: 12 GiB free of 40 GiB, 256 MiB stay free`.
    static func disks(_ disks: [DaemonStatus.Disk]?) -> [String] {
        guard let disks else { return [] }
        let lines = disks.prefix(shown).map { disk in
            guard let free = disk.free else { return "\(disk.path): the room is unknown" }
            let total = disk.total.map { " of \(ByteSize.describe($0))" } ?? ""
            let kept = disk.minimumFree > 0 ? ", \(ByteSize.describe(disk.minimumFree)) stay free" : ""
            let full = free <= disk.minimumFree ? ": full" : ""
            return "\(disk.path): \(ByteSize.describe(free)) free\(total)\(kept)\(full)"
        }
        return lines + more(disks.count)
    }

    /// Returns one line for each host on hold, such as `https://example.org:443: asked for a delay, next try in 30 s`.
    static func hosts(
        _ hosts: [DaemonStatus.HeldHost]?, caller: UInt32 = getuid(), now: Milliseconds,
        clock: (Milliseconds) -> String
    ) -> [String] {
        guard let hosts else { return [] }
        let lines = hosts.prefix(shown).map { held in
            let cause =
                switch held.reason {
                case "retry-after": "asked for a delay"
                case "failures": "failed too often"
                case "probe": "is being tried again"
                case "no-route": "cannot be reached from this machine"
                default: held.reason
                }
            let next = held.until.map { until in
                let left = until.subtractingClamped(now)
                return left < 3_600_000
                    ? ", next try in \(Describe.span(milliseconds: max(1000, left)))"
                    : ", next try at \(clock(until))"
            }
            let owner = held.owner.map { $0 == caller ? "" : " of a task of uid \($0)" }
            return "\(held.host): \(cause)\(owner ?? "")\(next ?? "")"
        }
        return lines + more(hosts.count)
    }

    private static func more(_ count: Int) -> [String] { count > shown ? ["and \(count - shown) more"] : [] }
}
