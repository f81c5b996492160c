#!/usr/bin/env python3
"""Tests of the Debian package on a real systemd: run.py PACKAGE [--previous PACKAGE] [--only WORD] [--keep].

Boots a Debian 12 tree with systemd-nspawn, installs the package with apt, and goes through the life of the service.
Needs root, and a kernel on which systemd-nspawn works; says so and ends with 0 where it does not.
"""

import argparse
import pathlib
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import machine  # noqa: E402
import scenarios  # noqa: E402
import tree  # noqa: E402


def obstacle() -> str | None:
    """Returns why this machine cannot run the tests."""
    if subprocess.run(["id", "-u"], capture_output=True, text=True).stdout.strip() != "0":
        return "not root"
    for program in ["systemd-nspawn", "nsenter", "mmdebstrap"]:
        if subprocess.run(["sh", "-c", f"command -v {program}"], capture_output=True).returncode != 0:
            return f"{program} is not installed"
    probe = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        return f"namespaces cannot be made: {probe.stderr.strip()}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("--previous", type=pathlib.Path, help="the package from which an upgrade is tried; by default "
                        "the newest of an earlier version beside PACKAGE, or that which passed last")
    parser.add_argument("--only", help="runs the tests whose names contain one of these words, after the installation")
    parser.add_argument("--keep", action="store_true", help="leaves the machine for inspection after a failure")
    parser.add_argument("--idle", type=float, default=60, help="the seconds in which an idle daemon is watched")
    parser.add_argument("--verbose", action="store_true", help="prints the journal after each failure")
    options = parser.parse_args()
    reason = obstacle()
    if reason:
        print(f"the package is not tried on a systemd: {reason}")
        return 0
    previous = options.previous or tree.earlier_package(options.package)
    try:
        box = machine.Machine(tree.ensure())
    except subprocess.CalledProcessError as failure:
        print(f"the package is not tried on a systemd: no tree can be made for it: {failure}")
        return 0
    passed, failed = 0, []
    try:
        try:
            box.boot()
        except machine.Failure as failure:
            # Nothing of the package is installed yet.
            print(f"the package is not tried on a systemd: {failure}")
            return 0
        run = scenarios.Scenarios(box, options.package, previous, options.idle)
        for name, test in run.all():
            words = (options.only or "").split(",")
            if options.only and not any(word in name for word in words) and not getattr(test, "is_needed", False):
                continue
            start = time.monotonic()
            try:
                test()
            except Exception as error:  # noqa: BLE001 # any failure is one of the test
                failed.append(name)
                print(f"✘ {name}: {error}", flush=True)
                if not isinstance(error, machine.Failure):
                    traceback.print_exc()
                print(run.diagnosis() if options.verbose else "", end="", flush=True)
                if getattr(test, "is_needed", False):
                    break
            else:
                passed += 1
                print(f"✔ {name} ({time.monotonic() - start:.1f} s)", flush=True)
    finally:
        if options.keep and failed:
            print(f"the machine is kept: {box.place}, leader {box.leader}")
        else:
            box.remove()
    if not failed and not options.only:
        tree.keep_package(options.package)
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
