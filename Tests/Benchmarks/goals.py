"""The rows: what each measures, and the goals that its figures have to reach. Values come from stored runs alone."""

import dataclasses
import statistics
from collections.abc import Callable

from results import best, median, quotient, values

REST, MEMORY = "at rest", "with memory at hand"


@dataclasses.dataclass(frozen=True)
class Goal:
    """A figure and its bound, the most it may be or, with `least`, the least. `unit` is empty for a ratio."""

    text: str
    bound: float
    value: Callable
    unit: str = ""
    least: bool = False

    def ratio(self, value):
        """Returns the figure relative to its bound; 1 and less reach it. A bound of 0 counts from 1."""
        if self.bound == 0:
            return 1.0 if value == 0 else 1 + value
        return self.bound / max(value, 1e-9) if self.least else value / self.bound


@dataclasses.dataclass(frozen=True)
class Row:
    """A row. `runs_of` names the rows whose runs it uses instead of own ones; `one_table` has a line for each case."""

    name: str
    title: str
    goals: tuple
    runs_of: tuple = ()
    per_file: bool = False
    one_table: bool = False


def against(case, theirs="seconds", among=None, ours="seconds", row=None):
    """Returns the function of dld's median relative to the best of the peers."""
    def value(rows):
        found = rows.get(row, rows["own"] if row is None else {}).get(case, {})
        return quotient(median(found, "dld", ours), best(found, theirs, among))
    return value


def figure(case, metric, factor=1.0, side="dld"):
    """Returns the function of a side's median, times a factor."""
    def value(rows):
        found = median(rows["own"].get(case, {}), side, metric)
        return None if found is None else found * factor
    return value


def _worst(metric, factor=1.0):
    """Returns the function of the largest value over all cases."""
    def value(rows):
        found = [one for case in rows["own"].values() for side in case["sides"] for one in values(case, side, metric)]
        return max(found) * factor if found else None
    return value


def _a_file(rows):
    case = rows["own"].get(REST, {})
    spent = median(case, "dld", "processor")
    return None if spent is None else spent / case["files"] * 1e6


def _beside_queue(rows):
    case = rows["own"].get("beside the queue", {})
    sides = list(case.get("sides", {}))
    return quotient(*(median(case, side, "seconds") for side in reversed(sides))) if len(sides) == 2 else None


def _growth(rows):
    cases = sorted(rows["own"].values(), key=lambda case: case["files"])
    each = [quotient(median(case, "dld", "seconds"), case["files"]) for case in cases]
    return quotient(each[-1], each[0]) if len(each) > 1 else None


def _of_lines(choose):
    """Returns the function of automatic connections relative to the best fixed number, over all lines."""
    def value(rows):
        found = []
        for case in rows["own"].values():
            fixed = [side for side in case["sides"] if side != "dld"]
            ratio = quotient(median(case, "dld", "seconds"), best(case, "seconds", fixed) if fixed else None)
            found += [] if ratio is None else [ratio]
        return choose(found) if found else None
    return value


def _deviation(rows):
    kept = [one for case in rows["own"].values() for metric in ("kept", "kept_later")
            for one in values(case, "dld", metric)]
    return max(abs(one - 100) for one in kept) if kept else None


def _of_libcurl(rows):
    case = rows["own"].get("open transfers", {})
    return quotient(median(case, "dld", "processor_share"), median(case, "libcurl alone", "processor_share"))


def _of_fixed(rows):
    case = rows["own"].get("a long line", {})
    fixed = [side for side in case.get("sides", {}) if side.startswith("dld, ")]
    return quotient(best(case, "seconds", fixed) if fixed else None, median(case, "dld", "seconds"))


def _digest(rows):
    case = rows["own"].get(REST, {})
    parts = [median(case, side, "seconds") for side in ("sha256sum", "dld without a digest")]
    return quotient(median(case, "dld", "seconds"), max(parts)) if None not in parts else None


def _thrift(row, title):
    return tuple(Goal(f"processor time / the thriftiest peer, {title}, {state}", 0.9,
                      against(state, "processor", ours="processor", row=row)) for state in (REST, MEMORY))


SYNCED, AS_IT_IS = "time / the best peer with sync", "time / the best peer as it is"

