import Curl
import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Syncs that parts share")
struct SharedSyncTests {
    private let place: Place

    init() throws { place = try Place() }

    private func parts(_ count: Int) throws -> [PartFile] {
        try (0..<count).map { number in
            let part = try PartFile.make(in: place.directory, name: ".test-\(number).part", owner: "test-\(number)")
            try write(number + 1, to: part)
            return part
        }
    }

    private func write(_ count: Int, to part: PartFile) throws {
        let run = part.beginRun(at: 0)
        try [UInt8](repeating: 7, count: count).withUnsafeBytes { try part.write($0, to: run) }
        part.end(run)
    }

    @Test("one sync covers what each part had when it began")
    func covers() throws {
        let parts = try parts(10)
        for (number, result) in PartFile.synchronize(parts).enumerated() {
            #expect(try result.get().ranges == [0..<Int64(number + 1)])
            #expect(parts[number].unsynced == 0)
        }
        #expect(PartFile.synchronize([]).isEmpty)
    }

    @Test("a part that lost bytes before stays one that did; the others are none the worse")
    func failed() throws {
        let parts = try parts(3)
        try write(5, to: parts[1])
        // A pipe replaces the descriptor: the file cannot be checked.
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        try #require(dup2(ends[0], parts[1].descriptor.raw) >= 0)
        let results = PartFile.synchronize(parts)
        #expect(throws: TransferError.self) { try results[1].get() }
        #expect(throws: TransferError.self) { try parts[1].synchronize() }
        #expect(try results[0].get().count == 1)
        #expect(try results[2].get().count == 3)
    }

    @Test("everyone who waits is answered once, whether alone or with others", arguments: [1, 7, 8, 100])
    func answers(count: Int) async throws {
        let threads = WorkerThreads(name: "test-sync", limit: 2)
        defer { threads.stop() }
        let syncs = SharedSync(on: threads)
        let parts = try parts(count)
        // Both threads are busy while the parts are enqueued.
        let gate = DispatchSemaphore(value: 0)
        for _ in 0..<2 { threads.perform { gate.wait() } }
        let answers = Mutex<[Int: Int64]>([:])
        await withCheckedContinuation { continuation in
            for (number, part) in parts.enumerated() {
                syncs.synchronize(part) { result in
                    let isLast = answers.withLock { answers in
                        answers[number, default: 0] += (try? result.get().count) ?? -1
                        return answers.count == count
                    }
                    if isLast { continuation.resume() }
                }
            }
            for _ in 0..<2 { gate.signal() }
        }
        #expect(answers.withLock { $0 } == Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, Int64($0 + 1)) }))
    }
}
