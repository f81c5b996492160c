import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("A thousand transfers at once", .serialized, .timeLimit(.minutes(4)))
struct ManyTransfersTests {
    @Test(
        "F63: SIGTERM amid a thousand transfers ends the daemon with 0, in time, with STOPPING=1, all progress stored"
    )
    func terminated() async throws {
        let count = 1000
        let resource = Resource(size: 200_000)
        let port = try FreePort.next()
        let place = try TemporaryDirectory()
        func serving(rate: String) async throws -> Nginx {
            let nginx = try await Nginx(settings: rate, port: port)
            for number in 0..<count {
                let path = "\(nginx.root)/f\(number)"
                if number == 0 { try nginx.publish(resource, as: "f0") } else { link("\(nginx.root)/f0", path) }
            }
            // The ETag is derived from the modification time.
            let time = timeval(tv_sec: 1_600_000_000, tv_usec: 0)
            utimes("\(nginx.root)/f0", [time, time])
            return nginx
        }
        let slow = try await serving(rate: "limit_rate 2k;")
        let list = (0..<count).map { slow.url("/f\($0)") + "\n" }.joined()
        let supervisor = try NotifySocket(path: place.file("notify"))
        let limits = "limits: {active-tasks: 1000, connections-per-host: 1000, connections-per-task: 1}\n"
        let daemon = try DaemonProcess(
            configuration: quickRetries + limits, environment: ["NOTIFY_SOCKET": place.file("notify")])
        try await daemon.start()
        let added = try await daemon.dlctl("add", "--input", try place.write(list, to: "list"))
        #expect(added.succeeded && added.lines.count == count, "\(added.error)")
        let before = try await eventually(have: "all of them bring bytes", within: .seconds(60)) {
            let tasks = try daemon.tasks()
            return tasks.allSatisfy { $0.state == .active && $0.bytesDone > 0 } ? tasks : nil
        }
        let begin = ContinuousClock.now
        #expect(try await daemon.terminate() == .exited(0))
        // The limit set for systemd is TimeoutStopSec=30.
        #expect(begin.duration(to: .now) < .seconds(15))
        var words: [String] = []
        while let message = supervisor.message() { words.append(message) }
        #expect(words.contains { $0.contains("STOPPING=1") })
        slow.stop()

        let fast = try await serving(rate: "")
        try await daemon.start()
        let after = try daemon.tasks()
        #expect(after.count == count)
        for (old, new) in zip(before, after) {
            #expect(old.id == new.id && new.bytesDone >= old.bytesDone && new.attempts <= 1, "\(new)")
        }
        try await eventually(that: "all are done", within: .seconds(90)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        for number in 0..<count { #expect(resource.difference(fromFileAt: daemon.path("f\(number)")) == nil) }
        // Each transfer resumed from its last byte.
        #expect(fast.accesses().allSatisfy { $0.status == 206 })
        daemon.expectTidy()
    }

    @Test("more slow transfers than are buffered, killed in their midst, are whole in the end")
    func unbuffered() async throws {
        let count = 2_400
        let resource = Resource(size: 15_000)
        let nginx = try await Nginx(settings: "limit_rate 3k;")
        try nginx.publish(resource, as: "f")
        let place = try TemporaryDirectory()
        let list = (0..<count).map { nginx.url("/f?\($0)") + "\n  out=f\($0)\n" }.joined()
        let limits = "limits: {active-tasks: 2400, connections-per-host: 2400, connections-per-task: 1}\n"
        let daemon = try await DaemonProcess.started(quickRetries + limits)
        let added = try await daemon.dlctl("add", "--input", try place.write(list, to: "list"))
        #expect(added.succeeded && added.lines.count == count, "\(added.error)")
        func bytes() throws -> Int64 { try daemon.tasks().reduce(0) { $0 + $1.bytesDone } }
        try await eventually(that: "half of the bytes are there", within: .seconds(90)) {
            try bytes() > Int64(count) * 7_500
        }
        try await daemon.kill()
        try await daemon.start()
        try await eventually(that: "all are done", within: .seconds(90)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        for number in 0..<count { #expect(resource.difference(fromFileAt: daemon.path("f\(number)")) == nil) }
        daemon.expectTidy()
    }
}
