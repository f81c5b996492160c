import TaskModel
import Testing

@testable import dlctl

@Suite("Sorted lists") struct SortedTasksTests {
    private func ids(_ order: SortedTasks.Order, limit: Int? = nil, _ tasks: [TaskStatus]) throws -> [Int64] {
        var sorted = try SortedTasks(by: order, limit: limit)
        for task in tasks { try sorted.add([task]) }
        return sorted.finish().map(\.id.rawValue)
    }

    @Test("unknown values come last in either direction, and equal ones by id")
    func orders() throws {
        let tasks = [sampleTask(1, of: 5), sampleTask(2), sampleTask(3, of: 9), sampleTask(4, of: 5)]
        #expect(try ids(.parse("bytesTotal"), tasks) == [1, 4, 3, 2])
        #expect(try ids(.parse("-bytesTotal"), tasks) == [3, 4, 1, 2])
        #expect(try ids(.parse("-id"), limit: 2, tasks) == [4, 3])
        let states = [sampleTask(1, .failed), sampleTask(2, .queued), sampleTask(3, .active)]
        #expect(try ids(.parse("state"), states) == [2, 3, 1])
    }

    @Test("with a limit, the first of any number of tasks are kept")
    func bounded() throws {
        var sorted = try SortedTasks(by: .parse("-id"), limit: 3)
        for start in stride(from: Int64(1), to: 100_000, by: 500) {
            try sorted.add((start..<start + 500).map { sampleTask($0) })
        }
        #expect(sorted.finish().map(\.id.rawValue) == [100_000, 99_999, 99_998])
    }

    @Test("without a limit, too many tasks are refused, and so is too large a limit")
    func refused() throws {
        var sorted = try SortedTasks(by: .parse("id"), limit: nil)
        try sorted.add((1...Int64(SortedTasks.maximum)).map { sampleTask($0) })
        let failure = #expect(throws: Failure.self) { try sorted.add([sampleTask(1)]) }
        #expect(failure?.status == .usage && failure?.message.contains("--limit N") == true)
        #expect(throws: Failure.self) { try SortedTasks(by: .parse("id"), limit: SortedTasks.maximum + 1) }
        #expect(throws: Failure.self) { try SortedTasks.Order.parse("odd") }
    }
}
