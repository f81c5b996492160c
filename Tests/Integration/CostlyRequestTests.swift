import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// What one user's few requests cost the others: each way is measured while another user asks for the status and adds
/// tasks, and the daemon is ended in the middle of it.
@Suite(
    "Users whose few requests are costly", .serialized, .timeLimit(.minutes(5)),
    .enabled(if: isRoot, "only root can become other users"))
struct CostlyRequestTests {
    /// A script that prepares a way, follows it as user 64001 for some seconds and prints what it costs: the longest
    /// time of another user's `daemon.status` and `task.add` in milliseconds, MiB above rest, and the milliseconds from
    /// SIGTERM to the end of the daemon.
    private static let script = #"""
        import fcntl, json, os, signal, socket, sys, threading, time
        path, pid, way, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
        user, other = 64001, 64009
        lock = threading.Lock()

        def memory():
            return next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS")) / 1024

        def connect(uid):
            s = socket.socket(socket.AF_UNIX)
            with lock:
                os.seteuid(uid)
                try: s.connect(path)
                finally: os.seteuid(0)
            return s

        def send(s, method, params={}):
            s.sendall((json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n").encode())

        def call(s, method, params={}):
            send(s, method, params)
            answer = b""
            while not answer.endswith(b"\n"):
                part = s.recv(1 << 20)
                if not part: raise ConnectionError("the daemon hung up")
                answer += part
            answer = json.loads(answer)
            if "error" in answer: raise SystemExit(f"{method}: {answer}")
            return answer["result"]

        def add(s, number, entry):
            ids = []
            for first in range(0, number, 500):
                tasks = [entry(n) for n in range(first, min(first + 500, number))]
                ids += call(s, "task.add", {"tasks": tasks})["ids"]
            return ids

        s = connect(user)
        url = "http://127.0.0.1:9/"
        if way in ("searches", "broken searches"):
            long = url + "q" * 2000
            add(s, 10000, lambda n: {"url": long, "key": str(n), "paused": True})
        elif way == "chain":
            first = add(s, 1, lambda n: {"url": url, "paused": True})[0]
            for part in range(first, first + 4000, 500):
                one = lambda n: {"jsonrpc": "2.0", "id": n, "method": "task.add", "params": {"tasks": [
                    {"url": url, "afterTask": n}]}}
                s.sendall((json.dumps([one(n) for n in range(part, part + 500)]) + "\n").encode())
                answer = b""
                while not answer.endswith(b"\n"): answer += s.recv(1 << 20)
                if b"error" in answer: raise SystemExit(answer[:300].decode())
        elif way == "batches":
            add(s, 20000, lambda n: {"url": url, "batch": "b" * 200 + str(n), "paused": True})

        def search(s):
            text = "q" * 1000 + "z"
            call(s, "task.list", {"limit": 1, "filter": {"search": text}})

        def searches():
            s = connect(user)
            while True: search(s)

        def broken():
            while True:
                s = connect(user)
                send(s, "task.list", {"limit": 1, "filter": {"search": "q" * 1000 + "z"}})
                time.sleep(0.05)
                s.close()

        def chain():
            s = connect(user)
            while True:
                for what in "pause", "resume", "cancel", "retry": call(s, "task." + what, {"filter": {}})

        def batches():
            kept = []
            while True:
                s = connect(user)
                for n in range(20): send(s, "queue.list")
                kept.append(s)
                time.sleep(60 if len(kept) > 40 else 0.02)

        def leases():
            # This process keeps the leases. Each file that comes makes the daemon open it.
            for n in range(20):
                f = os.open(f"{directory}.leased{n}", os.O_RDWR | os.O_CREAT, 0o644)
                fcntl.fcntl(f, 10, signal.SIGURG)
                fcntl.fcntl(f, 1024, fcntl.F_WRLCK)
                os.rename(f"{directory}.leased{n}", f"{directory}/leased{n}")
            n = 0
            while True:
                n += 1
                os.close(os.open(f"{directory}/plain{n}", os.O_WRONLY | os.O_CREAT, 0o644))
                time.sleep(0.1)

        asked = [connect(other), connect(other)]
        for n in range(5): call(asked[0], "daemon.status")
        rest, most, going, waits = memory(), 0, True, {"daemon.status": 0, "task.add": 0}

        def ask(s, method, params):
            while going:
                before = time.monotonic()
                call(s, method, params)
                waits[method] = max(waits[method], time.monotonic() - before)
                time.sleep(0.02)

        ways = {"searches": searches, "broken searches": broken, "chain": chain, "batches": batches, "leases": leases}
        def follow():
            try: ways[way]()
            except (OSError, ValueError): pass
        for n in range({"searches": 4, "broken searches": 4, "batches": 4}.get(way, 1)):
            threading.Thread(target=follow, daemon=True).start()
        time.sleep(0.3)
        asking = [
            threading.Thread(target=ask, args=(asked[0], "daemon.status", {})),
            threading.Thread(target=ask, args=(asked[1], "task.add", {"tasks": [{"url": url, "paused": True}]})),
        ]
        for thread in asking: thread.start()
        end = time.monotonic() + 8
        while time.monotonic() < end:
            most = max(most, memory())
            time.sleep(0.02)
        going = False
        for thread in asking: thread.join()
        before = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        while time.monotonic() < before + 60:
            try: state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
            except OSError: break
            if state == "Z": break
            time.sleep(0.02)
        ended = time.monotonic() - before
        print(*(int(x) for x in (waits["daemon.status"] * 1000, waits["task.add"] * 1000, most - rest, ended * 1000)))
        sys.stdout.flush()
        os._exit(0)
        """#

    @Test(
        "A38 to A41: searches, chains, batches and leases delay no other user, and the daemon's end neither",
        arguments: ["searches", "broken searches", "chain", "batches", "leases"])
    func costs(way: String) async throws {
        let daemon = try DaemonProcess(
            configuration: """
                control: {mode: 0666}
                disk: {min-free: 0}
                watch: [{directory: '@DIR@/drop'}]

                """, mode: 0o755)
        let drop = try daemon.directory.makeDirectory("drop")
        try await daemon.start()
        let script = try daemon.directory.write(Self.script, to: "user.py")
        let pid = try #require(daemon.pid)
        let outcome = try await run(
            ["python3", "-B", script, daemon.socket, "\(pid)", way, drop], within: .seconds(200))
        #expect(outcome.succeeded, "\(outcome.error)")
        let figures = outcome.output.split { !$0.isNumber && $0 != "-" }.compactMap { Int($0) }
        try #require(figures.count == 4, "\(outcome.output)")
        // This is a debug build, and the machine runs other tests.
        let margin = ProcessInfo.processInfo.environment["DLD_STRICT_TIMES"] == "1" ? 1 : 3
        #expect(figures[0] < 1_000 * margin, "milliseconds of daemon.status: \(figures)")
        #expect(figures[1] < 1_000 * margin, "milliseconds of task.add: \(figures)")
        #expect(figures[2] < 64, "MiB above rest: \(figures)")
        #expect(figures[3] < 5_000 * margin, "milliseconds to the end: \(figures)")
        if way == "leases" {
            let names = TemporaryDirectory.names(beneath: drop)
            #expect(
                names.contains { $0.hasPrefix(".failed/plain") || $0.hasPrefix(".done/plain") }, "\(names.prefix(9))")
        }
    }
}
