"""Fails if the daemon needs more instructions, system calls or allocations than it did.

Usage: guard.py [--renew] [--only WORKLOAD]

The figures of each workload are compared with those in limits.json. More than 3 % above one is a failure. The figures
count work, not time, and the workloads go step by step, so that neither the pace of the machine nor its load matters.
Where a figure is above its limit the measurement is repeated, and the smallest counts: what disturbs a run adds work.

What the figures depend on beside dld is the same everywhere: a file system in memory, two processors, and functions of
the C library that need no particular one. Where the packages or the compiler have other versions than those of the
limits, growth is shown and is no failure.

--renew writes the figures of this build to limits.json.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "Benchmarks"))

from bench import Bench  # noqa: E402
from settings import Settings  # noqa: E402

import counting  # noqa: E402
import processes  # noqa: E402
import steps  # noqa: E402
from daemons import BenchDaemon, Connection  # noqa: E402
from processes import Unusable  # noqa: E402

LIMITS = HERE / "limits.json"
# Packages whose work is part of the figures.
PACKAGES = ("libc6", "libcurl4", "libsqlite3-0", "valgrind")
# The C library has versions of its functions for some processors, which take other numbers of instructions.
PLAIN_PROCESSOR = "glibc.cpu.hwcaps=-AVX512VL,-AVX512F,-AVX2,-AVX,-BMI2,-ERMS,-FSRM,-RTM,-SSE4_2,-SSE4_1,-SSSE3"
# The room that the workloads need, in bytes.
ROOM = 512 << 20
# More growth than this is a failure.
PERCENT = 3
# How often a figure above its limit is measured in all.
ATTEMPTS = 4
# How often each figure is measured for the limits. They are the medians.
RENEWALS = 3
# Calls that wait for another thread or for time: their number depends on the pace.
WAITS = "futex,sched_yield,restart_syscall,epoll_wait,epoll_pwait,epoll_pwait2,poll,ppoll,clock_nanosleep,nanosleep"
FIGURES = ("instructions", "allocations", "system calls")


def read_number(path, pattern):
    """Returns the number that a pattern finds in a file; None while it is not there."""
    try:
        found = re.search(pattern, path.read_text(errors="replace"), re.M)
    except FileNotFoundError:
        return None
    return int(found.group(1)) if found else None


def versions():
    """Returns the versions of what takes part in the work beside dld."""
    found = {}
    for package in PACKAGES:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True,
                              check=False)
        found[package] = done.stdout.strip()
    done = subprocess.run([os.environ.get("SWIFT", "swift"), "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"Swift version (\S+)", done.stdout)
    found["swift"] = match.group(1) if match else ""
    return found


def memory():
    """Returns a directory in memory with room; None where there is none."""
    try:
        room = os.statvfs("/dev/shm")
        kind = subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    has_room = room.f_bavail * room.f_frsize >= ROOM and os.access("/dev/shm", os.W_OK)
    return "/dev/shm" if has_room and kind.stdout.strip() == "tmpfs" else None


class Guard:
    """The measurements, which share one server."""

    def __init__(self, bench):
        self.bench = bench
        self.preloaded = str(bench.place / "preloaded.so")
        processes.run(["cc", "-std=gnu17", "-O2", "-shared", "-fPIC", "-o", self.preloaded, str(HERE / "preloaded.c")])
        # valgrind cannot read the debugging information of Swift.
        self.programs = bench.directory("programs")
        processes.run(["objcopy", "--strip-debug", str(bench.settings.programs / "dld"), str(self.programs / "dld")])
        # Ahead of whatever else runs here, where that is allowed: a start is recorded if the task still runs 100 ms
        # later.
        self.priority = ["chrt", "--rr", "1"]
        if subprocess.run([*self.priority, "true"], capture_output=True, check=False).returncode != 0:
            self.priority = []
        self._runs = 0

    def measure(self, workload, figure):
        """Returns the figures of one run of a workload that tells `figure`."""
        return self._calls(workload) if figure == "system calls" else self._work(workload)

    def _work(self, workload):
        """Returns the instructions and allocations of a run under callgrind."""
        profile, count = self._place("callgrind"), self._place("allocations")
        prefix = [*self.priority, "valgrind", "-q", "--tool=callgrind", "--fair-sched=yes",
                  f"--callgrind-out-file={profile}.%p"]
        pid = self._run(workload, prefix, {"LD_PRELOAD": self.preloaded, "DLD_ALLOCATIONS": str(count)})
        profile = profile.with_name(f"{profile.name}.{pid}")
        return {"instructions": self._number(profile, r"^(?:totals|summary): (\d+)$"),
                "allocations": self._number(count, r"^(\d+)$")}

    def _calls(self, workload):
        """Returns the system calls of a run, other than those that wait."""
        path = self._place("strace")
        # -D: the daemon is the child, and the tracer its grandchild.
        self._run(workload, ["strace", "-D", "-f", "-c", "-e", f"trace=!{WAITS}", "-o", str(path)], {})
        return {"system calls": self._number(path, counting.STRACE_TOTAL)}

    def _place(self, name):
        self._runs += 1
        return self.bench.place / f"{name}-{self._runs}"

    def _run(self, workload, prefix, environment):
        """Runs a daemon with a workload to its end, and returns its process id."""
        place = self._place("daemon")
        place.mkdir()
        daemon = BenchDaemon(str(self.programs), str(place), {"limits": {"active-tasks": 8}}, prefix=prefix,
                             environment={"GLIBC_TUNABLES": PLAIN_PROCESSOR, **environment}, opens_many=False)
        daemon.start()
        try:
            connection = Connection(daemon.socket)
            connection.socket.settimeout(300)
            steps.ALL[workload](self.bench, daemon, connection)
            connection.close()
        finally:
            status = daemon.terminate(120)
        if status != 0:
            raise Unusable(f"dld ended with {status}: {daemon.log_text()[-1000:]}")
        processes.run(["rm", "-rf", str(place)])
        return daemon.child.pid

    @staticmethod
    def _number(path, pattern):
        # A tracer writes after the daemon has ended.
        end = time.monotonic() + 20
        while (value := read_number(path, pattern)) is None:
            if time.monotonic() > end:
                raise Unusable(f"no figure is in {path.name}")
            time.sleep(0.05)
        return value


def is_above(value, limit):
    """Whether a figure has grown too much."""
    return value * 100 > limit * (100 + PERCENT)


def check(guard, limits, names, present):
    """Compares each figure with its limit; returns whether all hold.

    present: the versions of today; growth is no failure where they are others than those of the limits.
    """
    holds, others = True, []
    print(f"{'workload':<10}{'figure':<14}{'limit':>15}{'measured':>15}{'change':>9}")
    for name in names:
        least = {}
        before = limits.get(name, {}).get("versions", {})
        new = [f"{package} {version or 'without a version'} (limits of {name}: {before.get(package, 'none')})"
               for package, version in present.items() if before.get(package) != version]
        for figure in FIGURES:
            limit = limits.get(name, {}).get(figure)
            if limit is None:
                raise Unusable(f"{LIMITS.name} has no {figure} of {name}: make guard-renew writes them")
            runs = 0
            while figure not in least or is_above(least[figure], limit) and runs < (1 if new else ATTEMPTS):
                runs += 1
                for other, value in guard.measure(name, figure).items():
                    least[other] = min(value, least.get(other, value))
            change = (least[figure] / limit - 1) * 100
            mark = ""
            if is_above(least[figure], limit):
                mark = "  GREW"
                others += new
                holds = holds and bool(new)
            elif change < -PERCENT:
                mark = "  less: make guard-renew keeps it"
            print(f"{name:<10}{figure:<14}{limit:>15,}{least[figure]:>15,}{change:>8.1f}%{mark}", flush=True)
    if others:
        print(f"\nguard: growth is not judged, since the limits are of other versions: {', '.join(sorted(set(others)))}. "
              "make guard-renew writes new ones.")
    if not holds:
        print(f"\nMore than {PERCENT} % above the limits of {LIMITS.name}. If the growth is meant, make guard-renew "
              "writes new ones. docs/benchmarks.md tells how to find the cause.")
    return holds


def renew(guard, limits, names):
    """Measures new limits and writes them."""
    present = versions()
    for name in names:
        runs = {figure: [] for figure in FIGURES}
        for figure in ("instructions", "system calls"):
            for _ in range(RENEWALS):
                for other, value in guard.measure(name, figure).items():
                    runs[other].append(value)
        limits[name] = {figure: round(statistics.median(values)) for figure, values in runs.items()}
        limits[name]["versions"] = present
        for figure, values in runs.items():
            spread = max(values) / min(values) - 1
            print(f"{name:<10}{figure:<14}{limits[name][figure]:>15,}  spread {spread * 100:.2f} %", flush=True)
    LIMITS.write_text(json.dumps(limits, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--renew", action="store_true", help="write the figures of this build to limits.json")
    parser.add_argument("--only", choices=list(steps.ALL), help="one workload")
    options = parser.parse_args()
    names = [options.only] if options.only else list(steps.ALL)
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    settings = Settings()
    if "BENCH_DIR" not in os.environ:
        settings.place = memory() or settings.place
    bench = Bench(settings, with_peers=False)
    try:
        guard = Guard(bench)
        if options.renew:
            renew(guard, limits, names)
            return 0
        return 0 if check(guard, limits, names, versions()) else 1
    except (Unusable, OSError) as error:
        print(f"guard: {error}", file=sys.stderr)
        return 2
    finally:
        bench.remove()


if __name__ == "__main__":
    sys.exit(main())
