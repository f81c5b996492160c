"""E2: how exactly rates are kept, and what that costs. E3: rates with connections, mirrors, digests and HTTP/2."""

import hashlib
import time

from rows_large import start_daemons
from settings import KIB, MIB
from workloads import make_file

# KiB/s at first and after a change while the downloads run, and seconds to watch: so much fits into memory.
RATES = ((50, 100, 8), (1024, 2048, 8), (102_400, 204_800, 8), (512_000, 256_000, 2))


def rates(bench):
    """Returns a case for each rate, with one download and with a hundred that share it."""
    with open(bench.source / "endless", "wb") as file:
        file.truncate(8 << 30)
    cases = {}
    for first, second, seconds in RATES:
        for count in (1, 100):
            figures = _kept(bench, first, second, max(1, bench.settings.seconds(seconds)), count)
            title = f"{first} KiB/s, then {second} KiB/s, {count} download{'s' if count > 1 else ''}"
            cases[title] = {"sides": {"dld": [figures]}}
            print(f"  {title}: {figures['kept']:.1f} %, {figures['kept_later']:.1f} %", flush=True)
    return cases


def _kept(bench, first, second, seconds, count):
    limits = {"active-tasks": 100, "connections-per-host": 100, "connections-per-task": 1}
    daemon = bench.daemon({"limits": limits, "disk": {"min-free": 0}})
    # A disk may be slower than the largest rate.
    daemon.downloads = str(bench.memory())
    daemon.start()

    def share(rate):
        """Returns what came in some seconds, in percent of the rate."""
        def fetched():
            return sum(task["bytesFetched"] or 0 for task in daemon.tasks().values())
        before, begin = fetched(), time.perf_counter()
        time.sleep(seconds)
        return (fetched() - before) / (time.perf_counter() - begin) / (rate * KIB) * 100

    bench.run(daemon.command("limit", "--download", f"{first}K"))
    daemon.call("task.add", {"tasks": [
        {"url": f"{bench.nginx().url('endless')}?{one}", "output": f"endless-{one}"} for one in range(count)]})
    time.sleep(1)
    spent, woken = daemon.processor(), sum(daemon.sleeps().values())
    kept = share(first)
    figures = {"kept": kept, "processor_share": (daemon.processor() - spent) / seconds,
               "wakeups_a_second": (sum(daemon.sleeps().values()) - woken) / seconds}
    bench.run(daemon.command("limit", "--download", f"{second}K"))
    time.sleep(1)
    figures["kept_later"] = share(second)
    daemon.child.kill()
    bench.forget_memory()
    return figures


def together(bench):
    """Returns cases of features that meet: the time beside what the rate implies, and the bytes beside the file's."""
    plain, summed = make_file(bench.source / "30", 30 * MIB), make_file(bench.source / "13", 13 * MIB)
    digest = hashlib.sha256(summed.read_bytes()).hexdigest()
    server = bench.nginx()
    daemon = start_daemons(bench, {
        "limits": {"active-tasks": 64, "connections-per-host": 64}, "hosts": {"localhost": {"http-version": 2}},
        "tls": {"ca-file": str(bench.certificate)}, "disk": {"min-free": 0}})["dld"]
    cases = {}

    def download(title, size, rate, **task):
        runs = []
        for _ in range(bench.settings.runs):
            begin = time.perf_counter()
            number = daemon.add({**task, "limit": rate, "directory": str(bench.fresh("together"))})
            daemon.wait_until("a download ends", lambda status: not status["tasks"].get("active", 0)
                              and not status["tasks"].get("queued", 0), pause=0.005)
            seconds, found = time.perf_counter() - begin, daemon.task(number)
            runs.append({"seconds": seconds, "of_implied": seconds / (size / rate),
                         "fetched": found["bytesFetched"] / found["bytesTotal"]})
        cases[title] = {"sides": {"dld": runs}}
        print(f"  {title}: {max(run['of_implied'] for run in runs):.2f} of the time that the rate implies", flush=True)

    for number in (1, 4, 16, "auto"):
        download(f"30 MiB at 20 MiB/s, {number} connections", plain.stat().st_size, 20 * MIB, url=server.url("30"),
                 connections=number)
        download(f"13 MiB at 5 MiB/s, {number} connections, digest and mirror", summed.stat().st_size, 5 * MIB,
                 url=server.url("13"), mirrors=[f"http://localhost:{server.ports['http']}/13"],
                 checksum=f"sha256:{digest}", connections=number)
    daemon.terminate()
    cases["10 downloads at 1 MiB/s over HTTP/2"] = _over_http2(bench, server)
    return cases


def _over_http2(bench, server):
    seconds, path = max(3, bench.settings.seconds(6)), make_file(bench.source / "endless-2", 24 * MIB)
    daemon = start_daemons(bench, {
        "limits": {"active-tasks": 64, "connections-per-host": 64}, "hosts": {"localhost": {"http-version": 2}},
        "tls": {"ca-file": str(bench.certificate)}, "disk": {"min-free": 0}})["dld"]
    place = str(bench.fresh("together"))
    daemon.call("task.add", {"tasks": [
        {"url": f"https://localhost:{server.ports['http2']}/{path.name}?{one}", "output": f"h2-{one}", "limit": MIB,
         "directory": place} for one in range(10)]})
    time.sleep(seconds)
    least = min(task["bytesFetched"] or 0 for task in daemon.tasks().values())
    figures = {"kept": least / MIB / seconds * 100, "private_kib": daemon.kib("RssAnon"),
               "faults": daemon.status()["internalFaults"]}
    daemon.child.kill()
    return {"sides": {"dld": [figures]}}
