"""What the daemons hold of the machine, looked at every few seconds, and whether it stays the same."""

import dataclasses
import os
import statistics
import threading
import time

INTERVAL = 5
# A process that started a moment ago says nothing of growth.
SETTLED_AGE = 8
GROWTH = 0.05
# Below so many bytes of growth, the heap's own grain is what is measured.
GRAIN = 1 << 20
# A quarter of a shorter run is warming up.
LEAST_SPAN = 1800
KIB = 1024


@dataclasses.dataclass
class Sample:
    """One look at a process."""

    at: float
    age: float
    pid: int
    anonymous: int
    resident: int
    share: int
    descriptors: int
    threads: int


def look(pid, at=0.0, age=0.0):
    """Returns a sample, None where the process is gone."""
    try:
        fields = {}
        for name in ("status", "smaps_rollup"):
            with open(f"/proc/{pid}/{name}", encoding="ascii", errors="replace") as file:
                for line in file:
                    key, _, value = line.partition(":")
                    fields[key] = value.split()
        return Sample(
            at, age, pid, int(fields["RssAnon"][0]) * KIB, int(fields["VmRSS"][0]) * KIB, int(fields["Pss"][0]) * KIB,
            sum(descriptors(pid).values()) - passing_descriptors(pid), sum(lasting_threads(pid).values()))
    except (OSError, KeyError, ValueError, IndexError):
        return None


def descriptors(pid):
    """Returns what a process has open, by kind, for whoever asks why there is more than before."""
    counts = {}
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            kind = target.split(":")[0] if target.startswith(("socket:", "pipe:")) else target
            counts[kind] = counts.get(kind, 0) + 1
    except OSError:
        pass
    return dict(sorted(counts.items()))


def passing_descriptors(pid):
    """Returns how many of them come when they are first needed, and stay: connections to the database, six at most, and
    the dispatch library's timers, one for each clock."""
    return sum(count for name, count in descriptors(pid).items()
               if name.endswith(("/dld.db", "/dld.db-wal", "[timerfd]")))


def lasting_threads(pid):
    """Returns the threads of a process by name, but for those that the dispatch library starts and ends as it likes."""
    return {name: count for name, count in thread_names(pid).items() if "-qos" not in name}


def thread_names(pid):
    """Returns the names of a process's threads with their numbers."""
    counts = {}
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
            counts[name] = counts.get(name, 0) + 1
    except OSError:
        pass
    return dict(sorted(counts.items()))


def processor_seconds(pid):
    """Returns the processor time that a process used so far."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


class Sampler(threading.Thread):
    """Looks at one daemon after the other until it is told to stop."""

    def __init__(self, worlds, path):
        super().__init__(name="sampler", daemon=True)
        self.worlds, self.path = worlds, path
        self.stopping = threading.Event()
        self.begun = time.monotonic()
        self.samples = {world.name: [] for world in worlds}

    def run(self):
        with open(self.path, "w", encoding="ascii") as file:
            file.write("daemon seconds age pid anonymous resident share descriptors threads\n")
            while not self.stopping.wait(INTERVAL):
                for world in self.worlds:
                    child = world.daemon.child
                    if child is None or child.poll() is not None:
                        continue
                    now = time.monotonic()
                    sample = look(child.pid, now - self.begun, now - world.started_at)
                    if sample is None:
                        continue
                    self.samples[world.name].append(sample)
                    file.write(f"{world.name} {sample.at:.0f} {sample.age:.0f} {sample.pid} {sample.anonymous} "
                               f"{sample.resident} {sample.share} {sample.descriptors} {sample.threads}\n")
                    file.flush()

    def quarters(self, world, span):
        """Returns the settled samples of each quarter of the span."""
        found = [[], [], [], []]
        for sample in self.samples[world.name]:
            if sample.age >= SETTLED_AGE and sample.at < span:
                found[min(3, int(4 * sample.at / span))].append(sample)
        return found

    def table(self, span):
        """Returns lines with the medians by quarter, and judges those of the daemon that is never killed."""
        lines = [f"{'daemon':8} {'quarter':7} {'samples':>7} {'heap MiB':>9} {'Pss MiB':>9} {'RSS MiB':>9} "
                 f"{'descriptors':>11} {'threads':>7}"]
        for world in self.worlds:
            medians = []
            for number, samples in enumerate(self.quarters(world, span)):
                if not samples:
                    medians.append(None)
                    continue
                one = {field: statistics.median(getattr(sample, field) for sample in samples)
                       for field in ("anonymous", "share", "resident", "descriptors", "threads")}
                medians.append(one)
                lines.append(
                    f"{world.name:8} {number + 1:7} {len(samples):7} {one['anonymous'] / (1 << 20):9.1f} "
                    f"{one['share'] / (1 << 20):9.1f} {one['resident'] / (1 << 20):9.1f} {one['descriptors']:11.0f} "
                    f"{one['threads']:7.0f}")
            self._judge(world, medians, span, lines)
        return lines

    def _judge(self, world, medians, span, lines):
        if medians[1] is None or medians[3] is None:
            return
        second, last = medians[1], medians[3]
        growth = last["anonymous"] / second["anonymous"] - 1
        is_judged = span >= LEAST_SPAN
        lines.append(f"{world.name:8} heap, last quarter against the second: {growth * 100:+.1f} %"
                     + ("" if is_judged else " (not judged: the run is too short)"))
        if not is_judged:
            return
        for field, name in (("anonymous", "heap"), ("share", "Pss")):
            more = last[field] - second[field]
            if more > GROWTH * second[field] and more > GRAIN:
                world.ledger.violation(
                    "memory grows", f"{name} from {second[field] / (1 << 20):.1f} MiB in the second quarter to "
                    f"{last[field] / (1 << 20):.1f} MiB in the last one")
        for field in ("descriptors", "threads"):
            # With the same load: the numbers swing with what runs at the moment.
            if last[field] > 1.15 * second[field] + 3:
                world.ledger.violation(
                    f"{field} grow", f"from {second[field]:.0f} in the second quarter to {last[field]:.0f} in the last")
