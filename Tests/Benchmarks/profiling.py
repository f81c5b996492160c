"""Where the daemon spends its processor time in a row: by thread and by symbol, from perf(1)."""

import contextlib
import re
import shutil
import signal
import subprocess
import time

import processes
from bench import Bench
from processes import Child, Unusable

FREQUENCY = 997


class Profiler:
    """Records the daemon during each measured run of dld's side. `graph` records the callers too."""

    def __init__(self, bench, graph=False):
        self.bench, self.graph, self.files = bench, graph, []

    @contextlib.contextmanager
    def record(self, pid):
        """Samples a process while the block runs."""
        path = self.bench.place / f"perf-{len(self.files)}.data"
        graph = ["-g"] if self.graph else []
        command = ["perf", "record", "-q", "-F", str(FREQUENCY), *graph, "-p", str(pid), "-o", str(path)]
        child = Child(command, self.bench.log)
        # It attaches to the threads, and begins then.
        time.sleep(0.3)
        try:
            yield
        finally:
            processes.send(child.pid, signal.SIGINT)
            child.process.wait(60)
            self.files.append(path)


def _shares(path, sort):
    """Returns pairs of samples and of what they fell on."""
    done = subprocess.run(
        ["perf", "report", "--stdio", "-q", "-g", "none", "--no-children", "--percent-limit", "0", "--show-nr-samples",
         "-F", f"sample,{sort}", "-i", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unusable(f"perf report: {done.stderr.strip()[-500:]}")
    return [(int(count), name.strip()) for count, name in re.findall(r"^\s*(\d+)\s+(\S.*)$", done.stdout, re.M)]


def _totals(files, sort):
    totals = {}
    for path in files:
        for count, name in _shares(path, sort):
            totals[name] = totals.get(name, 0) + count
    return sorted(totals.items(), key=lambda item: -item[1])


def _readable(names):
    """Returns Swift's symbols as the source has them, where its demangler is installed."""
    if not shutil.which("swift-demangle"):
        return names
    done = subprocess.run(["swift-demangle", "--compact", "--simplified"], input="\n".join(names), capture_output=True,
                          text=True, check=False)
    lines = done.stdout.splitlines()
    return lines if len(lines) == len(names) else names


def _table(title, totals, most):
    whole = sum(count for _, count in totals) or 1
    some = totals[:most]
    names = _readable([re.sub(r"^\[(k|\.)\]\s+", lambda kind: "kernel: " if kind[1] == "k" else "", name)
                       for name, _ in some])
    lines = [f"| `{name.replace('|', ' ')[:150]}` | {count / whole * 100:.1f} % |"
             for name, (_, count) in zip(names, some)]
    return ["", f"| {title} | share |", "|---|---:|", *lines]


def profile(settings, rows, work):
    """Writes a page of tables for each row beside the results."""
    bench = Bench(settings, with_peers=False)
    try:
        for row in rows:
            print(row, flush=True)
            bench.profiler = Profiler(bench)
            work[row](bench)
            files = bench.profiler.files
            if not files:
                raise Unusable(f"{row} has no run of one side to be recorded")
            text = [f"# Profile of {row}", "", f"Processor time of the daemon over {len(files)} runs, {FREQUENCY} "
                    "samples a second of each processor."]
            text += _table("thread", _totals(files, "comm"), 30) + _table("symbol", _totals(files, "sym"), 30)
            settings.output.mkdir(parents=True, exist_ok=True)
            path = settings.output / f"profile-{row}.md"
            path.write_text("\n".join(text) + "\n", encoding="utf-8")
            print(f"  {path}", flush=True)
    finally:
        bench.remove()
    return 0
