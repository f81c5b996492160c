"""Rows of a long queue: W8 adding, listing, restarting and running it; W10 a daemon that has nothing to do."""

import os
import socket
import statistics
import time

import counting
import processes
from daemons import Connection, clear
from processes import Unusable
from settings import KIB
from workloads import make_file


def _urls(bench, count):
    """Returns the path of a list of URLs that are all the same small file."""
    path = bench.place / f"queue-{count}.urls"
    if not path.exists():
        base = bench.nginx().url("same/where/file")
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{base}-{number:07d}.bin\n" for number in range(count))
    return path


def million(bench):
    """A queue of a million tasks, with no server first, so that what is added stays."""
    settings = bench.settings
    count, few = settings.count(1_000_000, 1_000), settings.count(20_000, 500)
    make_file(bench.source / "same", 10_000)
    everything, some = _urls(bench, count), _urls(bench, few)
    adding = [_add(bench, everything, count) for _ in range(settings.runs)]
    calls = _count_adding(bench, everything)
    running = {"few": [], "all": []}
    for _ in range(settings.runs):
        for name, urls in (("few", some), ("all", everything)):
            running[name].append({"seconds": _run_some(bench, urls, few)})
    bench.nginx().stop()
    bench.nginx().start()
    beside = {f"{few} queued": running["few"], f"{count} queued": running["all"]}
    return {"the queue": {"sides": {"dld": adding}, "calls": calls, "tasks": count},
            "beside the queue": {"sides": beside, "tasks": few}}


def _add(bench, urls, count):
    """Adds all tasks from one file, asks for pages, and restarts; returns the figures."""
    bench.nginx().stop()
    daemon = bench.daemon({})
    daemon.start()
    spent = daemon.processor()
    added = bench.run(daemon.command("add", "--input", urls))
    figures = {
        "seconds": added.seconds, "added_a_second": count / added.seconds,
        "processor": added.processor + daemon.processor() - spent, "peak_kib": daemon.kib("VmHWM")}
    connection = Connection(daemon.socket)
    pages, lists = [], []
    for _ in range(9):
        begin = time.perf_counter()
        page = connection.call("task.list", {"after": count - 50, "limit": 50})
        pages.append((time.perf_counter() - begin) * 1000)
        if len(page["tasks"]) != 50:
            raise Unusable(f"the last page has {len(page['tasks'])} tasks")
        lists.append(bench.run(daemon.command("list", "--limit", "50")).seconds * 1000)
    connection.close()
    figures |= {"page_ms": statistics.median(pages), "list_ms": statistics.median(lists)}
    daemon.terminate()
    figures["restart_ms"] = daemon.start() * 1000
    print(f"  {count} tasks: {figures['added_a_second']:.0f} a second, {figures['peak_kib'] / 1024:.1f} MiB, page "
          f"{figures['page_ms']:.1f} ms, restart {figures['restart_ms']:.0f} ms", flush=True)
    clear(daemon)
    return figures


def _count_adding(bench, urls):
    """Returns the system calls of adding all tasks."""
    daemon = bench.daemon({})
    daemon.start()
    calls = counting.count(bench, daemon.command("add", "--input", urls), daemon.child.pid)
    clear(daemon)
    return {} if calls is None else {"dld": calls}