ROWS = {row.name: row for row in (
    Row("W1", "One file of 2 GiB over HTTP", (
        Goal(f"{SYNCED}, {REST}", 0.6, against(REST, "synced")),
        Goal(f"{AS_IT_IS}, {REST}", 0.8, against(REST)),
        Goal(f"{SYNCED}, {MEMORY}", 0.7, against(MEMORY, "synced")),
        Goal(f"{AS_IT_IS}, {MEMORY}", 1.1, against(MEMORY)))),
    Row("W2", "One file of 2 GiB over TLS 1.3", (
        Goal(f"{SYNCED}, {REST}", 0.7, against(REST, "synced")),
        Goal(f"{AS_IT_IS}, {REST}", 0.9, against(REST)))),
    Row("W3", "10,000 files of 16 KiB over HTTP/1.1, 32 at once", (
        Goal("time / curl -Z", 1.2, against(REST, among=("curl",))),
        Goal("processor time of a file", 180, _a_file, "µs"),
        Goal("time / aria2c", 0.15, against(REST, among=("aria2c",)))), per_file=True),
    Row("W4", "10,000 files of 16 KiB over HTTP/2 and TLS, 32 at once", (
        Goal("time / curl -Z --http2", 1.2, against(REST, among=("curl",))),), per_file=True),
    Row("W5", "100 files of 20 MiB, 8 at once", (
        Goal(SYNCED, 0.8, against(REST, "synced")), Goal(AS_IT_IS, 1.1, against(REST)))),
    Row("W6", "Uploads by PUT: 2 GiB, and 1,000 files of 64 KiB", (
        Goal("time of the large file / curl -T", 1.0, against("one large file", among=("curl",))),
        Goal("time of the small files / curl -Z", 1.2, against("small files", among=("curl",))))),
    Row("W7", "Processor time of the large file", _thrift("W1", "HTTP") + _thrift("W2", "TLS"), runs_of=("W1", "W2")),
    Row("W8", "A queue of 1,000,000 tasks", (
        Goal("added", 150_000, figure("the queue", "added_a_second"), "a second", least=True),
        Goal("memory at its peak", 56, figure("the queue", "peak_kib", 1 / 1024), "MiB"),
        Goal("restart until it answers", 100, figure("the queue", "restart_ms"), "ms"),
        Goal("last page of task.list", 15, figure("the queue", "page_ms"), "ms"),
        Goal("time of a small file beside the queue / without", 1.05, _beside_queue))),
    Row("W9", "5,000 slow transfers open", (
        Goal("memory of each", 32, figure("open transfers", "each_kib"), "KiB"),
        Goal("daemon.status, 99th percentile", 20, figure("open transfers", "status_p99_ms"), "ms"),
        Goal("processor time / a bare loop around libcurl", 1.3, _of_libcurl))),
    Row("W10", "Five minutes without work", (
        Goal("wake-ups of own threads", 0, _worst("own_wakeups"), "wake-ups"),
        Goal("private memory", 10, _worst("private_kib", 1 / 1024), "MiB"))),
    Row("W11", "Calls of the control socket", (
        Goal("daemon.status over one pipelined connection", 10_000, figure("daemon.status", "calls_a_second"),
             "a second", least=True),
        Goal("daemon.status while a large file arrives, 99th percentile", 10,
             figure("daemon.status", "work_p99_ms"), "ms"))),
    Row("W12", "Start of the programs", (
        Goal("dlctl list --limit 50 from exec to exit", 15,
             figure("starting", "seconds", 1000, "dlctl list"), "ms"),
        Goal("dld from exec to READY", 60, figure("starting", "seconds", 1000, "dld to READY"), "ms"))),
    Row("W13", "1,000, 10,000 and 100,000 files of 16 KiB", (
        Goal("time of a file, the largest number / the smallest", 1.15, _growth),), per_file=True),
    Row("W14", "500 MiB over a long line with loss", (
        Goal("rate / the best fixed number of connections", 0.95, _of_fixed, least=True),
        Goal("time / the fastest peer", 1.0, against("a long line")))),
    Row("W15", "One file of 2 GiB with its SHA-256", (
        Goal("time / the longer of sha256sum and the download alone", 1.15, _digest),)),
    Row("E1", "Automatic and fixed numbers of connections", (
        Goal("time / the best fixed number, the median of all lines", 1.1, _of_lines(statistics.median)),
        Goal("time / the best fixed number, the worst line", 1.5, _of_lines(max))), one_table=True),
    Row("E2", "Rates, and what is kept of them", (
        Goal("the rate that deviates most", 5, _deviation, "%"),), one_table=True),
    Row("E3", "Rates together with other features", (
        Goal("time that the rate implies, the slowest", 1.05, _worst("of_implied")),
        Goal("bytes received / the file's", 1.02, _worst("fetched"))), one_table=True),
)}
EXTRA = ("E1", "E2", "E3")


def cases_for(row, stored):
    """Returns the cases that the goals of a row look at: its own, and those of the rows that it uses."""
    found = {name: stored[name]["cases"] for name in row.runs_of if name in stored}
    return {"own": stored.get(row.name, {}).get("cases", {}), **found}


def judged(stored):
    """Returns every goal with its row and its figure; None for a figure that was not measured."""
    return [(row, goal, goal.value(cases_for(row, stored))) for row in ROWS.values() for goal in row.goals]
