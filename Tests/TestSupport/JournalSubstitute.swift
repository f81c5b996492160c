import FoundationEssentials

/// A substitute for systemd's journal, which keeps the entries that a daemon sends. Only root can stand in for the
/// journal.
package final class JournalSubstitute: Sendable {
    private let directory: TemporaryDirectory
    private var file: String { directory.file("entries") }

    package init() throws {
        directory = try TemporaryDirectory()
    }

    /// The fields of an entry. A field may have several values.
    package typealias Entry = [String: [String]]

    /// The command that runs a daemon with this journal.
    package var prefix: [String] {
        ["unshare", "--mount", "--propagation", "private", "python3", "-c", Self.program, file]
    }

    /// The environment that tells a daemon of the journal.
    package let environment: [String: String?] = ["JOURNAL_STREAM": "1:1"]

    /// Returns the entries so far, of every daemon that ran with this journal.
    package func entries() throws -> [Entry] {
        guard let data = try? Data(contentsOf: URL(filePath: file)) else { return [] }
        // The last line may still be written.
        return try data.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast().map { line in
            try JSONDecoder().decode(Entry.self, from: Data(line))
        }
    }

    /// Returns the entries about a task.
    package func story(of id: Int64) throws -> [Entry] {
        try entries().filter { $0["TASK_ID"]?.contains("\(id)") == true }
    }

    /// A program that becomes the daemon, beside a process that receives its entries until it has ended. The protocol
    /// is that of systemd.io/JOURNAL_NATIVE_PROTOCOL.
    private static let program = #"""
        import json, os, socket, struct, subprocess, sys
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.makedirs("/run/systemd/journal")
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.bind("/run/systemd/journal/socket")
        daemon = os.getpid()
        if os.fork():
            os.execvp(sys.argv[2], sys.argv[2:])
        journal.settimeout(0.05)
        with open(sys.argv[1], "a") as entries:
            while True:
                alive = os.getppid() == daemon
                try:
                    rest = journal.recv(1 << 20)
                except TimeoutError:
                    if alive: continue
                    break
                fields = {}
                while rest:
                    line, _, rest = rest.partition(b"\n")
                    name, separator, value = line.partition(b"=")
                    if not separator:
                        size, = struct.unpack("<Q", rest[:8])
                        value, rest = rest[8:8 + size], rest[9 + size:]
                    fields.setdefault(name.decode(), []).append(value.decode())
                entries.write(json.dumps(fields) + "\n")
                entries.flush()
        """#
}
