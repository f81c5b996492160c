"""The real `dlctl`, run as a user, and what there is of commands and methods."""

import collections
import os
import re
import subprocess
import threading
import time

GROUP = "users"
GROUP_ID = 100
# A command that takes longer hangs.
PATIENCE = 60


class Answer:
    """What a command came to."""

    def __init__(self, words, status, output, error, seconds):
        self.words, self.status, self.output, self.error, self.seconds = words, status, output, error, seconds

    def __str__(self):
        return (f"dlctl {' '.join(self.words)[:300]}: exit status {self.status} after {self.seconds:.1f} s: "
                f"{self.output[:300]} {self.error[:300]}")


class Usage:
    """How often each command, option and method was used."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()

    def note(self, *names):
        """Counts one use of each."""
        with self.lock:
            self.counts.update(names)


class Dlctl:
    """Runs commands against one daemon."""

    def __init__(self, programs, socket, usage):
        self.program = os.path.join(programs, "dlctl")
        self.socket, self.usage = socket, usage

    def run(self, uid, words, text=None, limit=PATIENCE):
        """Runs a command as a user, without a terminal; `status` is None where it hung."""
        command = [self.program, "--socket", self.socket, *words]
        if uid:
            command = ["setpriv", "--reuid", str(uid), "--regid", str(GROUP_ID), "--clear-groups", *command]
        name = " ".join(words[:2]) if words[0] == "queue" else words[0]
        self.usage.note(name, *(f"{name} {word}" for word in words if word.startswith("--")))
        begun = time.monotonic()
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, check=False, timeout=limit, cwd="/",
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                **({} if text is not None else {"stdin": subprocess.DEVNULL}))
            status, output, error = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            status, output, error = None, "", ""
        return Answer(words, status, output, error, time.monotonic() - begun)


def help_text(programs, words):
    """Returns what `dlctl help` says of a command."""
    done = subprocess.run(
        [os.path.join(programs, "dlctl"), "help", *words], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def commands(programs):
    """Returns every command that `dlctl help` names, with its options."""
    found = {}

    def read(words):
        text = help_text(programs, words)
        parts = re.split(r"^(?:[A-Z][A-Z ]*)?SUBCOMMANDS:\n", text, flags=re.MULTILINE)
        names = [name for part in parts[1:] for name in re.findall(r"^  ([a-z][a-z-]*)(?: |$)", part, re.MULTILINE)]
        if not names:
            options = set(re.findall(r"^  (?:-\w(?:, | <[^>]*>, ))?(--[a-z-]+)", text, re.MULTILINE))
            found[" ".join(words)] = options - {"--socket", "--version", "--help"}
        for name in names:
            read([*words, name])

    read([])
    return found


def methods(repository):
    """Returns every method of the control socket that the sources name; None where they are not there."""
    path = os.path.join(repository, "Sources", "ControlProtocol", "Command.swift")
    try:
        with open(path, encoding="utf-8") as file:
            return set(re.findall(r'^    case \w+ = "([a-z]+\.[a-z]+)"', file.read(), re.MULTILINE))
    except OSError:
        return None
