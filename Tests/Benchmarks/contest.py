"""A contest: sides that do the same work in an order drawn by lot, each result compared with its source."""

import random
import shutil

import counting
from processes import Unusable

REST, MEMORY = "at rest", "with memory at hand"


class Peer:
    """Another program; `command` returns the words that bring what is wanted into a directory."""

    needs_sync = True

    def __init__(self, name, command):
        self.name, self.command = name, command

    def measure(self, bench, directory):
        """Does the work once; returns its figures."""
        outcome = bench.run(self.command(directory))
        return {"seconds": outcome.seconds, "processor": outcome.processor, "peak_kib": outcome.peak_kib}

    def count(self, bench, directory):
        """Does the work once more; returns its system calls."""
        return counting.count(bench, self.command(directory))


class Ours:
    """dld through its daemon, from the exec of dlctl until it has waited for the durable end."""

    needs_sync = False

    def __init__(self, name, daemon, words):
        self.name, self.daemon, self.words = name, daemon, words

    def command(self, directory):
        return self.daemon.command(*self.words(directory))

    def measure(self, bench, directory):
        """Does the work once; returns its figures, with all threads of the daemon."""
        self.daemon.forget_peak()
        spent = self.daemon.processor()
        with bench.recording(self.daemon.child.pid):
            outcome = bench.run(self.command(directory))
        return {
            "seconds": outcome.seconds, "processor": outcome.processor + self.daemon.processor() - spent,
            "peak_kib": self.daemon.kib("VmHWM")}

    def count(self, bench, directory):
        """Does the work once more; returns its system calls."""
        return counting.count(bench, self.command(directory), self.daemon.child.pid)


class Contest:
    """One case of a row. `verify` raises Unusable unless a directory holds what it should.

    Small files stay until the end of the program (`keep`): ext4 passes over inodes that were deleted a moment ago, and
    files are created at a fraction of the speed then.
    """

    def __init__(self, bench, sides, verify, state=REST, size=0, keep=False, output=None, rest=5):
        self.bench, self.sides, self.verify = bench, list(sides), verify
        self.state, self.size, self.keep, self.output, self.rest = state, size, keep, output, rest
        self.runs = {side.name: [] for side in sides}
        self.calls, self.left_out = {}, {}

    def hold(self, label):
        """Makes all runs; returns the case for the results."""
        for number in range(self.bench.settings.runs):
            for side in random.sample(self.sides, len(self.sides)):
                self._try(side, lambda: self._measure(side, label, number + 1))
        if self.bench.with_calls:
            for side in self.sides:
                self._count(side)
        return {"sides": self.runs, "calls": self.calls, "left_out": self.left_out}

    def _try(self, side, work):
        """A peer that cannot do the work is left out with the reason; dld has to."""
        try:
            work()
        except Unusable as error:
            if isinstance(side, Ours):
                raise
            reason = str(error).strip().splitlines()[0][:200]
            print(f"  {side.name} is left out: {reason}", flush=True)
            self.sides.remove(side)
            self.runs.pop(side.name)
            self.left_out[side.name] = reason

    def _prepare(self):
        """Brings the machine into the state of the case."""
        bench = self.bench
        if self.state == REST:
            bench.rest(self.rest)
            return
        # The memory of a large file that was removed is at hand for the next one.
        path = bench.place / "before.bin"
        block = bytes(1 << 20)
        with open(path, "wb") as file:
            for _ in range(max(1, self.size // len(block))):
                file.write(block)
        bench.sync(path)
        path.unlink()
        bench.sync()

    def _measure(self, side, label, number):
        directory = self.bench.fresh(side.name)
        self._prepare()
        figures = side.measure(self.bench, directory)
        figures["synced"] = figures["seconds"]
        if side.needs_sync and self.output:
            figures["synced"] += self._sync_time(directory)
        self._end(directory)
        self.runs[side.name].append(figures)
        shown = f"{figures['seconds']:8.3f} s, synced {figures['synced']:8.3f} s"
        print(f"  {label}, run {number}: {side.name:<12} {shown}, processor {figures['processor']:7.3f} s, "
              f"{figures['peak_kib'] / 1024:6.1f} MiB", flush=True)

    def _sync_time(self, directory):
        """Returns the seconds until a peer's files are on the disk, where dld's always are."""
        target = directory / self.output if self.output != "." else self.bench.place
        flags = [] if self.output != "." else ["-f"]
        return self.bench.run(["sync", *flags, str(target)]).seconds

    def _count(self, side):
        """Makes the run that counts system calls; what is too slow under a tracer has no number."""
        directory = self.bench.fresh(side.name)
        try:
            calls = side.count(self.bench, directory)
            self._end(directory)
        except Unusable as error:
            print(f"  {side.name}: system calls are not counted: {str(error).splitlines()[0][:200]}", flush=True)
            return
        if calls is not None:
            self.calls[side.name] = calls

    def _end(self, directory):
        self.verify(directory)
        if not self.keep:
            shutil.rmtree(directory)
