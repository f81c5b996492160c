"""Runs tests beside each other, and those that failed once more, alone.

Usage: retry_failed.py NAME COMMAND...

COMMAND runs tests of Swift Testing side by side or in turn, and takes --xunit-output, --filter and --no-parallel. Tests
against real servers depend on the pace of the machine, so a test that failed beside others is run again by itself. A
test that fails again has failed. One that passes is reported as "passed alone", so that it is found in the log. More
than MOST failed tests, or an end without a report, are a failure at once. So is a command that prints nothing for QUIET
seconds: where each of its threads stands is printed, and it is killed.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

MOST = 4
QUIET = float(os.environ.get("DLD_QUIET_SECONDS", "600"))


def run(command):
    """The status with which the command ends, or None if it had to be killed. What it prints passes through."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = child.stdout.fileno()
    os.set_blocking(output, False)
    heard = time.monotonic()
    while True:
        # A server that a test left behind may hold the pipe open: the end is that of the command.
        ended = child.poll() is not None
        if select.select([output], [], [], 0 if ended else 0.5)[0] and (text := os.read(output, 1 << 16)):
            sys.stdout.buffer.write(text)
            sys.stdout.flush()
            heard = time.monotonic()
        elif ended:
            return child.returncode
        elif time.monotonic() - heard > QUIET:
            family = descendants(child.pid)
            for process in family:
                print_threads(process)
            print(f"error: nothing was printed for {QUIET:g} seconds: the test that began last hangs", flush=True)
            for process in family:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            child.wait()
            return None


def descendants(process):
    """The process and those that it has started, directly or not."""
    found = [process]
    for one in found:
        try:
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children") as children:
                    found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def print_threads(process):
    """Prints what the threads of a process are doing: their stacks where gdb is installed, else what they wait in."""
    try:
        with open(f"/proc/{process}/cmdline") as line:
            print(f"process {process}: {line.read().replace(chr(0), ' ')[:200]}", flush=True)
        for thread in sorted(os.listdir(f"/proc/{process}/task")):
            with open(f"/proc/{process}/task/{thread}/comm") as name, open(f"/proc/{process}/task/{thread}/wchan") as wait:
                print(f"  thread {thread} {name.read().strip()}: {wait.read() or 'runs'}", flush=True)
    except OSError as error:
        print(f"  {error}", flush=True)
    if shutil.which("gdb"):
        try:
            stacks = ["gdb", "-p", str(process), "-batch", "-ex", "thread apply all bt 24"]
            subprocess.run(stacks, stderr=subprocess.DEVNULL, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            print("  gdb did not end", flush=True)


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
        status = run(command + ["--xunit-output", os.path.join(directory, "all.xml")])
        if status is None:
            return 1
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
        status = run(again)
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
