"""System calls of a run, counted in a run of its own: by perf(1), or by strace(1), which slows the run down."""

import re
import shutil
import signal
import subprocess
import time

import processes
from processes import Child

EVENT = "raw_syscalls:sys_enter"
# The total in the table of strace -c.
STRACE_TOTAL = r"^\s*100\.00\s+\S+\s+(?:\S+\s+)?(\d+)\s+(?:\d+\s+)?total$"


def _perf_works():
    probe = subprocess.run(["perf", "stat", "-x,", "-e", EVENT, "true"], capture_output=True, text=True, check=False)
    return probe.returncode == 0 and re.search(rf"^\d+,.*{EVENT}", probe.stderr, re.M) is not None


def method():
    """Returns the program that counts here, or None."""
    if shutil.which("perf", path=processes.SEARCH_PATH) and _perf_works():
        return "perf"
    return "strace" if shutil.which("strace", path=processes.SEARCH_PATH) else None


def _perf_total(path):
    return sum(int(count) for count in re.findall(rf"^(\d+),.*{EVENT}", path.read_text(), re.M))


def _strace_total(path):
    total = re.search(STRACE_TOTAL, path.read_text(), re.M)
    return int(total.group(1)) if total else 0


def rate(bench, pid, seconds):
    """Returns the system calls a second of a process, as figures; none where only a tracer could count them."""
    if method() != "perf":
        return {}
    path = bench.place / "calls-rate"
    bench.run(["perf", "stat", "-x,", "-e", EVENT, "-p", str(pid), "-o", str(path), "--", "sleep", str(seconds)])
    return {"system_calls_a_second": _perf_total(path) / seconds}


def count(bench, command, pid=None):
    """Returns the system calls of a command, together with those of the process `pid` meanwhile; None if unknown."""
    how = method()
    own, other = bench.place / "calls-own", bench.place / "calls-other"
    for path in (own, other):
        path.write_text("")
    if how == "perf":
        counted = ["perf", "stat", "-x,", "-e", EVENT, "-o", str(own), "--", *command]
        if pid:
            counted = ["perf", "stat", "-x,", "-e", EVENT, "-p", str(pid), "-o", str(other), "--", *counted]
        bench.run(counted)
        return _perf_total(own) + _perf_total(other)
    if how == "strace":
        strace = ["strace", "-f", "-c", "-S", "calls", "-o"]
        tracer = Child([*strace, str(other), "-p", str(pid)], bench.log) if pid else None
        if tracer:
            # It attaches, or ends where it may not.
            time.sleep(0.5)
            if tracer.poll() is not None:
                return None
        bench.run([*strace, str(own), *command], bench.settings.limit * 4)
        if tracer:
            processes.send(tracer.pid, signal.SIGINT)
            tracer.process.wait(60)
        return _strace_total(own) + _strace_total(other)
    return None
