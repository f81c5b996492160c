import ControlProtocol
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(
    "The largest answers", .serialized, .timeLimit(.minutes(5)),
    .enabled(if: isRoot, "only root can become other users"))
struct LargestAnswerTests {
    /// A script that makes each method answer with as much as it can, first once and then on many connections that read
    /// nothing, and prints a line for each: the name, the bytes of the answer and the MiB above rest.
    private static let script = #"""
        import json, os, socket, sys, time
        path, pid, methods = sys.argv[1], sys.argv[2], sys.argv[3:]
        user = 64001

        def memory():
            return next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS")) / 1024

        def connect():
            s = socket.socket(socket.AF_UNIX)
            os.seteuid(user)
            try: s.connect(path)
            finally: os.seteuid(0)
            return s

        def line(method, params):
            return (json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n").encode()

        def call(s, method, params):
            s.sendall(line(method, params))
            answer = b""
            while not answer.endswith(b"\n"):
                part = s.recv(1 << 20)
                if not part: break
                answer += part
            return answer

        url = "http://127.0.0.1:9/"
        s = connect()
        ids = []
        for first in range(0, 2000, 200):
            tasks = [{"url": url + "q" * 1500, "batch": '"' * 250 + str(n), "key": '"' * 250 + str(n), "paused": True}
                for n in range(first, first + 200)]
            ids += json.loads(call(s, "task.add", {"tasks": tasks}))["result"]["ids"]
        unknown = list(range(10 ** 12, 10 ** 12 + 10000))

        def queue(s, entries):
            number = json.loads(call(s, "queue.begin", {}))["result"]["queue"]
            if entries:
                entry = lambda n: {"url": f"{url}{n}/" + "e" * 400, "output": '"' * 200 + str(n)}
                call(s, "queue.put", {"queue": number, "entries": [entry(n) for n in range(1000)]})
            return number

        # What is sent once for each method, given the connection.
        largest = {
            "task.add": lambda s: {"tasks": [{"url": url, "paused": True}] * 100},
            "task.get": lambda s: {"id": ids[0]},
            "task.update": lambda s: {"ids": unknown, "changes": {"limit": 1}},
            "task.move": lambda s: {"id": ids[0], "first": True},
            "queue.put": lambda s: {"queue": queue(s, False), "entries": [url]},
            "queue.commit": lambda s: {"queue": queue(s, True), "dryRun": True},
            "queue.abort": lambda s: {"queue": queue(s, False)},
            "source.receive": lambda s: {"count": 1},
            "source.attach": lambda s: {"id": ids[0], "descriptor": 0},
            "backup.read": lambda s: {"offset": 0},
            "events.list": lambda s: {"after": 0},
            "events.subscribe": lambda s: {"after": 0},
        }
        for name in "pause", "resume", "cancel", "retry", "remove": largest["task." + name] = lambda s: {"ids": unknown}

        for method in methods:
            s = connect()
            params = largest.get(method, lambda s: {})
            answer = call(s, method, params(s))
            s.close()
            time.sleep(0.2)
            rest, most, clients = memory(), 0, []
            for n in range(24):
                s = connect()
                text = line(method, params(s)) * (1 if method.startswith(("task.add", "queue.", "source.")) else 30)
                s.setblocking(False)
                clients.append([s, text])
            end = time.monotonic() + 1.2
            while time.monotonic() < end:
                for client in clients:
                    try: client[1] = client[1][client[0].send(client[1][:65536]):] if client[1] else b""
                    except OSError: pass
                most = max(most, memory())
                time.sleep(0.02)
            for s, _ in clients: s.close()
            print(method, len(answer), int(most - rest), flush=True)
            time.sleep(0.3)
        """#

    @Test("A41: every method's largest answer fits into a line or its charge, and costs little where nobody reads it")
    func everyMethod() async throws {
        let daemon = try DaemonProcess(
            configuration: "control: {mode: 0666}\ndisk: {min-free: 0}\n", mode: 0o755)
        try await daemon.start()
        let script = try daemon.directory.write(Self.script, to: "user.py")
        let pid = try #require(daemon.pid)
        let methods = MethodName.allCases.map(\.rawValue)
        let outcome = try await run(
            ["python3", "-B", script, daemon.socket, "\(pid)"] + methods, within: .seconds(250))
        #expect(outcome.succeeded, "\(outcome.error)")
        let found = outcome.lines.map { $0.split(separator: " ") }
        try #require(found.map { $0.first.map(String.init) } == methods, "\(outcome.output)")
        for line in found {
            guard line.count == 3, let bytes = Int(line[1]), let mebibytes = Int(line[2]) else {
                Issue.record("\(line)")
                continue
            }
            // A change of ten thousand ids tells of each of them.
            let isChange = line[0].hasPrefix("task.") && !["task.list", "task.get", "task.count"].contains(line[0])
            #expect(bytes <= (isChange ? 4 << 20 : MessageLimits.lineLength), "\(line)")
            #expect(mebibytes < 64, "\(line)")
        }
        #expect(daemon.answers)
    }
}
