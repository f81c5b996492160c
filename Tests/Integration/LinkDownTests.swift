import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("A link that goes down", .serialized, .timeLimit(.minutes(2)))
struct LinkDownTests {
    @Test(
        "F34: a download waits while the link is down, and resumes soon after it is up, with another address too",
        .enabled("networks can be made by root alone") { await LinkedNetwork.isPossible() }, arguments: [2, 3])
    func waits(address: Int) async throws {
        let resource = Resource(size: 6 * mebibyte)
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(mebibyte))])
        try nginx.publish(resource, as: "file")
        let network = try await LinkedNetwork(to: nginx.port)
        let daemon = try await DaemonProcess.started(
            "retry: {attempts: 3, base-delay: 50ms, max-delay: 60s}\ntimeouts: {stall: 1s, connect: 2s}\n"
                + oneConnection, prefix: network.prefix)
        let id = try await daemon.add(network.url("/slow/file"))
        try await daemon.state(of: id, "to run") { $0.bytesDone >= mebibyte }
        try await network.setLink(up: false)
        let waiting = try await daemon.state(of: id, "to wait for the network", within: .seconds(30)) {
            $0.state == .waiting && $0.reason == .network
        }
        #expect(waiting.bytesDone >= mebibyte)
        // The task retries repeatedly meanwhile. If each retry counted as one of its three attempts, it would fail.
        try await Task.sleep(for: .seconds(4))
        #expect(try daemon.task(id).state != .failed)
        try await network.setAddress(address)
        let begin = ContinuousClock.now
        try await network.setLink(up: true)
        let task = try await daemon.settled(id, within: .seconds(40))
        #expect(task.state == .completed, "\(task)")
        // The transfer of the file takes five seconds of that.
        #expect(begin.duration(to: .now) < .seconds(20))
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
        #expect(nginx.accesses(for: "/slow/file").last?.status == 206)
        daemon.expectTidy()
    }
}
