import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("Worker threads")
struct WorkerThreadsTests {
    @Test("10,000 pieces of work from eight threads all run, each once")
    func nothingLost() async throws {
        let workers = WorkerThreads(name: "test-many", limit: 4)
        defer { workers.stop() }
        let seen = Mutex([Int](repeating: 0, count: 10_000))
        let left = Atomic<Int>(10_000)
        let done = try WakeUp(counting: true)
        for poster in 0..<8 {
            try startThread {
                for number in stride(from: poster, to: 10_000, by: 8) {
                    workers.perform {
                        seen.withLock { $0[number] += 1 }
                        if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done.signal() }
                    }
                }
            }
        }
        await waiting { done.wait() }
        #expect(seen.withLock { $0.allSatisfy { $0 == 1 } })
    }

    @Test("no more threads work at once than the limit, and that many do")
    func limit() async throws {
        let workers = WorkerThreads(name: "test-limit", limit: 3)
        defer { workers.stop() }
        let counts = Mutex((now: 0, most: 0))
        let (arrived, gate, done) = try (WakeUp(counting: true), WakeUp(counting: true), WakeUp(counting: true))
        for _ in 0..<12 {
            workers.perform {
                counts.withLock { counts in
                    counts.now += 1
                    counts.most = max(counts.most, counts.now)
                }
                arrived.signal()
                gate.wait()
                counts.withLock { $0.now -= 1 }
                done.signal()
            }
        }
        // All three threads are held at once before any may continue.
        await waiting { for _ in 0..<3 { arrived.wait() } }
        for _ in 0..<12 { gate.signal() }
        await waiting { for _ in 0..<12 { done.wait() } }
        #expect(counts.withLock { $0.most } == 3)
    }

    @Test("work that blocks does not hold up what comes after it")
    func blocked() async throws {
        let workers = WorkerThreads(name: "test-block", limit: 2)
        defer { workers.stop() }
        let gate = try WakeUp(counting: true)
        workers.perform { gate.wait() }
        for _ in 0..<100 {
            await withCheckedContinuation { continuation in workers.perform { continuation.resume() } }
        }
        gate.signal()
    }

    @Test("after a stop the waiting work is still done, and then the threads end")
    func stop() async throws {
        let workers = WorkerThreads(name: "test-stop", limit: 1)
        let (started, gate) = try (WakeUp(counting: true), WakeUp(counting: true))
        let done = Atomic<Int>(0)
        workers.perform {
            started.signal()
            gate.wait()
        }
        for _ in 0..<10 { workers.perform { done.wrappingAdd(1, ordering: .relaxed) } }
        await waiting { started.wait() }
        #expect(ThreadProbe(name: "test-stop") != nil)
        workers.stop()
        gate.signal()
        try await eventually(that: "the thread has ended") { ThreadProbe(name: "test-stop") == nil }
        let total = done.load(ordering: .relaxed)
        #expect(total == 10)
    }

    @Test("threads without work end after a while, and others come with the next work")
    func idleThreadsEnd() async throws {
        let workers = WorkerThreads(name: "test-idle", limit: 3, idleTimeout: 20)
        for _ in 0..<3 {
            let done = try WakeUp(counting: true)
            for _ in 0..<6 { workers.perform { done.signal() } }
            await waiting { for _ in 0..<6 { done.wait() } }
            try await eventually(that: "the threads have ended") { ThreadProbe(name: "test-idle") == nil }
        }
    }

    @Test("work that comes as the threads give up is not left lying")
    func noIdleTime() async throws {
        let workers = WorkerThreads(name: "test-impatient", limit: 2, idleTimeout: 0)
        await waiting {
            for _ in 0..<20_000 {
                guard let done = try? WakeUp(counting: true) else { return }
                workers.perform { done.signal() }
                done.wait()
            }
        }
    }

    @Test("what a piece of work held is let go of once it has run, though others wait behind it")
    func release() async throws {
        final class Held: Sendable {}
        let workers = WorkerThreads(name: "test-free", limit: 1)
        defer { workers.stop() }
        let (first, ran, gate) = try (WakeUp(counting: true), WakeUp(counting: true), WakeUp(counting: true))
        weak var seen: Held?
        func post() {
            let held = Held()
            seen = held
            workers.perform { withExtendedLifetime(held) {} }
        }
        workers.perform { first.wait() }
        post()
        workers.perform {
            ran.signal()
            gate.wait()
        }
        workers.perform {}
        #expect(seen != nil)
        first.signal()
        await waiting { ran.wait() }
        #expect(seen == nil)
        gate.signal()
    }
}

/// Runs a blocking `body` on its own thread, never on one that runs the tests.
func waiting<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        SystemThread.start(name: "test-waiting") { continuation.resume(returning: body()) }
    }
}
