import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// A daemon with a substitute that listens on the socket of systemd's journal.
@Suite(
    "systemd's journal", .enabled(if: geteuid() == 0, "only root can stand in for the journal"), .timeLimit(.minutes(2))
)
struct JournalTests {
    @Test("A22: a line end in what is logged makes no field of the journal's, and no second line")
    func forgedFields() async throws {
        let directory = try TemporaryDirectory()
        let downloads = "\(directory.path)/a\nPRIORITY=0\n\u{1B}[31m"
        let outcome = try await run([
            "unshare", "--mount", "--propagation", "private", "python3", "-c", Self.program,
            try DaemonProcess.program("dld"), directory.path, downloads,
        ])
        #expect(outcome.status == .exited(0), "\(outcome)")
        let fields = try JSONDecoder().decode([[String]].self, from: Data(outcome.output.utf8))
        #expect(fields.filter { $0[0] == "PRIORITY" } == [["PRIORITY", "6"]])
        #expect(fields.contains(["DLD_DOWNLOADS", downloads]), "\(fields)")
        let message = try #require(fields.first { $0[0] == "MESSAGE" })[1]
        #expect(message.contains(#"/a\u{a}PRIORITY=0\u{a}\u{1b}[31m"#), "\(message)")
    }

    /// A program that starts the daemon, prints the fields of its first message `ready`, and ends it. The protocol is
    /// that of systemd.io/JOURNAL_NATIVE_PROTOCOL.
    private static let program = #"""
        import json, os, signal, socket, struct, subprocess, sys
        dld, place, downloads = sys.argv[1:]
        os.makedirs(downloads)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
        os.makedirs("/run/systemd/journal")
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        journal.bind("/run/systemd/journal/socket")
        journal.settimeout(60)
        with open(place + "/dld.yaml", "w"): pass
        settings = {**os.environ, "JOURNAL_STREAM": "1:1", "XDG_CONFIG_HOME": "/nonexistent"}
        child = subprocess.Popen([dld, "--config", place + "/dld.yaml", "--socket", place + "/socket",
            "--state-directory", place + "/state", "--download-directory", downloads], env=settings)
        try:
            while True:
                rest, fields = journal.recv(1 << 20), []
                while rest:
                    line, _, rest = rest.partition(b"\n")
                    name, separator, value = line.partition(b"=")
                    if not separator:
                        size, = struct.unpack("<Q", rest[:8])
                        value, rest = rest[8:8 + size], rest[9 + size:]
                    fields.append([name.decode(), value.decode()])
                if any(name == "MESSAGE" and value.startswith("ready") for name, value in fields): break
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait()
        print(json.dumps(fields))
        """#
}
