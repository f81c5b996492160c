import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite struct StatusTests {
    private static func status(
        waiting: Int = 0, pause: DaemonStatus.SchedulePause? = nil, _ causes: DaemonStatus.Waiting? = nil,
        storage: DaemonStatus.Storage? = nil, limits: DaemonStatus.Limits? = nil, disks: [DaemonStatus.Disk]? = nil,
        hosts: [DaemonStatus.HeldHost]? = nil
    ) -> [String] {
        let status = DaemonStatus(
            version: "1.0", pid: 7, uptime: 1_000, socket: "/s", stateDirectory: "/d", downloadDirectory: "/f",
            libcurl: "8.0", tasks: ["waiting": waiting], downloadRate: 0, uploadRate: 0, lastEvent: 0,
            schedulePause: pause, waiting: causes, storage: storage, limits: limits, disks: disks,
            hosts: hosts)
        return Status.lines(status, now: 10_000, clock: { "(\($0))" })
    }

    @Test("the causes for which tasks wait stand with their number and the next try")
    func causes() {
        let lines = Self.status(
            waiting: 16,
            .init(
                counted: 16,
                causes: [
                    .init(reason: "retry", code: .dns, message: nil, tasks: 12, notBefore: 25_000),
                    .init(reason: "disk-full", code: .diskFull, message: "m", tasks: 2, notBefore: 13_000),
                    .init(reason: "novel", code: nil, message: nil, tasks: 1, notBefore: nil),
                ]))
        #expect(lines.contains("  waiting    12: name does not resolve, next try in 15 s"))
        #expect(lines.contains("             2: disk full, next check in 3 s"))
        #expect(lines.contains("             1: novel"))
        #expect(lines.contains("             1: other causes"))
        #expect(!lines.contains { $0.contains("looked at") })
    }

    @Test("of many tasks that start later the first one's hour is told")
    func scheduled() {
        let cause = DaemonStatus.Cause(reason: "scheduled", code: nil, message: nil, tasks: 2, notBefore: 9)
        let lines = Self.status(waiting: 2, .init(counted: 2, causes: [cause]))
        #expect(lines.contains("  waiting    2: not started yet, the first starts at (9)"))
    }

    @Test("a part of the waiting tasks is called a part")
    func part() {
        let cause = DaemonStatus.Cause(reason: "retry", code: .tls, message: nil, tasks: 5_000, notBefore: nil)
        let lines = Self.status(waiting: 9_000, .init(counted: 5_000, causes: [cause]))
        #expect(lines.contains { $0.contains("(counted among 5000 of 9000 waiting tasks)") })
    }

    @Test("the limits in force are told with the window that sets them, and until when")
    func limits() {
        let window = DaemonStatus.Window(days: "mon-fri", from: "09:00", to: "18:00", until: 5)
        var limits = DaemonStatus.Limits(
            downloadRate: 2 << 20, uploadRate: nil, downloadSource: "schedule", uploadSource: "configuration",
            window: window, activeTasks: 16, connectionsPerTask: nil, connectionsPerHost: 4)
        var lines = Self.status(limits: limits)
        #expect(lines.contains("  limits     2.0 MiB/s down (schedule mon-fri 09:00-18:00, until (5))"))
        #expect(lines.contains("             no limit up"))
        #expect(lines.contains("             16 tasks at a time, automatic connections each, 4 per host"))
        (limits.downloadSource, limits.uploadSource, limits.connectionsPerTask) = ("command", "command", 1)
        lines = Self.status(limits: limits)
        #expect(lines.contains("  limits     2.0 MiB/s down, no limit up (set with dlctl limit)"))
        #expect(lines.contains { $0.hasSuffix("1 connection each, 4 per host") })
    }

    @Test("the room of disks is told, and hosts on hold with the cause and the time")
    func resources() {
        let lines = Self.status(
            disks: [
                .init(path: "/srv", free: 3 << 30, total: 9 << 30, minimumFree: 256 << 20),
                .init(path: "/full", free: 1, total: nil, minimumFree: 2),
                .init(path: "/nfs", free: nil, total: nil, minimumFree: 0),
                .init(path: "/zero", free: 0, total: 1 << 20, minimumFree: 0),
            ],
            hosts: [
                .init(host: "https://h:443", reason: "retry-after", until: 40_000),
                .init(host: "http://i:80", reason: "novel", until: nil),
            ])
        #expect(lines.contains("  disks      /srv: 3.0 GiB free of 9.0 GiB, 256 MiB stay free"))
        #expect(lines.contains("             /full: 1 B free, 2 B stay free: full"))
        #expect(lines.contains("             /nfs: the room is unknown"))
        #expect(lines.contains("             /zero: 0 B free of 1.0 MiB: full"))
        #expect(lines.contains("  on hold    https://h:443: asked for a delay, next try in 30 s"))
        #expect(lines.contains("             http://i:80: novel"))
    }

    @Test("a window of the schedule says until when nothing runs")
    func pause() {
        #expect(Self.status(pause: .init(until: 5)).contains("  paused     by the schedule, until (5)"))
        #expect(Self.status(pause: .init(until: nil)).contains { $0.contains("until the configuration changes") })
        #expect(!Self.status().contains { $0.contains("paused") || $0.contains("waiting  ") })
    }

    @Test("what downloads take up is told where there is an end to it, and whose it is where they are several's")
    func storage() {
        #expect(
            Self.status(storage: .init(limit: 10 << 30, owners: [.init(owner: 1000, bytes: 3 << 29)]))
                .contains("  on disk    1.5 GiB of 10.0 GiB"))
        let several = (0..<7).map { DaemonStatus.Storage.Owner(owner: 1000 + $0, bytes: 7 << 20) }
        let lines = Self.status(storage: .init(limit: 8 << 20, owners: several))
        #expect(lines.contains("             7.0 MiB of 8.0 MiB for user 1004"), "\(lines)")
        #expect(lines.contains("             2 other users use less each"))
        #expect(!Self.status(storage: .init(limit: nil, owners: several)).contains { $0.contains("on disk") })
    }
}
