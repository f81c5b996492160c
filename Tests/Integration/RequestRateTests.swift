import ControlProtocol
import Foundation
import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

/// `hosts: {…: {requests-per-second: N}}` with real daemons and servers that record when requests arrive.
@Suite("Requests per second", .serialized, .timeLimit(.minutes(4)))
struct RequestRateTests {
    /// Checks that no second has more arrivals than the rate, with one more for the time that a request is under way.
    private func expect(
        _ arrivals: [ContinuousClock.Instant], atMost rate: Double, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let arrivals = arrivals.sorted()
        var start = 0
        for (end, time) in arrivals.enumerated() {
            while time - arrivals[start] >= .seconds(max(1, 1 / rate)) { start += 1 }
            let count = Double(end - start + 1)
            let most = max(1, rate) + 1
            #expect(count <= most, sourceLocation: sourceLocation)
        }
        guard let first = arrivals.first, let last = arrivals.last, arrivals.count > 2 else { return }
        let least = Double(arrivals.count - 2) / rate
        #expect(last - first >= .seconds(least), "\(last - first)", sourceLocation: sourceLocation)
    }

    private func daemon(_ hosts: String, more: String = "") async throws -> DaemonProcess {
        try await DaemonProcess.started(
            "retry: {attempts: 9, base-delay: 10ms, max-delay: 20ms}\n" + more + "hosts: {\(hosts)}\n")
    }

    @Test("retries, redirects, small files on used connections and several connections of several tasks keep the rate")
    func everything() async throws {
        let rate = 20.0
        let body = Resource(size: 48 * mebibyte, seed: 5)
        let small = Resource(size: 100)
        var script: [String: [ScriptedAnswer]] = [
            "/retried": [.status(503), .status(500), .serve(small)],
            "/a": [.drip(body, bytesPerSecond: 12_000_000)], "/b": [.drip(body, bytesPerSecond: 12_000_000)],
        ]
        for number in 0..<20 { script["/small\(number)"] = [.serve(small)] }
        let server = try ScriptedServer(script)
        let front = try ScriptedServer(["/moved": [.redirect(server.url("/small0"))]])
        let daemon = try await daemon("'127.0.0.1:\(server.port)': {requests-per-second: 20}")
        var urls = (1..<20).map { server.url("/small\($0)") } + [front.url("/moved"), server.url("/retried")]
        urls += [server.url("/a"), server.url("/b")]
        let input = try daemon.directory.write(
            urls.joined(separator: "\n"), to: "list.txt")
        let added = try await daemon.dlctl("add", "--connections", "4", "--input", input)
        #expect(added.succeeded, "\(added.error)")
        try await eventually(that: "every task has completed") {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        let requests = server.requests()
        // 20 small files, three attempts at one, two large files and further connections.
        let least = 27
        #expect(requests.count >= least, "\(requests.count)")
        expect(requests.map(\.at), atMost: rate)
        for path in try daemon.tasks().filter({ $0.bytesTotal == body.size }).compactMap(\.path) {
            #expect(body.difference(fromFileAt: path) == nil)
        }
        daemon.expectTidy()
    }

    @Test("a rate below one is kept, waiting requests say so, and a pause takes them back at once")
    func slow() async throws {
        let small = Resource(size: 10)
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<4).map { ("/\($0)", [.serve(small)]) }))
        let daemon = try await daemon("'http://127.0.0.1:\(server.port)': {requests-per-second: 0.05}")
        var ids: [TaskID] = []
        for number in 0..<4 { ids.append(try await daemon.add(server.url("/\(number)"))) }
        _ = try await daemon.settled(ids[0])
        let waiting: TaskDetail = try await eventually(have: "a task that waits for its turn") {
            let detail: TaskDetail = try daemon.call(.taskGet, TaskGetParameters(id: ids[3]))
            return detail.waitingFor == nil ? nil : detail
        }
        #expect(
            waiting.waitingFor
                == "waits for its turn: http://127.0.0.1:\(server.port) gets at most 0.05 requests a second "
                + "(requests-per-second)")
        #expect(waiting.status.state == .active && waiting.status.phase == .connecting)
        let began = ContinuousClock.now
        #expect(try await daemon.dlctl("pause", "\(ids[1])", "\(ids[2])").succeeded)
        #expect(ContinuousClock.now - began < .seconds(10))
        // The turn of the paused ones is the last one's.
        #expect(try await daemon.settled(ids[3]).state == .completed)
        #expect(server.requests().count == 2)
        expect(server.requests().map(\.at), atMost: 0.05)
        #expect(try daemon.task(ids[1]).state == .paused)
    }

    @Test("a reload changes the rate of requests that wait, and takes it away")
    func reload() async throws {
        let small = Resource(size: 10)
        let server = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<12).map { ("/\($0)", [.serve(small)]) }))
        let host = "127.0.0.1:\(server.port)"
        let daemon = try await daemon("'\(host)': {requests-per-second: 0.01}")
        for number in 0..<6 { _ = try await daemon.add(server.url("/\(number)")) }
        try await eventually(that: "the first request came") { !server.requests().isEmpty }
        try daemon.configure("hosts: {'\(host)': {requests-per-second: 5}}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        try await eventually(that: "all are done", within: .seconds(20)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
        expect(server.requests().map(\.at), atMost: 5)
        try daemon.configure("hosts: {'\(host)': {requests-per-second: 0.01}}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        for number in 6..<12 { _ = try await daemon.add(server.url("/\(number)")) }
        try daemon.configure("limits: {active-tasks: 16}\n")
        #expect(try await daemon.dlctl("reload").succeeded)
        try await eventually(that: "all are done without a limit", within: .seconds(20)) {
            try daemon.tasks().allSatisfy { $0.state == .completed }
        }
    }

    @Test("another host is not slowed down")
    func otherHost() async throws {
        let small = Resource(size: 10)
        let slow = try ScriptedServer(["/a": [.serve(small)], "/b": [.serve(small)]])
        let quick = try ScriptedServer(
            Dictionary(uniqueKeysWithValues: (0..<10).map { ("/\($0)", [.serve(small)]) }))
        let daemon = try await daemon("'127.0.0.1:\(slow.port)': {requests-per-second: 0.01}")
        _ = try await daemon.add(slow.url("/a"), slow.url("/b"))
        for number in 0..<10 {
            let id = try await daemon.add(quick.url("/\(number)"))
            #expect(try await daemon.settled(id, within: .seconds(5)).state == .completed)
        }
        #expect(slow.requests().count == 1)
        #expect(try await daemon.terminate() == .exited(0), "requests that wait do not hold up the end")
    }
}
