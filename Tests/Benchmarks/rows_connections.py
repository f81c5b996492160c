"""E1: automatic and fixed numbers of connections over lines of many kinds.

Servers limit each connection (nginx `limit_rate`); lines share one rate, delay, vary, fall and come back (line.py). A
number that takes far longer than the best ends the row of a line: smaller ones take longer still. Files go to memory,
as a disk may be slower than the fastest line.
"""

import time

from processes import Unusable
from rows_line import ScriptedLine
from settings import MIB

# Title, MiB of a file, downloads at once, location of the server, options of line.py
LINES = (
    ("50 KiB/s a connection", 6, 1, "50k/", ()),
    ("200 KiB/s a connection", 30, 1, "200k/", ()),
    ("1 MiB/s a connection", 128, 1, "1m/", ()),
    ("4 MiB/s a connection", 384, 1, "4m/", ()),
    ("20 MiB/s a connection", 1024, 1, "20m/", ()),
    ("8 MiB/s for all", 48, 1, "", ("--total", "8192")),
    *((f"16 MiB/s for all, 256 KiB of window, {delay} ms", 96, 1, "",
       ("--total", "16384", "--window", "256", "--latency", str(delay / 1000))) for delay in (20, 80, 200)),
    ("8 MiB/s for all, jitter of 50 %", 48, 1, "", ("--total", "8192", "--jitter", "0.5")),
    ("1 MiB/s a connection, jitter of 50 %", 96, 1, "", ("--each", "1024", "--jitter", "0.5")),
    ("1 MiB/s a connection, one slow of eight", 80, 1, "", ("--each", "1024", "--slow-every", "8")),
    ("2 MiB/s a connection, a quarter from 3 s to 6 s", 192, 1, "", ("--each", "2048", "--drop", "3", "6")),
    ("8 MiB/s for all, a quarter from 3 s to 6 s", 48, 1, "", ("--total", "8192", "--drop", "3", "6")),
    # Sixteen connections share a smaller file in pieces of 1 MiB, which nginx sends at once, whatever its limit is.
    ("1 MiB/s a connection, four downloads", 60, 4, "1m/", ()),
    ("8 MiB/s for all, four downloads", 12, 4, "", ("--total", "8192")),
)
FIXED = (16, 8, 4, 2, 1)


def settled(counts):
    """Returns the median of what the last third of the time saw."""
    some = sorted(counts[len(counts) * 2 // 3:])
    return some[len(some) // 2] if some else 0


def connections(bench):
    """Returns a case for each line, with a side for each number of connections."""
    cases = {}
    for title, size, tasks, location, options in LINES:
        path = bench.source / f"{size}M"
        with open(path, "wb") as file:
            file.truncate(bench.settings.size(size * MIB))
        sides = _line(bench, title, tasks, f"{location}{path.name}", options)
        cases[title] = {"sides": sides}
    return cases


def _line(bench, title, tasks, path, options):
    """Returns the sides of a line; fixed numbers below one that took far longer are left out."""
    sides, best = {}, None
    for number in FIXED:
        found = _fetch(bench, path, tasks, number, None if best is None else best * 1.3 + 2, options)
        shown = f"{found['seconds']:.2f} s" if found else "far longer"
        print(f"  {title}, connections {number}: {shown}", flush=True)
        if not found:
            break
        sides[f"dld, {number} connection{'s' if number > 1 else ''}"] = [found]
        best = min(best or found["seconds"], found["seconds"])
    found = _fetch(bench, path, tasks, "auto", None, options)
    if not found:
        raise Unusable(f"{title}: the downloads do not end")
    print(f"  {title}, automatic: {found['seconds']:.2f} s with {found['connections']}", flush=True)
    return {"dld": [found], **sides}


def _fetch(bench, path, tasks, number, limit, options):
    """Returns the seconds of so many downloads of a path, and the connections that they settled at; None after `limit`.

    The daemon is a new one each time: it remembers what it has learnt of a host.
    """
    line = ScriptedLine(bench, bench.nginx(), *options) if options else None
    port = line.port if line else bench.nginx().ports["http"]
    daemon = bench.daemon({"limits": {"active-tasks": 100}, "disk": {"min-free": 0}})
    daemon.downloads = str(bench.memory())
    daemon.start()
    counts, end = [], time.monotonic() + (limit or bench.settings.limit)
    begin = time.perf_counter()
    daemon.call("task.add", {"tasks": [
        {"url": f"http://127.0.0.1:{port}/{path}", "output": f"file-{one}", "connections": number}
        for one in range(tasks)]})
    found = None
    while time.monotonic() < end:
        listed = daemon.tasks().values()
        if all(task["state"] == "completed" for task in listed):
            found = {"seconds": time.perf_counter() - begin, "connections": settled(counts)}
            break
        counts.append(sum(task["connections"] or 0 for task in listed))
        time.sleep(0.05)
    daemon.child.kill()
    if line:
        line.child.kill()
    bench.forget_memory()
    return found
