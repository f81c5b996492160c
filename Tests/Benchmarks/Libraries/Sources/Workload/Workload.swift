import Glibc

/// Runs one workload by a client, and prints what it costs.
///
/// The output consists of `name value` lines: `microseconds` from the first request to the end of the last,
/// `processor-microseconds` of the whole process in user and kernel mode, and `peak-kib` of resident memory.
public enum Workload {
    private static let lanes = 64

    /// Carries out the workload that the arguments name.
    ///
    /// `get URL COUNT SIZE` fetches a response of `SIZE` bytes `COUNT` times. `download URL FILE` fetches a file.
    /// `upload URL COUNT SIZE` sends `SIZE` bytes from memory to `URL` with a number appended. `upload-file URL COUNT
    /// FILE` sends a file likewise. 64 requests run at once.
    public static func run<C: Client>(by _: C.Type) async {
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            let client = try C(connections: lanes)
            let begin = now()
            switch (words.first, words.count) {
            case ("get", 4): try await get(client, words[1], try number(words[2]), try number(words[3]))
            case ("download", 3): try await client.download(words[1], to: words[2])
            case ("upload", 4):
                let bytes = [UInt8](repeating: 0x61, count: try number(words[3]))
                try await repeated(try number(words[2])) { try await client.upload(bytes, to: words[1] + String($0)) }
            case ("upload-file", 4):
                try await repeated(try number(words[2])) {
                    try await client.upload(file: words[3], to: words[1] + String($0))
                }
            default: usage()
            }
            let end = now()
            try await client.close()
            report("microseconds", end - begin)
            reportUsage()
        } catch {
            fail("failed: \(error)", status: 1)
        }
    }

    private static func get(_ client: some Client, _ url: String, _ count: Int, _ size: Int) async throws {
        try await repeated(count) { _ in
            let received = try await client.get(url)
            guard received == size else { throw UnexpectedSize(size: received) }
        }
    }

    private static func repeated(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<lanes {
                group.addTask {
                    for index in stride(from: lane, to: count, by: lanes) { try await body(index) }
                }
            }
            try await group.waitForAll()
        }
    }

    private struct UnexpectedSize: Error { let size: Int }

    private static func number(_ text: String) throws -> Int {
        guard let number = Int(text), number > 0 else { usage() }
        return number
    }

    private static func usage() -> Never {
        fail(
            "usage: get URL COUNT SIZE | download URL FILE | upload URL COUNT SIZE | upload-file URL COUNT FILE",
            status: 64)
    }

    private static func fail(_ text: String, status: Int32) -> Never {
        print(text)
        exit(status)
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }

    private static func reportUsage() {
        var usage = rusage()
        guard getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return }
        let (user, system) = (usage.ru_utime, usage.ru_stime)
        report(
            "processor-microseconds",
            (Int(user.tv_sec) + Int(system.tv_sec)) * 1_000_000 + Int(user.tv_usec) + Int(system.tv_usec))
        report("peak-kib", usage.ru_maxrss)
    }

    private static func report(_ name: String, _ value: Int) { print(name, value) }
}
