import Glibc

/// A thread of this process, found by its name.
package struct ThreadProbe {
    private let path: String

    package init?(name: String) {
        guard let probe = Self.all(where: { $0 == name }).first else { return nil }
        self = probe
    }

    private init(path: String) { self.path = path }

    /// Returns the threads whose names begin with `prefix`.
    package static func all(prefix: String) -> [ThreadProbe] { all { $0.hasPrefix(prefix) } }

    private static func all(where isWanted: (Substring) -> Bool) -> [ThreadProbe] {
        TemporaryDirectory.names(in: "/proc/self/task").map { "/proc/self/task/\($0)" }
            .filter { isWanted(read("\($0)/comm").dropLast()) }
            .map(ThreadProbe.init)
    }

    /// The number of voluntary context switches, which is the number of times the thread went to sleep.
    package var voluntarySwitches: Int? {
        let line = Self.read("\(path)/status").split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches:") }
        return line.flatMap { Int($0.drop { !$0.isNumber }) }
    }

    /// The processor time that the thread has used, in nanoseconds.
    package var processorTime: Int? {
        Self.read("\(path)/schedstat").split(separator: " ").first.flatMap { Int($0) }
    }

    private static func read(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var text = [UInt8](repeating: 0, count: 8192)
        let count = Glibc.read(descriptor, &text, text.count)
        return String(decoding: text.prefix(max(0, count)), as: UTF8.self)
    }
}
