import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("The loop and its thread")
struct TransferLoopTests {
    @Test("work runs in the order of the posts, all of it on one thread")
    func order() async throws {
        let loop = try TransferLoop(name: "test-order")
        defer { loop.stop() }
        let seen = Mutex<[(number: Int, thread: pthread_t)]>([])
        for number in 0..<2000 {
            loop.post { _ in seen.withLock { $0.append((number, pthread_self())) } }
        }
        let own = await loop.run { _ in pthread_self() }
        seen.withLock { seen in
            #expect(seen.map(\.number) == Array(0..<2000))
            #expect(seen.allSatisfy { $0.thread == own })
        }
    }

    @Test("a loop whose thread cannot run is an error, so that no work is posted to it")
    func noCore() {
        struct NoDescriptor: Error {}
        #expect(throws: NoDescriptor.self) {
            try TransferLoop(name: "test-no-core") { _, _ in throw NoDescriptor() }
        }
    }

    @Test("posts from many threads all run")
    func manyPosters() async throws {
        let loop = try TransferLoop(name: "test-posters")
        defer { loop.stop() }
        let count = Atomic<Int>(0)
        let done = try WakeUp(counting: true)
        for _ in 0..<8 {
            try startThread {
                for _ in 0..<1000 {
                    loop.post { _ in
                        if count.wrappingAdd(1, ordering: .relaxed).newValue == 8000 { done.signal() }
                    }
                }
            }
        }
        await waiting { done.wait() }
        let total = count.load(ordering: .relaxed)
        #expect(total == 8000)
    }

    @Test("an idle loop sleeps: neither a fresh one nor one that keeps a connection wakes up")
    func idle() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        let loop = try TransferLoop(name: "test-idle")
        defer { loop.stop() }
        func switchesWhileIdle() async throws -> Int {
            await loop.run { _ in }
            let thread = try #require(ThreadProbe(name: "test-idle"))
            // Waits until the thread sleeps again after that work.
            try await Task.sleep(for: .milliseconds(50))
            let before = try #require(thread.voluntarySwitches)
            try await Task.sleep(for: .milliseconds(300))
            return try #require(thread.voluntarySwitches) - before
        }
        #expect(try await switchesWhileIdle() <= 1)
        #expect(await loop.fetch(server.url("/f")).ending == "finished")
        #expect(try await switchesWhileIdle() <= 1)
    }

    @Test("a loop without work closes its connections after a while, and makes new ones when it has some again")
    func idleConnections() async throws {
        let server = try ScriptedServer(["/f": [.serve(Resource(size: 1000))]])
        let loop = try TransferLoop(name: "test-close", idleTimeout: 100)
        defer { loop.stop() }
        for round in 1...3 {
            #expect(await loop.fetch(server.url("/f")).ending == "finished")
            #expect(server.connectionsAccepted == round)
            try await eventually(that: "the connection is closed") { server.connectionsOpen == 0 }
        }
        // With the default idle time, successive exchanges reuse one connection.
        let patient = try TransferLoop(name: "test-keep")
        defer { patient.stop() }
        for _ in 1...3 { #expect(await patient.fetch(server.url("/f")).ending == "finished") }
        #expect(server.connectionsAccepted == 4)
    }

    @Test("a stop does what was posted before, ends exchanges as cancelled, and then the thread")
    func stop() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        let loop = try TransferLoop(name: "test-stopping")
        let records = Mutex<[ExchangeRecord]>([])
        let ended = try WakeUp(counting: true)
        loop.post { core in
            for _ in 0..<3 {
                core.begin(
                    server.url("/hang"),
                    RecordingHandler { record in
                        records.withLock { $0.append(record) }
                        ended.signal()
                    })
            }
        }
        try await eventually(that: "the server has the requests") { server.requests(for: "/hang").count == 3 }
        let ran = Mutex(false)
        loop.post { _ in ran.withLock { $0 = true } }
        loop.stop()
        await waiting { for _ in 0..<3 { ended.wait() } }
        #expect(records.withLock { $0.map(\.ending) } == ["cancelled", "cancelled", "cancelled"])
        #expect(ran.withLock { $0 })
        try await eventually(that: "the thread has ended") { ThreadProbe(name: "test-stopping") == nil }
    }

    // MARK: Timers

    @Test("a timer fires once, not before its time, and a cancelled one never")
    func timers() async throws {
        let loop = try TransferLoop(name: "test-timers")
        defer { loop.stop() }
        let begin = MonotonicTime.now()
        let fired = Mutex<[String]>([])
        await withCheckedContinuation { continuation in
            loop.post { core in
                let cancelled = core.after(milliseconds: 5) { fired.withLock { $0.append("cancelled") } }
                _ = core.after(milliseconds: 1) { fired.withLock { $0.append("early") } }
                _ = core.after(milliseconds: 40) {
                    fired.withLock { $0.append("late") }
                    continuation.resume()
                }
                core.cancelTimer(cancelled)
            }
        }
        #expect(MonotonicTime.now().milliseconds(since: begin) >= 39)
        #expect(fired.withLock { $0 } == ["early", "late"])
    }

    @Test("a timer that another cancels in the same turn does not fire")
    func timersThatCancel() async throws {
        final class Pair {
            var numbers: [Int] = []
        }
        let loop = try TransferLoop(name: "test-cancels")
        defer { loop.stop() }
        let fired = Atomic<Int>(0)
        await loop.run { core in
            let pair = Pair()
            for _ in 0..<2 {
                // Each of the two timers cancels both.
                pair.numbers.append(
                    core.after(milliseconds: 0) {
                        fired.wrappingAdd(1, ordering: .relaxed)
                        for number in pair.numbers { core.cancelTimer(number) }
                    })
            }
        }
        await loop.run { _ in }
        await withCheckedContinuation { continuation in
            loop.post { core in _ = core.after(milliseconds: 20) { continuation.resume() } }
        }
        let total = fired.load(ordering: .relaxed)
        #expect(total == 1)
    }

    @Test("work for an object is done on its loop's thread, in order, until the object is gone")
    func reference() async throws {
        final class Counter { var calls: [Int] = [] }
        let loop = try TransferLoop(name: "test-reference")
        defer { loop.stop() }
        let confined = LoopConfined<Counter>()
        let reference = await loop.run { core in
            let counter = Counter()
            confined.set(counter, on: core)
            return LoopReference(counter, on: core)
        }
        for call in 1...3 { reference.perform { $0.calls.append(call) } }
        let calls = await loop.run { core in
            defer { confined.set(nil, on: core) }
            return confined.value(on: core)?.calls
        }
        #expect(calls == [1, 2, 3])
        let late = Atomic<Bool>(false)
        reference.perform { _ in late.store(true, ordering: .relaxed) }
        let isGone = await loop.run { core in reference.object(on: core) == nil }
        #expect(isGone)
        let wasLate = late.load(ordering: .relaxed)
        #expect(!wasLate)
    }

    // MARK: Exchanges

    @Test("an exchange brings the head line by line and the body byte by byte")
    func exchange() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let loop = try TransferLoop(name: "test-exchange")
        defer { loop.stop() }
        let record = await loop.fetch(server.url("/f"))
        #expect(record.ending == "finished")
        #expect(record.headerLines.first?.hasPrefix("HTTP/1.1 200") == true)
        #expect(record.headerLines.contains("Content-Length: 300000"))
        #expect(record.headerLines.last == "")
        #expect(record.body == resource.bytes)
        #expect(await loop.run { $0.exchangeCount } == 0)
    }

    @Test("a port that nobody listens on is refused, with the system's reason")
    func refused() async throws {
        let loop = try TransferLoop(name: "test-refused")
        defer { loop.stop() }
        let record = await loop.fetch("http://127.0.0.1:\(try FreePort.next())/")
        #expect(record.ending == "failed 7")
        #expect(record.systemError == ECONNREFUSED)
    }

    @Test("a server that says nothing has stalled")
    func stalls() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        let loop = try TransferLoop(name: "test-stalls")
        defer { loop.stop() }
        let begin = MonotonicTime.now()
        #expect(await loop.fetch(server.url("/hang"), stallTimeout: 100).ending == "stalled")
        #expect(MonotonicTime.now().milliseconds(since: begin) >= 99)
    }

    @Test("time in which the loop was held up elsewhere is no stall")
    func heldUp() async throws {
        let line = NetworkLine(roundTrip: 700, rate: 1_000_000)
        let server = try ScriptedServer(line: line, ["/f": [.serve(Resource(size: 1000))]])
        let loop = try TransferLoop(name: "test-held-up")
        defer { loop.stop() }
        async let record = loop.fetch(server.url("/f"), stallTimeout: 1000)
        try await eventually(that: "the server is thinking") { line.connections == 1 }
        // Simulates a libcurl call that blocks the loop while it waits for another server.
        loop.post { _ in usleep(900_000) }
        #expect(await record.ending == "finished")
    }

    @Test("time that we paused for ourselves is no stall, and every byte comes after it")
    func pause() async throws {
        let resource = Resource(size: 200_000)
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let loop = try TransferLoop(name: "test-pause")
        defer { loop.stop() }
        let record = await loop.fetch(server.url("/f"), stallTimeout: 700, pausing: 1000)
        #expect(record.ending == "finished")
        #expect(record.body == resource.bytes)
    }
}
