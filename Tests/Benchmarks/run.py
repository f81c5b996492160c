#!/usr/bin/env python3
"""Measures dld beside other tools, and by itself.

    run.py                    W1 to W15; results.json, results.md and SVG charts go to docs/benchmarks
    run.py --report           the tables and charts from results.json alone
    run.py --compare REV      dld's side of rows alternately with the build of another revision
    run.py --profile          where the daemon spends its processor time in rows

ROWS names rows ("W3 W5"; all includes E1 to E3); the others keep their figures. RUNS (5), DLD_BIN_DIR (.build/release),
BENCH_DIR (/var/tmp; a disk with 40 GiB of room), BENCH_OUTPUT, TIME_LIMIT (600 seconds a run). SCALE (1) multiplies
sizes: 0.01 tries everything in some minutes, and its results go to .build/benchmarks. An interruption ends and removes
everything that was started; rows that ended before stay.
"""

import argparse
import os
import signal
import sys
import time

import compare
import goals
import machine
import plots
import profiling
import report
import results
import rows_connections
import rows_control
import rows_large
import rows_line
import rows_many
import rows_queue
import rows_rates
from bench import Bench
from processes import Unusable
from settings import Settings

# In the order in which they run. Small files come late: those that are deleted slow down whoever creates new ones.
WORK = {
    "W1": rows_large.over_http, "W2": rows_large.over_tls, "W5": rows_many.larger, "W15": rows_large.with_digest,
    "W6": rows_many.uploads, "W11": rows_control.control, "W12": rows_queue.starting, "W9": rows_control.open_transfers,
    "W14": rows_line.long_line, "W3": rows_many.small, "W4": rows_many.small_http2, "W13": rows_many.growing,
    "W8": rows_queue.million, "W10": rows_queue.idle, "E1": rows_connections.connections, "E2": rows_rates.rates,
    "E3": rows_rates.together}
USUAL = [name for name in WORK if name not in goals.EXTRA]


def chosen(default):
    """Returns the rows that ROWS names, in the order in which they run."""
    words = os.environ.get("ROWS", "").replace(",", " ").split() or list(default)
    words = list(goals.ROWS) if words == ["all"] else [word.upper() for word in words]
    unknown = [word for word in words if word not in goals.ROWS]
    if unknown:
        raise Unusable(f"{' '.join(unknown)}: the rows are {' '.join(goals.ROWS)}")
    wanted = {name for word in words for name in (goals.ROWS[word].runs_of or (word,))}
    return [name for name in WORK if name in wanted]


def write_report(settings):
    """Writes the page and the charts."""
    stored = results.load(settings.output / "results.json")
    settings.output.mkdir(parents=True, exist_ok=True)
    (settings.output / "results.md").write_text(report.markdown(stored), encoding="utf-8")
    plots.write(stored, settings.output)


def measure(settings):
    """Runs rows; each is stored as soon as it has ended. Returns the rows that failed."""
    bench, failed = Bench(settings), []
    file = settings.output / "results.json"
    try:
        about = {"machine": machine.describe(bench.place), "build": machine.build(settings.programs)}
        for name in chosen(USUAL):
            print(f"{name}: {goals.ROWS[name].title}", flush=True)
            begin = time.monotonic()
            try:
                cases = WORK[name](bench)
            except (Unusable, OSError, KeyError, ValueError) as error:
                print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                failed.append(name)
                bench.end_daemons()
                continue
            stored = results.load(file)
            stored[name] = {
                "date": machine.today(), "scale": settings.scale, "runs": settings.runs, **about, "cases": cases}
            results.save(file, stored)
            write_report(settings)
            print(f"  {time.monotonic() - begin:.0f} s\n", flush=True)
    finally:
        print("removing the files", flush=True)
        bench.remove()
    return failed


def summary(settings):
    """Prints the figures of the rows that were asked for."""
    stored, wanted = results.load(settings.output / "results.json"), set(chosen(USUAL))
    for row, goal, value in goals.judged(stored):
        if row.name in wanted or wanted & set(row.runs_of):
            shown = f"{report.with_unit(value, goal.unit)} ({report.bound(goal)})"
            print(f"{row.name:<4} {goal.text:<62} {shown:<34} {report.verdict(goal, value)}")
    print(f"in full: {settings.output}/results.md")


def main():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--compare", metavar="REV")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    # Also where whoever started this ignores it, as shells do for what runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    settings = Settings()
    try:
        if options.report:
            write_report(settings)
            return 0
        if options.compare:
            return compare.compare(settings, options.compare, chosen(compare.ROWS), WORK)
        if options.profile:
            return profiling.profile(settings, chosen(("W1", "W3")), WORK)
        failed = measure(settings)
        summary(settings)
        return 1 if failed else 0
    except Unusable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