def _run_some(bench, urls, wanted):
    """Returns the seconds in which so many tasks end, from the first ones to the last but some."""
    bench.nginx().stop()
    daemon = bench.daemon({})
    # The files stay until the end, as all small ones do.
    daemon.downloads = str(bench.fresh("queue"))
    daemon.start()
    bench.run(daemon.command("add", "--input", urls))
    bench.nginx().start()
    connection, edge = Connection(daemon.socket), max(10, wanted // 200)

    def until(count):
        end = time.monotonic() + bench.settings.limit
        while True:
            done = connection.call("daemon.status")["tasks"].get("completed", 0)
            if done >= count:
                return done, time.perf_counter()
            if time.monotonic() > end:
                raise Unusable(f"{done} tasks of {count} completed in time")
            time.sleep(0.02)

    first, begin = until(edge)
    last, end = until(wanted - edge)
    connection.close()
    clear(daemon)
    seconds = (end - begin) * wanted / (last - first) if last > first else 0.0
    print(f"  {wanted} small files, {os.path.basename(urls)}: {seconds:.2f} s", flush=True)
    return seconds


def idle(bench):
    """Which threads wake up while nothing is to be done, and what memory that takes."""
    settings = bench.settings
    count = settings.count(1_000_000, 1_000)
    cases = {}
    for name, paused in (("an empty queue", 0), (f"{count} paused", count)):
        daemon = bench.daemon({})
        daemon.start()
        if paused:
            bench.run(daemon.command("add", "--paused", "--input", _urls(bench, count)))
            # What a daemon keeps that has been up for a while, not what adding has left.
            daemon.terminate()
            daemon.start()
        # Connections and freed memory are kept for a minute.
        time.sleep(settings.seconds(70))
        before, spent = daemon.sleeps(), daemon.processor()
        time.sleep(settings.seconds(300))
        after = daemon.sleeps()
        figures = {"seconds": settings.seconds(300), "processor": daemon.processor() - spent,
                   "private_kib": daemon.kib("RssAnon"), "resident_kib": daemon.kib("VmRSS")}
        moved = {thread: after[thread] - before.get(thread, 0) for thread in after}
        # The workers and the timer of libdispatch have its queues' names.
        figures["own_wakeups"] = sum(count for thread, count in moved.items() if "qos" not in thread)
        figures["dispatch_wakeups"] = sum(count for thread, count in moved.items() if "qos" in thread)
        cases[name] = {"sides": {"dld": [figures]}, "threads": {one: n for one, n in sorted(moved.items()) if n}}
        print(f"  {name}: {figures['own_wakeups']} wake-ups of own threads, {figures['private_kib'] / 1024:.1f} MiB; "
              f"{cases[name]['threads']}", flush=True)
        clear(daemon)
    return cases


def starting(bench):
    """`dlctl list` from exec to exit, and `dld` from exec until it is ready."""
    settings = bench.settings
    daemon = bench.daemon({})
    daemon.start()
    tasks = [{"url": bench.nginx().url(f"same/{number}"), "output": f"same-{number}", "paused": True}
             for number in range(settings.count(1_000, 50))]
    for begin in range(0, len(tasks), 500):
        daemon.call("task.add", {"tasks": tasks[begin:begin + 500]})
    lists = []
    for _ in range(settings.count(30, 5) + settings.runs):
        outcome = bench.run(daemon.command("list", "--limit", "50"))
        lists.append({"seconds": outcome.seconds, "processor": outcome.processor, "peak_kib": outcome.peak_kib})
    calls = {"dlctl list": counting.count(bench, daemon.command("list", "--limit", "50"))}
    daemon.terminate()
    again = [{"seconds": _until_ready(bench, daemon)} for _ in range(max(3, settings.runs))]
    first = []
    for _ in range(max(3, settings.runs)):
        clear(daemon)
        first.append({"seconds": _until_ready(bench, daemon)})
    sides = {"dlctl list": lists, "dld to READY": again,
             "dld to READY, new database": first}
    return {"starting": {"sides": sides, "calls": calls, "tasks": len(tasks)}}


def _until_ready(bench, daemon):
    """Returns the seconds from exec to READY=1 on systemd's socket; the daemon has ended afterwards."""
    path = bench.place / "notify"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(str(path))
        notices.settimeout(30)
        begin = time.perf_counter()
        daemon.child = processes.Child(daemon.words(), daemon.log, {"NOTIFY_SOCKET": str(path)})
        while b"READY=1" not in notices.recv(64 * KIB).split(b"\n"):
            continue
        seconds = time.perf_counter() - begin
    daemon.terminate()
    return seconds
