"""dld's side of rows by two builds, alternating: this tree's and that of another revision."""

import os
import shutil
import subprocess

import results
from bench import Bench
from processes import Unusable
from settings import TREE

ROWS = ("W1", "W3", "W5", "W6")
COMPARABLE = ("W1", "W2", "W3", "W4", "W5", "W6", "W13", "W14", "W15")
FLAGS = ("-c", "release", "--static-swift-stdlib")


def _git(*words):
    done = subprocess.run(["git", "-C", str(TREE), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unusable(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def build(revision):
    """Builds a revision in a work tree of its own, which stays for the next time; returns the directory of programs."""
    identifier = _git("rev-parse", "--short=12", f"{revision}^{{commit}}")
    place = TREE / ".build/compare" / identifier
    if not place.exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(place), identifier)
        # The same versions of the packages in both builds.
        if (TREE / "Package.resolved").exists():
            shutil.copy(TREE / "Package.resolved", place)
    for product in ("dld", "dlctl"):
        print(f"building {product} at {identifier}", flush=True)
        command = [os.environ.get("SWIFT", "swift"), "build", *FLAGS, "--product", product]
        done = subprocess.run(command, cwd=place, check=False)
        if done.returncode != 0:
            raise Unusable(f"{identifier} cannot be built")
    return identifier, place / ".build/release"


def compare(settings, revision, rows, work):
    """Prints the ratios of both builds; a ratio below 1 means that this tree takes less."""
    unfit = [row for row in rows if row not in COMPARABLE]
    if unfit:
        raise Unusable(f"{' '.join(unfit)}: only {' '.join(COMPARABLE)} can be compared")
    identifier, programs = build(revision)
    other = f"dld at {identifier}"
    bench = Bench(settings, {"dld": settings.programs, other: programs.resolve()}, with_peers=False)
    lines = []
    try:
        for row in rows:
            print(row, flush=True)
            for name, case in work[row](bench).items():
                lines += [_line(row, name, case, other, metric) for metric in ("seconds", "processor", "peak_kib")]
    finally:
        bench.remove()
    print(f"\n| row | case | figure | this tree | {identifier} | ratio | spread of the pairs |")
    print("|---|---|---|---:|---:|---:|---:|")
    print("\n".join(lines))
    return 0


def _line(row, name, case, other, metric):
    ours, theirs = results.values(case, "dld", metric), results.values(case, other, metric)
    pairs = [one / two for one, two in zip(ours, theirs) if two]
    middle, its = results.median(case, "dld", metric), results.median(case, other, metric)
    ratio = results.quotient(middle, its)
    title = {"seconds": "time, s", "processor": "processor, s", "peak_kib": "peak memory, KiB"}[metric]
    shown = f"{min(pairs):.2f}–{max(pairs):.2f}" if pairs else "–"
    digits = 0 if metric == "peak_kib" else 3
    return (f"| {row} | {name} | {title} | {middle:.{digits}f} | {its:.{digits}f} | "
            f"{'–' if ratio is None else f'{ratio:.3f}'} | {shown} |")
