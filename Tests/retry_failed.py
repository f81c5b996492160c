"""Runs tests beside each other, and those that failed once more, alone.

Usage: retry_failed.py NAME COMMAND...

COMMAND runs tests of Swift Testing side by side or in turn, and takes --xunit-output, --filter and --no-parallel. Tests
against real servers depend on the pace of the machine, so a test that failed beside others is run again by itself. A
test that fails again has failed. One that passes is reported as "passed alone", so that it is found in the log. More
than MOST failed tests, or an end without a report, are a failure at once.
"""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

MOST = 4


def results(report):
    """Whether each test has failed, by the identifier that --filter matches; None without a report.

    None as well if a failure belongs to no test: it cannot be run again.
    """
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    found = {identifier(case): case.find("failure") is not None for case in root.iter("testcase")}
    counted = sum(int(suite.get("failures", "0")) for suite in root.iter("testsuite"))
    elements = sum(1 for _ in root.iter("failure"))
    return found if counted == elements else None


def identifier(case):
    module, _, suites = case.get("classname", "").partition(".")
    return f"{module}.{suites.replace('.', '/')}/{case.get('name', '')}"


def report_path(directory, name):
    """swift test adds a suffix to the name of the report of Swift Testing; the bundle of tests does not."""
    of_swift_test = os.path.join(directory, name + "-swift-testing.xml")
    return of_swift_test if os.path.exists(of_swift_test) else os.path.join(directory, name + ".xml")


def main():
    name, command = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as directory:
        status = subprocess.run(command + ["--xunit-output", os.path.join(directory, "all.xml")]).returncode
        if status == 0:
            return 0
        tests = results(report_path(directory, "all")) or {}
        failed = [test for test, has_failed in tests.items() if has_failed]
        if not failed or len(failed) > MOST:
            return 1
        names = " ".join(failed)
        print(f"{name}: tried again, alone: {names}", flush=True)
        exact = "^(" + "|".join(re.escape(test) for test in failed) + ")"
        again = [*without_selection(command), "--no-parallel", "--filter", exact]
        again += ["--xunit-output", os.path.join(directory, "again.xml")]
        status = subprocess.run(again).returncode
        tests = results(report_path(directory, "again")) or {}
        if status != 0 or any(tests.get(test, True) for test in failed):
            return status or 1
        print(f"warning: {name}: failed beside others, passed alone: {names}", flush=True)
        return 0


def without_selection(command):
    """The command without its --filter, --skip and --no-parallel."""
    kept, index = [], 0
    while index < len(command):
        if command[index] in ("--filter", "--skip"):
            index += 2
            continue
        if command[index] != "--no-parallel":
            kept.append(command[index])
        index += 1
    return kept


if __name__ == "__main__":
    sys.exit(main())
