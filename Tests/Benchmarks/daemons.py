"""The daemon as the benchmarks run it, and what the kernel tells of it."""

import json
import os
import pathlib
import re
import resource
import socket
import time

import processes
from daemon import Daemon, Refused
from processes import Child, Unusable

TICKS = os.sysconf("SC_CLK_TCK")
HARD_LIMIT = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
OPEN_FILES = 40_000 if HARD_LIMIT == resource.RLIM_INFINITY else min(40_000, HARD_LIMIT)
# Before a command that has thousands of transfers.
MANY_FILES = ("prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}")


class BenchDaemon(Daemon):
    """A daemon with a database of its own. `prefix` is a command that starts it, as one that enters a namespace.

    Unless it `opens_many` files its limit of open files stays as it is, and no further command starts it.
    """

    def __init__(self, programs, place, settings, downloads=None, prefix=(), environment=None, opens_many=True):
        super().__init__(programs, place, settings, downloads=downloads, level="error")
        self.prefix, self.surroundings = prefix, environment or {}
        self.opens_many = opens_many
        self.dlctl = os.path.join(programs, "dlctl")

    def start(self):
        """Starts it, and returns the seconds until it answered."""
        command = [*self.prefix, *(MANY_FILES if self.opens_many else ()), *self.words()]
        begin = time.perf_counter()
        nowhere = {"XDG_CONFIG_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}
        self.child = Child(command, self.log, {**nowhere, **self.surroundings})
        while True:
            try:
                self.status()
                return time.perf_counter() - begin
            except OSError:
                if self.child.poll() is not None or time.perf_counter() - begin > 60:
                    raise Unusable(f"dld does not start ({self.child.poll()}): {self.log_text()[-2000:]}") from None
                time.sleep(0.0005)

    def words(self):
        """Returns the words that start it."""
        return [
            os.path.join(self.programs, "dld"), "--config", self.file, "--socket", self.socket, "--state-directory",
            self.state, "--download-directory", self.downloads, "--log-level", self.level]

    def command(self, *words):
        """Returns a command of dlctl."""
        return [self.dlctl, "--socket", self.socket, *map(str, words)]

    # What the kernel tells

    def _read(self, name):
        return pathlib.Path(f"/proc/{self.child.pid}/{name}").read_text()

    def processor(self):
        """Returns the seconds of processor time of all its threads, ended ones included."""
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def kib(self, name):
        """Returns a size from proc_pid_status(5), such as VmHWM."""
        return int(re.search(rf"^{name}:\s+(\d+)", self._read("status"), re.M).group(1))

    def forget_peak(self):
        """Has VmHWM count from now on."""
        pathlib.Path(f"/proc/{self.child.pid}/clear_refs").write_text("5")

    def sleeps(self):
        """Returns how often each thread went to sleep, by its name and number."""
        found = {}
        for entry in pathlib.Path(f"/proc/{self.child.pid}/task").iterdir():
            try:
                count = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (entry / "status").read_text(), re.M)
                found[f"{(entry / 'comm').read_text().strip()}/{entry.name}"] = int(count.group(1))
            except OSError:
                continue
        return found

    # Waiting

    def wait_until(self, what, holds, seconds=600, pause=0.05):
        """Returns once a condition of `daemon.status` holds."""
        end = time.monotonic() + seconds
        while not holds(self.status()):
            if time.monotonic() > end or self.child.poll() is not None:
                raise Unusable(f"{what}: not within {seconds} s, {json.dumps(self.status()['tasks'])}")
            time.sleep(pause)


class Connection:
    """A connection to the control socket that stays open."""

    STATUS = b'{"jsonrpc":"2.0","id":1,"method":"daemon.status"}\n'

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rwb")

    def call(self, method, parameters=None):
        """Makes one call and returns its result."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters or {}}
        answer = json.loads(self.exchange(json.dumps(request).encode() + b"\n"))
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def exchange(self, line):
        """Sends a line and returns the next one."""
        self.stream.write(line)
        self.stream.flush()
        answer = self.stream.readline()
        if not answer:
            raise ConnectionError("the daemon closed the connection")
        return answer

    def latency(self):
        """Returns the milliseconds of one `daemon.status`."""
        begin = time.perf_counter()
        self.exchange(self.STATUS)
        return (time.perf_counter() - begin) * 1000

    def calls_a_second(self, count, window=100):
        """Returns how many calls a second are answered if so many are on their way."""
        begin = time.perf_counter()
        for _ in range(count // window):
            self.stream.write(self.STATUS * window)
            self.stream.flush()
            for _ in range(window):
                self.stream.readline()
        return count // window * window / (time.perf_counter() - begin)

    def close(self):
        self.stream.close()
        self.socket.close()


def clear(daemon):
    """Ends a daemon and removes its database, so that the next start begins with an empty one."""
    daemon.terminate()
    processes.run(["rm", "-rf", daemon.state])
    os.makedirs(daemon.state)
