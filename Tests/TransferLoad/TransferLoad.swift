import CallCount
import Dispatch
import Glibc
import HTTPTypes
import Synchronization
import Transfer

/// A program that puts load on one session and measures the cost. The integration tests run it, because they need a
/// process whose memory and descriptors are not shared with other tests.
///
/// `TransferLoad small URL COUNT` makes `COUNT` requests, 64 at a time. `TransferLoad open URL COUNT` starts `COUNT`
/// transfers that do not end, and cancels them. `TransferLoad file URL DIRECTORY` downloads a large file and counts the
/// calls that the event loop's thread makes meanwhile. The output consists of `name value` lines.
@main
struct TransferLoad {
    static func main() async {
        let words = CommandLine.arguments
        guard words.count == 4 else { usage() }
        do {
            switch (words[1], Int(words[3])) {
            case ("small", let count?): try await small(words[2], count)
            case ("open", let count?): try await open(words[2], count)
            case ("file", nil): try await file(words[2], words[3])
            default: usage()
            }
        } catch {
            print("failed: \(error)")
            exit(1)
        }
    }

    private static func usage() -> Never {
        print("usage: TransferLoad small|open URL COUNT\n       TransferLoad file URL DIRECTORY")
        exit(64)
    }

    // MARK: Many requests in sequence

    static func small(_ url: String, _ count: Int) async throws {
        let manager = try SessionManager()
        var failures = await ask(url, 1_000, manager)
        report("memory-after-1000", residentKiB())
        let begin = DispatchTime.now()
        failures += await ask(url, count - 1_000, manager)
        report("milliseconds", Int((DispatchTime.now().uptimeNanoseconds - begin.uptimeNanoseconds) / 1_000_000))
        report("memory-after-all", residentKiB())
        report("failures", failures)
        report("requests-left", manager.delegate.requestCount)
        await end(manager)
    }

    /// - Returns: the number of failed requests.
    private static func ask(_ url: String, _ count: Int, _ manager: SessionManager) async -> Int {
        await withTaskGroup(of: Int.self) { group in
            for lane in 0..<64 {
                group.addTask {
                    var failures = 0
                    for _ in stride(from: lane, to: count, by: 64) {
                        if await manager.request(url).validate().outcome.error != nil { failures += 1 }
                    }
                    return failures
                }
            }
            return await group.reduce(0, +)
        }
    }

    // MARK: Many open transfers

    static func open(_ url: String, _ count: Int) async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let manager = try SessionManager()
        let handlers = Atomic<Int>(0)
        // Threads, pools and tables created by the first transfers must not count as cost of later ones.
        var requests: [DataRequest] = []
        func add(_ count: Int) async {
            let wanted = requests.count + count
            for _ in 0..<count {
                requests.append(
                    // Discard received data; otherwise the stored responses would dominate the measured memory.
                    manager.request(url).stream { _ in }
                        .response(queue: .inline) { _ in handlers.add(1, ordering: .relaxed) })
            }
            while requests.count(where: { $0.progress.completedBytes > 0 }) < wanted {
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
        await add(100)
        let before = residentKiB()
        await add(count)
        report("bytes-each", (residentKiB() - before) * 1024 / count)
        report("open", requests.count)
        let begin = DispatchTime.now()
        for request in requests { request.cancel() }
        while handlers.load(ordering: .relaxed) < requests.count { try? await Task.sleep(for: .milliseconds(1)) }
        report("cancel-milliseconds", Int((DispatchTime.now().uptimeNanoseconds - begin.uptimeNanoseconds) / 1_000_000))
        report("requests-left", manager.delegate.requestCount)
        await end(manager)
        // Report last, so that a second call of a handler is counted.
        report("handlers", handlers.load(ordering: .relaxed))
    }

    // MARK: The path of a chunk

    static func file(_ url: String, _ directory: String) async throws {
        let manager = try SessionManager()
        let isDone = Atomic<Bool>(false)
        var asked = TransferRequest(url: url)
        // Each claim of a segment is a request, which allocates memory.
        asked.segments = .one
        let request = manager.download(asked, to: "\(directory)/file").response(queue: .inline) { _ in
            isDone.store(true, ordering: .relaxed)
        }
        // The start and the end of the transfer are not part of the cost of a chunk.
        let margin: Int64 = 16 << 20
        while request.progress.completedBytes < margin, !isDone.load(ordering: .relaxed) { try await pause() }
        let before = call_count_now()
        var after = before
        while !isDone.load(ordering: .relaxed) {
            let now = call_count_now()
            guard request.progress.completedBytes < (request.progress.totalBytes ?? .max) - margin else { break }
            after = now
            try await pause()
        }
        _ = try await request.value
        report("reads", Int(after.reads - before.reads))
        report("writes", Int(after.writes - before.writes))
        report("allocations", Int(after.allocations - before.allocations))
        report("mutexes", Int(after.locks - before.locks))
        await end(manager)
    }

    private static func pause() async throws { try await Task.sleep(for: .milliseconds(1)) }

    /// Ends the session, which closes its idle connections.
    private static func end(_ manager: SessionManager) async {
        manager.session.finishTasksAndInvalidate()
        for _ in 0..<200 where sockets() > 0 { try? await Task.sleep(for: .milliseconds(10)) }
        report("sockets-left", sockets())
    }

    // MARK: Measurement

    static func report(_ name: String, _ value: Int) { print(name, value) }

    static func residentKiB() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        fgets(&line, Int32(line.count), file)
        let end = line.firstIndex(of: 0) ?? line.endIndex
        let words = String(decoding: line[..<end].map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: " ")
        return words.count > 1 ? (Int(words[1]) ?? 0) * 4 : 0
    }

    static func sockets() -> Int {
        (0..<65536).count { descriptor in
            var status = stat()
            return fstat(Int32(descriptor), &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
        }
    }
}
