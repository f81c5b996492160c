import Testing

@testable import Transfer

@Suite("What a session knows of the lines to its hosts")
struct HostPathsTests {
    private let host = "http://127.0.0.1:80"

    @Test("a download sees the bytes and connections of all from its host, and only those")
    func company() throws {
        let lines = HostPaths()
        let progress = [TransferProgress(), TransferProgress(), TransferProgress()]
        progress[0].transferred(5)
        for (task, progress) in progress.enumerated() {
            lines.enter(task, at: task == 2 ? "http://127.0.0.2:80" : host, progress: progress, now: 0)
        }
        // Bytes received before it entered do not count.
        progress[0].transferred(100)
        progress[1].transferred(10)
        progress[2].transferred(1)
        _ = lines.look(1, at: host, connections: 4, isTrying: false, now: 0)
        let view = try #require(lines.look(0, at: host, connections: 3, isTrying: false, now: 0))
        #expect(view.received == 110 && view.others == 4 && view.mayTry && view.capacity == nil)
        // The count never falls.
        lines.unregister(1, at: host)
        let later = try #require(lines.look(0, at: host, connections: 3, isTrying: false, now: 0))
        #expect(later.received == 110 && later.others == 0)
        #expect(lines.look(1, at: host, connections: 1, isTrying: false, now: 0) == nil)
    }

    @Test("F80: a host that serves one connection is known for ten minutes, with or without downloads")
    func singleService() {
        let lines = HostPaths()
        #expect(lines.singleService(at: host, now: 0) == nil)
        let end = lines.recordSingleService(at: host, now: 1_000)
        #expect(end == 1_000 + HostPaths.memory)
        lines.enter(0, at: host, progress: TransferProgress(), now: 2_000)
        lines.unregister(0, at: host)
        #expect(lines.singleService(at: host, now: end - 1) == end)
        #expect(lines.singleService(at: host, now: end) == nil)
        #expect(lines.singleService(at: "http://127.0.0.2:80", now: 2_000) == nil)
        // Hosts are forgotten in the order in which they were measured.
        for number in 0..<HostPaths.limit {
            _ = lines.recordSingleService(at: "http://\(number)", now: 2_000 + Int64(number))
        }
        #expect(lines.singleService(at: host, now: 3_000) == nil)
        #expect(lines.singleService(at: "http://0", now: 3_000) != nil)
    }

    @Test("one download at a host tries at a time, until it has settled or left")
    func oneTrial() throws {
        let lines = HostPaths()
        for task in 0..<3 { lines.enter(task, at: host, progress: TransferProgress(), now: 0) }
        func mayTry(_ task: Int, isTrying: Bool) -> Bool? {
            lines.look(task, at: host, connections: 1, isTrying: isTrying, now: 0)?.mayTry
        }
        #expect(mayTry(0, isTrying: true) == true)
        #expect(mayTry(1, isTrying: true) == false)
        #expect(mayTry(0, isTrying: false) == true)
        #expect(mayTry(1, isTrying: true) == true)
        #expect(mayTry(2, isTrying: true) == false)
        lines.unregister(1, at: host)
        #expect(mayTry(2, isTrying: true) == true)
    }

    @Test("a capacity is remembered for ten minutes, also while nothing is fetched")
    func memory() throws {
        let lines = HostPaths()
        lines.enter(0, at: host, progress: TransferProgress(), now: 0)
        lines.record(.each, at: host, now: 1_000)
        lines.unregister(0, at: host)
        lines.enter(1, at: host, progress: TransferProgress(), now: 0)
        func capacity(_ now: Int64) -> PathCapacity? {
            lines.look(1, at: host, connections: 1, isTrying: false, now: now)?.capacity
        }
        #expect(capacity(2_000) == .each)
        #expect(capacity(1_000 + HostPaths.memory) == .each)
        #expect(capacity(1_001 + HostPaths.memory) == nil)
    }

    @Test("so many hosts are remembered, and those measured last")
    func bound() {
        let lines = HostPaths()
        for number in 0...HostPaths.limit {
            let host = "http://host\(number)"
            lines.enter(number, at: host, progress: TransferProgress(), now: Int64(number))
            lines.record(.each, at: host, now: Int64(number))
            lines.unregister(number, at: host)
        }
        func isKnown(_ number: Int) -> Bool {
            let host = "http://host\(number)"
            lines.enter(-1, at: host, progress: TransferProgress(), now: 500)
            defer { lines.unregister(-1, at: host) }
            return lines.look(-1, at: host, connections: 1, isTrying: false, now: 500)?.capacity != nil
        }
        #expect(isKnown(HostPaths.limit))
        #expect(!isKnown(0))
    }
}
