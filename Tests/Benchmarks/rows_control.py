"""Rows of the control socket: W9 beside thousands of open transfers, W11 at rest, beside a large file, besieged."""

import subprocess
import time

import counting
import processes
from daemons import MANY_FILES, TICKS, Connection
from processes import Child, Unusable
from rows_large import source
from settings import MIB


def percentile(values, share):
    """Returns the value below which a share of all lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def open_transfers(bench):
    """Thousands of slow downloads through the daemon, and the same in a bare loop around libcurl."""
    settings = bench.settings
    wanted, first, span = settings.count(5_000, 60), 20, max(2.0, settings.seconds(20))
    # More than each brings in the time of the row; the daemon sees to it that the disk has room for all.
    with open(bench.source / "slow", "wb") as file:
        file.truncate(2 * MIB)
    runs = {"dld": [], "libcurl alone": []}
    for number in range(min(3, settings.runs)):
        count = wanted
        for name, work in (("dld", _through_daemon), ("libcurl alone", _alone)):
            runs[name].append(work(bench, count, first, span))
            shown = ", ".join(f"{key} {value:.2f}" for key, value in runs[name][-1].items())
            print(f"  run {number + 1}, {name}: {shown}", flush=True)
            count = runs[name][-1]["open"]
            # Connections of the run before have ended at the server.
            bench.nginx().stop()
            bench.nginx().start()
    case = {"sides": runs, "transfers": wanted}
    if count < wanted:
        case["note"] = f"The daemon ran {count} of {wanted} transfers at once, and so did the bare loop"
    return {"open transfers": case}


def _through_daemon(bench, count, first, span):
    daemon = bench.daemon({
        "limits": {"active-tasks": count, "connections-per-host": count + 16, "connections-per-task": 1},
        "disk": {"min-free": 0}})
    daemon.downloads = str(bench.fresh("open"))
    daemon.start()

    def add(name, number):
        for begin in range(0, number, 500):
            daemon.call("task.add", {"tasks": [
                {"url": f"{bench.nginx().url('slow/slow')}?{name}={one}", "output": f"{name}-{one}"}
                for one in range(begin, min(number, begin + 500))]})

    # What the first downloads allocate for all is no cost of each.
    add("first", first)
    daemon.wait_until("the first are active", lambda status: status["tasks"].get("active", 0) >= first)
    time.sleep(1)
    before = daemon.kib("RssAnon")
    add("more", count - first)
    # The daemon may run fewer: its table of runs and the limit of open files have an end.
    count = _most_active(daemon, count)
    _wait_for_bytes(bench, daemon, count)
    spent, latencies, begin = daemon.processor(), [], time.monotonic()
    with bench.recording(daemon.child.pid):
        time.sleep(span)
    used = daemon.processor() - spent
    seconds = time.monotonic() - begin
    memory = daemon.kib("RssAnon")
    calls = counting.rate(bench, daemon.child.pid, 2)
    connection = Connection(daemon.socket)
    for _ in range(400):
        latencies.append(connection.latency())
        time.sleep(0.005)
    connection.close()
    if daemon.status()["tasks"].get("active", 0) < count:
        raise Unusable("some of the transfers ended")
    daemon.child.kill()
    return {"open": count, "processor_share": used / seconds, "each_kib": (memory - before) / (count - first),
            "status_p99_ms": percentile(latencies, 0.99), "status_p50_ms": percentile(latencies, 0.5), **calls}


def _most_active(daemon, wanted):
    """Returns the number of active tasks, once it is what is wanted or has not grown for five seconds."""
    most, grown = 0, time.monotonic()
    while most < wanted and time.monotonic() - grown < 5:
        active = daemon.status()["tasks"].get("active", 0)
        if active > most:
            most, grown = active, time.monotonic()
        time.sleep(0.1)
    return most


def _wait_for_bytes(bench, daemon, count):
    """Returns once each transfer has received something."""
    end = time.monotonic() + bench.settings.limit
    connection = Connection(daemon.socket)
    try:
        while True:
            after, ready = 0, 0
            while after is not None:
                page = connection.call("task.list", {"after": after})
                ready += sum(1 for task in page["tasks"] if task["bytesFetched"])
                after = page["next"]
            if ready >= count:
                return
            if time.monotonic() > end:
                raise Unusable(f"{ready} transfers of {count} have received bytes")
            time.sleep(0.5)
    finally:
        connection.close()


def _alone(bench, count, first, span):
    program = bench.helper("transfers", "-lcurl")

    def start(number):
        log = bench.fresh("log") / "transfers.log"
        words = [program, bench.nginx().url("slow/slow"), str(number), str(bench.fresh("alone"))]
        child = Child([*MANY_FILES, *words], str(log))
        end = time.monotonic() + bench.settings.limit
        while not log.exists() or "open" not in log.read_text():
            if child.poll() is not None or time.monotonic() > end:
                bench.fail(f"transfers: {child.poll()}: {log.read_text()[-500:]}")
            time.sleep(0.05)
        return child

    def memory(child):
        with open(f"/proc/{child.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    def processor(child):
        with open(f"/proc/{child.pid}/stat", encoding="ascii") as file:
            return sum(int(ticks) for ticks in file.read().rpartition(")")[2].split()[11:13]) / TICKS

    few = start(first)
    before = memory(few)
    few.kill()
    child = start(count)
    spent, begin = processor(child), time.monotonic()
    time.sleep(span)
    figures = {"open": count, "processor_share": (processor(child) - spent) / (time.monotonic() - begin),
               "each_kib": (memory(child) - before) / (count - first), **counting.rate(bench, child.pid, 2)}
    child.kill()
    return figures


def control(bench):
    """Calls a second at rest, and the time of one call while the large file arrives and under siege."""
    settings = bench.settings
    path = source(bench)
    daemon = bench.daemon({})
    daemon.start()
    runs = []
    for number in range(settings.runs):
        connection = Connection(daemon.socket)
        asked, spent = settings.count(20_000, 2_000), daemon.processor()
        calls = connection.calls_a_second(asked)
        spent = daemon.processor() - spent
        work, echo = _while_a_file_arrives(bench, daemon, connection, path.stat().st_size)
        siege = _besieged(daemon, connection, settings.count(400, 40), settings.count(1_000, 100))
        connection.close()
        runs.append({
            "calls_a_second": calls, "processor_a_call_us": spent / asked * 1e6, "work_p99_ms": percentile(work, 0.99),
            "work_p50_ms": percentile(work, 0.5), "echo_p99_ms": percentile(echo, 0.99),
            "siege_p99_ms": percentile(siege, 0.99)})
        print(f"  run {number + 1}: {calls:.0f} calls a second, p99 {runs[-1]['work_p99_ms']:.2f} ms beside the file "
              f"(an echo {runs[-1]['echo_p99_ms']:.2f} ms), {runs[-1]['siege_p99_ms']:.2f} ms besieged", flush=True)
    daemon.terminate()
    return {"daemon.status": {"sides": {"dld": runs}}}


def _while_a_file_arrives(bench, daemon, connection, size):
    """Returns the milliseconds of calls while the large file arrives, and those of an echo between two processes."""
    bench.rest(2)
    directory = bench.fresh("control")
    echo = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    work, echoes = [], []
    try:
        number = connection.call("task.add", {"tasks": [{
            "url": bench.nginx().url("large.bin"), "directory": str(directory), "priority": "now"}]})["ids"][0]
        watcher, asked = Connection(daemon.socket), 0.0
        while True:
            work.append(connection.latency())
            begin = time.perf_counter()
            echo.stdin.write(b"x" * 200 + b"\n")
            echo.stdin.flush()
            echo.stdout.readline()
            echoes.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.002)
            if time.monotonic() - asked > 0.1:
                asked = time.monotonic()
                task = watcher.call("task.get", {"id": number})
                if task["state"] == "completed" and task["bytesDone"] == size:
                    break
                if task["state"] in ("failed", "cancelled", "paused"):
                    raise Unusable(f"the large file is {task['state']}: {task['error']}")
        watcher.close()
    finally:
        echo.kill()
        echo.wait()
    processes.run(["rm", "-rf", str(directory)])
    return work, echoes


def _besieged(daemon, connection, clients, calls):
    """Returns the milliseconds of calls beside clients that send half a line or read nothing, one of them of events."""
    siege = []
    for number in range(clients):
        one = Connection(daemon.socket)
        siege.append(one)
        if number % 2:
            one.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"task.li')
        else:
            one.socket.setblocking(False)
            try:
                one.socket.sendall(b'{"jsonrpc":"2.0","id":1,"method":"task.list"}\n' * 20)
            except BlockingIOError:
                pass
    stuck = Connection(daemon.socket)
    stuck.socket.sendall(
        b'{"jsonrpc":"2.0","id":1,"method":"events.subscribe",'
        b'"params":{"after":0,"types":["added","started","progress"]}}\n')
    time.sleep(0.5)
    latencies = []
    for _ in range(calls):
        latencies.append(connection.latency())
        time.sleep(0.002)
    for one in [*siege, stuck]:
        # Closed without what is still in its buffers.
        one.socket.close()
    return latencies
