import FoundationEssentials
import TaskModel
import TestSupport
import Testing

/// The daemon's nice value: the one that it was started with.
@Suite("Nice values", .timeLimit(.minutes(1)))
struct NiceValueTests {
    /// Returns the nice value of each thread (proc(5), the 19th field of `stat`), counted after the thread's name in
    /// parentheses.
    private func niceValues(of pid: Int32) throws -> [Int] {
        let tasks = "/proc/\(pid)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { thread in
            guard let data = FileManager.default.contents(atPath: "\(tasks)/\(thread)/stat") else { return nil }
            let fields = String(decoding: data, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
            return fields.count > 16 ? Int(fields[16]) : nil
        }
    }

    @Test("every thread keeps the nice value of the daemon's start, and libdispatch has nothing to complain about")
    func kept() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")]])
        let daemon = try DaemonProcess(prefix: ["nice", "-n", "5"], environment: ["LIBDISPATCH_LOG": "stderr"])
        try await daemon.start()
        for number in 0..<8 {
            let id = try await daemon.add("-o", "\(number)", server.url("/a"))
            #expect(try await daemon.settled(id).state == .completed)
        }
        let values = try niceValues(of: try #require(daemon.pid))
        #expect(values.count > 4 && values.allSatisfy { $0 == 5 }, "\(values)")
        #expect(!daemon.log.contains("thread priority"), "\(daemon.log)")
    }
}
