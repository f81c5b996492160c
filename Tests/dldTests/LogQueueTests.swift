import Dispatch
import Logging
import Synchronization
import TestSupport
import Testing

@testable import dld

@Suite("The messages that wait for the log", .timeLimit(.minutes(1)))
struct LogQueueTests {
    private final class Log: Sendable {
        let texts = Mutex<[String]>([])
        let isWriting = DispatchSemaphore(value: 0)
        let mayWrite = DispatchSemaphore(value: 0)
    }

    private static func message(_ text: String) -> LogMessage { LogMessage(level: .info, text: text) }

    /// Returns a queue whose log has taken the first message and waits for its permission to write.
    private static func blocked() async throws -> (Log, LogQueue) {
        let log = Log()
        let queue = LogQueue { message in
            log.isWriting.signal()
            log.mayWrite.wait()
            log.texts.withLock { $0.append(message.text) }
        }
        queue.add(Self.message("first"))
        try await onThread { log.isWriting.wait() }
        return (log, queue)
    }

    @Test("messages are written in their order before a flush returns")
    func order() async throws {
        let log = Log()
        let queue = LogQueue { message in log.texts.withLock { $0.append(message.text) } }
        for number in 0..<1_000 { queue.add(Self.message("\(number)")) }
        let isWritten = try await onThread { queue.flush(within: 60) }
        #expect(isWritten && log.texts.withLock { $0 } == (0..<1_000).map(String.init))
    }

    @Test("a log that takes nothing holds nobody up, and the number of lost messages is logged once it does")
    func lost() async throws {
        let (log, queue) = try await Self.blocked()
        for number in 0..<LogQueue.limit + 10 { queue.add(Self.message("\(number)")) }
        let isWritten = try await onThread { queue.flush(within: 0) }
        #expect(!isWritten)
        for _ in 0..<LogQueue.limit + 2 { log.mayWrite.signal() }
        _ = try await onThread { queue.flush(within: 60) }
        let texts = log.texts.withLock { $0 }
        #expect(texts.count == LogQueue.limit + 2 && texts.dropLast().last == "\(LogQueue.limit - 1)")
        #expect(texts.last == LogMessage.lost(10).text)
    }

    @Test("large messages count by their size")
    func large() async throws {
        let (log, queue) = try await Self.blocked()
        let text = String(repeating: "x", count: LogQueue.byteLimit / 4)
        for _ in 0..<4 { queue.add(Self.message(text)) }
        for _ in 0..<5 { log.mayWrite.signal() }
        _ = try await onThread { queue.flush(within: 60) }
        #expect(
            log.texts.withLock { $0.map(\.count) } == [
                5, text.count, text.count, text.count, LogMessage.lost(1).text.count,
            ])
    }
}
