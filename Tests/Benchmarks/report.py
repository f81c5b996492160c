"""The tables, as Markdown: one of all goals, and for each row one of all sides."""

from goals import ROWS, judged
from results import best, median, quotient, values

HEADINGS = {
    "added_a_second": ("added a second", 0), "list_ms": ("dlctl list --limit 50, ms", 1),
    "page_ms": ("last page, ms", 1), "restart_ms": ("restart, ms", 0), "open": ("open at once", 0),
    "each_kib": ("memory of each, KiB", 1),
    "status_p50_ms": ("daemon.status, median, ms", 2), "status_p99_ms": ("daemon.status, 99th percentile, ms", 2),
    "processor_a_call_us": ("processor time of a call, µs", 1), "system_calls_a_second": ("system calls a second", 0),
    "kept": ("kept, %", 1), "kept_later": ("kept after the change, %", 1), "wakeups_a_second": ("wake-ups a second", 0),
    "of_implied": ("time that the rate implies, times", 2), "fetched": ("received, times the file", 2),
    "faults": ("internal faults", 0), "connections": ("connections at the end", 0),
    "processor_share": ("processor, s a second", 3), "own_wakeups": ("wake-ups of own threads", 0),
    "dispatch_wakeups": ("wake-ups of libdispatch's threads", 0), "private_kib": ("private memory, KiB", 0),
    "resident_kib": ("resident memory, KiB", 0), "calls_a_second": ("calls a second", 0),
    "work_p50_ms": ("beside the file, median, ms", 2), "work_p99_ms": ("beside the file, 99th percentile, ms", 2),
    "echo_p99_ms": ("an echo beside it, 99th percentile, ms", 2), "siege_p99_ms": ("besieged, 99th percentile, ms", 2),
    "seconds": ("time, s", 2), "processor": ("processor time, s", 2),
    "peak_kib": ("peak memory, KiB", 0), "reads": ("reads from the socket", 0), "writes": ("writes to the file", 0),
    "allocations": ("allocations", 0), "mutexes": ("mutexes", 0)}


def number(value, digits):
    """Returns a number with separators of thousands."""
    return "–" if value is None else f"{value:,.{digits}f}"


def with_unit(value, unit):
    """Returns a figure as the tables show it."""
    if value is None:
        return "not measured"
    digits = 2 if not unit or value < 10 and unit != "wake-ups" else 1 if value < 100 and unit != "wake-ups" else 0
    return f"{number(value, digits)} {unit}".rstrip()


def bound(goal):
    sign = "≥" if goal.least else "≤"
    digits = 0 if goal.bound >= 10 or goal.bound == 0 else 2
    return f"{sign} {number(goal.bound, digits)} {goal.unit}".rstrip()


def verdict(goal, value):
    """Returns whether a goal is met, or by how much it is not."""
    if value is None:
        return "–"
    ratio = goal.ratio(value)
    if ratio <= 1:
        return "met"
    return f"missed: {number(value, 0)}" if goal.bound == 0 else f"missed by {(ratio - 1) * 100:.0f} %"


def _table(headings, lines, left=1):
    return ["| " + " | ".join(headings) + " |", "|---" * left + "|---:" * (len(headings) - left) + "|",
            *("| " + " | ".join(line) + " |" for line in lines), ""]


def _spread(case, side, metric, digits):
    found = values(case, side, metric)
    if not found:
        return "–"
    if metric in ("seconds", "synced") and median(case, side, metric) < 0.1:
        digits = 4
    middle = number(median(case, side, metric), digits)
    return middle if len(found) == 1 else f"{middle} ({number(min(found), digits)}–{number(max(found), digits)})"


def _contest(case):
    """Returns the table of a case in which sides did the same work."""
    headings = ["side", "time, s", "dld / side", "with sync, s", "dld / side", "processor, s"]
    files, gib, calls = case.get("files"), case.get("gib"), case.get("calls", {})
    headings += ["µs a file"] if files else ["s a GiB"]
    headings += ["peak memory, MiB", "system calls"]
    ours, lines = median(case, "dld", "seconds"), []
    for side in case["sides"]:
        spent = median(case, side, "processor")
        line = [side, _spread(case, side, "seconds", 2)]
        line.append("" if side == "dld" else number(quotient(ours, median(case, side, "seconds")), 2))
        line.append(_spread(case, side, "synced", 2))
        line.append("" if side == "dld" else number(quotient(ours, median(case, side, "synced")), 2))
        line.append(_spread(case, side, "processor", 2))
        line.append(number(spent / files * 1e6, 0) if files else number(quotient(spent, gib), 2))
        line.append(number(quotient(median(case, side, "peak_kib"), 1024), 1))
        lines.append(line + [number(calls.get(side), 0)])
    text = _table(headings, lines)
    text += [f"{side} is left out: {reason}." for side, reason in case.get("left_out", {}).items()]
    return text + ([""] if case.get("left_out") else [])


