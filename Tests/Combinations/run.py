#!/usr/bin/env python3
"""Drives real daemons through combinations of everything that slows a transfer down, against real servers.

    run.py --bin .build/release                         a sample of the matrix, and twenty random rounds
    run.py --bin .build/release --matrix all --rounds 0 the whole matrix, some twenty minutes
    run.py --bin .build/release --case limit/http/4/mirror/uneven
    run.py --bin .build/release --matrix none --rounds 1 --seed 4711

Random round number K of `--seed N` has the seed N + K. It ends with `N passed, N failed`, and for each failure the
command that repeats it; exit status 1 where there is any. SFTP and frozen disks need root; what cannot be had here is
left out, with the reason. Evidence of failures (logs, threads, sockets) goes to the directory `--keep`.
"""

import argparse
import concurrent.futures
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import processes
import random_rounds
from content import Content
from matrix import Matrix, every_case
from servers import Farm

SAMPLE = 40


class Report:
    """Prints one line for each outcome, and remembers the failures."""

    def __init__(self, keep, repeat):
        self.keep, self.repeat = keep, repeat
        self.passed, self.failures = 0, []
        self.lock = threading.Lock()

    def add(self, outcome, arguments):
        """Notes an outcome. `arguments` repeat it."""
        with self.lock:
            verdict = "failed" if outcome.faults else "passed"
            print(f"{verdict}  {outcome.name}  {outcome.summary}", flush=True)
            for fault in outcome.faults:
                print(f"        {fault}", flush=True)
            if not outcome.faults:
                self.passed += 1
                return
            self.failures.append(f"{outcome.name}: {outcome.faults[0]}\n    {self.repeat} {arguments}")
            if self.keep and outcome.evidence:
                os.makedirs(self.keep, exist_ok=True)
                name = re.sub(r"[^A-Za-z0-9.-]+", "-", outcome.name) + f"-{time.time_ns() // 1_000_000}"
                with open(os.path.join(self.keep, name), "w", encoding="utf-8") as file:
                    file.write("\n".join(outcome.faults) + "\n\n" + outcome.evidence)

    def end(self):
        """Prints the end, and returns the exit status."""
        for failure in self.failures:
            print(failure)
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 1 if self.failures else 0


def chosen_cases(options):
    """Returns the cases that the command line asks for."""
    cases = every_case()
    if options.case:
        wanted = [case for case in cases if case.name in options.case]
        if len(wanted) != len(set(options.case)):
            sys.exit(f"there is no such case; the first of {len(cases)} is {cases[0].name}")
        return wanted
    if options.matrix == "sample":
        return random.Random(options.seed).sample(cases, SAMPLE)
    return cases if options.matrix == "all" else []


def run_matrix(options, place, report, deadline):
    """Runs the chosen cases, two at a time."""
    cases = chosen_cases(options) * options.times
    if not cases:
        return
    farm_place = os.path.join(place, "matrix")
    os.makedirs(farm_place)
    farm = Farm(farm_place)
    try:
        matrix = Matrix(options.bin, farm_place, farm, Content(farm.root), options.slack)
        matrix.measure_set_up()
        print("set-up: " + ", ".join(f"{name} {span:.2f} s" for name, span in matrix.set_up.items()), flush=True)
        left_out = {}
        ready = []
        for case in cases:
            reason = matrix.why_not(case)
            if reason:
                left_out[reason] = left_out.get(reason, 0) + 1
            else:
                ready.append(case)
        for reason, count in left_out.items():
            print(f"left out: {count} cases: {reason}", flush=True)
        late = 0
        pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        try:
            futures = {}
            for case in ready:
                futures[pool.submit(lambda case=case: None if time.monotonic() > deadline else matrix.run(case))] = case
            for future in concurrent.futures.as_completed(futures):
                outcome = future.result()
                if outcome is None:
                    late += 1
                else:
                    report.add(outcome, f"--case {futures[future].name}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            # What still runs ends by itself without its daemon.
            processes.end_all()
            pool.shutdown()
        if late:
            print(f"left out: {late} cases: the time was up", flush=True)
    finally:
        farm.kill()


def run_rounds(options, place, report, deadline):
    """Runs random rounds, one after the other."""
    if options.rounds == 0:
        return
    farm_place = os.path.join(place, "rounds")
    os.makedirs(farm_place)
    farm = Farm(farm_place)
    try:
        for name, reason in farm.missing.items():
            print(f"left out: {name}: {reason}", flush=True)
        rounds = random_rounds.Rounds(options.bin, farm_place, farm, Content(farm.root))
        for number in range(options.rounds):
            if time.monotonic() > deadline:
                print(f"left out: {options.rounds - number} rounds: the time was up", flush=True)
                break
            seed = options.seed + number
            report.add(rounds.run(seed, options.verbose), f"--matrix none --rounds 1 --seed {seed} --verbose")
    finally:
        farm.kill()


def arguments():
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog=__doc__.partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=".build/release", help="the directory with dld and dlctl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, help="random rounds; 20, or none with --case")
    parser.add_argument("--matrix", choices=["sample", "all", "none"], default="sample")
    parser.add_argument("--case", action="append", help="run this case of the matrix alone; may be repeated")
    parser.add_argument("--times", type=int, default=1, help="run the cases so many times")
    parser.add_argument("--jobs", type=int, default=2, help="cases of the matrix at a time")
    parser.add_argument("--slack", type=float, default=0.3, help="seconds that a case of the matrix may take beyond 1.1 of its time")
    parser.add_argument("--seconds-limit", type=float, default=float("inf"), help="begin nothing after so many seconds")
    parser.add_argument("--keep", help="a directory for the evidence of failures")
    parser.add_argument("--verbose", action="store_true", help="tell of each step of a random round")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    if not os.access(os.path.join(options.bin, "dld"), os.X_OK):
        parser.error(f"there is no dld in {options.bin}")
    if options.rounds is None:
        options.rounds = 0 if options.case else 20
    return options


def remove_disks(place):
    """Thaws and unmounts what is left of disks beneath `place`."""
    with open("/proc/mounts", encoding="utf-8") as file:
        paths = [line.split()[1] for line in file]
    for path in paths:
        if path.startswith(place + "/"):
            for command in (["fsfreeze", "-u", path], ["umount", "-l", path]):
                subprocess.run(command, capture_output=True, check=False)


def main():
    """Runs it all, and cleans up whatever happens."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    deadline = time.monotonic() + options.seconds_limit
    report = Report(options.keep, f"{shlex.quote(sys.argv[0])} --bin {shlex.quote(options.bin)}")
    place = tempfile.mkdtemp(prefix="dld-combinations-")
    os.chmod(place, 0o755)
    try:
        run_matrix(options, place, report, deadline)
        run_rounds(options, place, report, deadline)
        return report.end()
    except (KeyboardInterrupt, SystemExit) as end:
        report.end()
        return 130 if isinstance(end, KeyboardInterrupt) else end.code
    except processes.Unusable as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        processes.end_all()
        remove_disks(place)
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
