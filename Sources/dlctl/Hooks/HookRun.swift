import Dispatch
import FoundationEssentials
import Glibc
import TaskModel

/// A hook's command that runs, as recorded beside its cursor for other runs of this program.
struct HookRun: Codable, Equatable {
    /// The process, which is also its process group.
    let process: pid_t
    /// The start time of the process as the kernel states it, which tells it from a later one of the same number.
    private let start: String
    /// Milliseconds since 1970.
    let since: Milliseconds
    let event: Int64
    let task: TaskID?
    let command: String

    /// - Returns: `nil` if the process has ended.
    init?(process: pid_t, since: Milliseconds, event: TaskEvent, command: String) {
        guard let start = Self.start(of: process) else { return nil }
        self.process = process
        self.start = start
        self.since = since
        self.event = event.sequence
        task = event.id
        self.command = command
    }

    /// The suffix of the file beside a cursor.
    static let suffix = ".running"

    var isRunning: Bool { Self.start(of: process) == start }

    /// Returns the start time of a process (proc_pid_stat(5), field 22).
    private static func start(of process: pid_t) -> String? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.utf8.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        // The name may contain anything. The fields from the third on follow it.
        let fields = text[end...].dropFirst(2).split(separator: " ")
        return fields.count > 19 ? String(fields[19]) : nil
    }

    /// Returns the commands that a cursor's file records and that still run.
    static func read(_ path: String) -> [HookRun] {
        guard let data = try? Data(contentsOf: URL(filePath: path + suffix)),
            let runs = try? JSONDecoder().decode([HookRun].self, from: data)
        else { return [] }
        return runs.filter(\.isRunning)
    }

    /// Returns the commands that have run for long, with the names of their cursors.
    static func long(in directory: String, now: Milliseconds) -> [(cursor: String, run: HookRun)] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return names.filter { $0.hasSuffix(suffix) }.sorted().flatMap { name in
            let cursor = String(name.dropLast(suffix.count))
            return read(directory + "/" + cursor).map { (cursor, $0) }
        }.filter { now - $0.1.since >= longTime }
    }

    /// The time in milliseconds after which a command runs for long.
    static let longTime: Milliseconds = 60_000

    /// Names the command on standard error, and ends it after the limit if this program goes on until then.
    func announce(endingAfter limit: Milliseconds?) {
        Output.note("dlctl: the command \(words(now: Clock.now()))")
        guard let limit else { return }
        let left = max(0, since.addingClamped(limit) - Clock.now())
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(left))) {
            for signal in [SIGTERM, SIGKILL] where isRunning {
                _ = kill(-process, signal)  // fails only where the group has ended
                _ = usleep(UInt32(HookProcess.grace * 1e6))  // a signal only shortens the time
            }
        }
    }

    /// Returns words such as `has run for 2 min 5 s (process 4711, event 17 of task 7): unzip -q "$DLD_PATH"`.
    func words(now: Milliseconds) -> String {
        let place = "event \(event)" + (task.map { " of task \($0)" } ?? "")
        return "has run for \(Describe.span(milliseconds: now - since)) (process \(process), \(place)): \(command)"
    }
}