def _figures(case):
    """Returns the table of a case with figures of its own."""
    sides = list(case["sides"])
    metrics = [name for name in HEADINGS if any(values(case, side, name) for side in sides)]
    lines = [[HEADINGS[name][0], *(_spread(case, side, name, HEADINGS[name][1]) for side in sides)] for name in metrics]
    if any(case.get("calls", {}).values()):
        lines.append(["system calls", *(number(case["calls"].get(side), 0) for side in sides)])
    return _table(["figure", *sides], lines)


def _overall(cases):
    """Returns one table with a line for each case: the times of several sides, or the figures of one."""
    sides = sorted({side for case in cases.values() for side in case["sides"]}, key=_by_number)
    if len(sides) == 1:
        metrics = [name for name in HEADINGS if any(values(case, sides[0], name) for case in cases.values())]
        lines = [[title, *(_spread(case, sides[0], name, HEADINGS[name][1]) for name in metrics)]
                 for title, case in cases.items()]
        return _table(["case", *(HEADINGS[name][0] for name in metrics)], lines)
    lines = []
    for title, case in cases.items():
        others = [side for side in sides if side != "dld"]
        ratio = quotient(median(case, "dld", "seconds"), best(case, "seconds", others))
        settled = median(case, "dld", "connections")
        lines.append([title, *(number(median(case, side, "seconds"), 2) for side in sides), number(ratio, 2),
                      number(settled, 0)])
    return _table(["time, s", *sides, "dld / the best", "settled at"], lines)


def _by_number(side):
    digits = "".join(one for one in side if one.isdigit())
    return (int(digits or 0), side)


def _section(row, stored, machine):
    found = stored.get(row.name)
    text = [f"## {heading(row)}", ""]
    lines = [[goal.text, bound(goal), with_unit(value, goal.unit), verdict(goal, value)]
             for one, goal, value in judged(stored) if one is row]
    text += _table(["figure", "goal", "measured", ""], lines)
    if found is None:
        used = " and ".join(name for name in row.runs_of if name in stored)
        return text + ([f"From the runs of {used}.", ""] if used else [])
    scale = "" if found["scale"] == 1 else f", sizes times {found['scale']:g}"
    runs = "1 run" if found["runs"] == 1 else f"{found['runs']} runs"
    text += [f"{found['date']}, dld at {found['build']['revision'] or 'an unknown revision'}, {runs}{scale}.", "",
             f"![{row.title}]({row.name.lower()}.svg)", ""]
    if found["machine"] != machine:
        text += [f"Another machine or other tools: {describe(found['machine'])}.", ""]
    if row.one_table:
        return text + _overall(found["cases"])
    for name, case in found["cases"].items():
        text += [f"### {row.name}, {name}", ""]
        if "note" in case:
            text += [f"{case['note']}.", ""]
        has_contest = any("synced" in run for side in case["sides"].values() for run in side)
        text += _contest(case) if has_contest else _figures(case)
        if case.get("threads"):
            woken = ", ".join(f"{thread.rpartition('/')[0]} {count}" for thread, count in case["threads"].items())
            text += [f"Threads that woke up: {woken}.", ""]
    return text


def describe(machine):
    """Returns the machine and its tools in one sentence."""
    tools = "; ".join(machine["tools"].values())
    return (f"{machine['cores']} cores ({machine['processor']}), {machine['memory']} of memory, "
            f"{machine['file system']}, Linux {machine['kernel']}, virtualisation {machine['virtualisation']}; {tools}")


def markdown(stored):
    """Returns the whole page."""
    text = [
        "# Results of the benchmarks", "",
        "[Benchmarks](../benchmarks.md) describes the rows and how they are measured. `make bench` makes this page",
        "from `results.json`. A time is the median of all runs, with the least and the most behind it. dld is timed",
        "until its files are durable.", ""]
    newest = max(stored.values(), key=lambda row: row["date"], default=None)
    machine = newest["machine"] if newest else None
    lines = []
    for row, goal, value in judged(stored):
        date = stored.get(row.name, stored.get(next(iter(row.runs_of), ""), {})).get("date", "–")
        link = f"[{row.name}](#{anchor(heading(row))})"
        lines.append([link, goal.text, bound(goal), with_unit(value, goal.unit), verdict(goal, value), date])
    text += _table(["row", "figure", "goal", "measured", "", "date"], lines, left=2)
    if machine:
        text += ["![Figures relative to their goals](overview.svg)", "", f"The machine: {describe(machine)}.", ""]
    for row in ROWS.values():
        text += _section(row, stored, machine)
    return "\n".join(text).rstrip() + "\n"


def heading(row):
    return f"{row.name}: {row.title}"


def anchor(title):
    """Returns what a link to a heading of this page ends in."""
    return "".join(one for one in title.lower() if one.isalnum() or one in " -").replace(" ", "-")
