"""Child processes: started in a group of their own, waited for, and ended with everything that they started."""

import os
import random
import signal
import socket
import subprocess
import threading
import time

_lock = threading.Lock()
_children = set()
_next_port = random.SystemRandom().randrange(12_000)
SEARCH_PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


class Unusable(Exception):
    """A program that is missing here or does not start, with the reason."""


def free_port():
    """Returns a port that was free a moment ago, below those that the kernel gives to outgoing connections."""
    global _next_port
    for _ in range(1000):
        with _lock:
            _next_port += 1
            port = 20_000 + _next_port % 12_000
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise Unusable("no port is free")


def descendants(ancestor):
    """Returns the processes that `ancestor` and its descendants started and that still have their parents."""
    children = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(name))
    found, queue = [], [ancestor]
    while queue:
        more = children.get(queue.pop(), [])
        found += more
        queue += more
    return found


def send(pid, number):
    """Sends a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Child:
    """One running program, its standard error in a file."""

    def __init__(self, command, log, environment=None):
        variables = {"PATH": SEARCH_PATH, "LC_ALL": "C", **(environment or {})}
        with open(log, "ab") as output:
            try:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=variables,
                    start_new_session=True)
            except OSError as error:
                raise Unusable(f"{command[0]}: {error}") from error
        self.log = log
        with _lock:
            _children.add(self)

    @property
    def pid(self):
        return self.process.pid

    def poll(self):
        """Returns the exit status, negative for a signal, or None while it runs."""
        return self.process.poll()

    def kill(self):
        """Ends the program and all that it started, at once."""
        if self.process.poll() is None:
            # Stopped, it starts nothing while its descendants are looked for.
            send(self.pid, signal.SIGSTOP)
            others = descendants(self.pid)
            send(self.pid, signal.SIGKILL)
            for pid in others:
                send(pid, signal.SIGKILL)
            self.process.wait()
            # With thousands of sockets a process takes a while to end, and holds its ports meanwhile.
            deadline = time.monotonic() + 10
            while any(map(_is_running, others)) and time.monotonic() < deadline:
                time.sleep(0.005)
        with _lock:
            _children.discard(self)

    def wait_for_port(self, port, limit=20):
        """Returns once somebody listens on `port` of loopback."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if self.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.005)
        with open(self.log, encoding="utf-8", errors="replace") as file:
            text = file.read()[-2000:]
        raise Unusable(f"nobody listens on port {port}: exit status {self.poll()}: {text}")


def _is_running(pid):
    """Returns whether a process has not ended, whether or not somebody has waited for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end_all():
    """Ends every child that is left."""
    with _lock:
        children = list(_children)
    for child in children:
        child.kill()


def run(command, **options):
    """Runs a program to its end and returns its output; Unusable where it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": SEARCH_PATH}, **options)
    except OSError as error:
        raise Unusable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise Unusable(f"{' '.join(command)}: {done.stderr}")
    return done.stdout
