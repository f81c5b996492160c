#!/usr/bin/env python3
"""Lets twenty users loose on two daemons for an hour, with every command, protocol and mishap, and holds what comes
of it against what was asked for.

    soak.py --bin .build/release                               an hour
    soak.py --bin .build/release --seconds 600 --seed 7 --keep DIR

One daemon is killed every half a minute; the other one, which has five of the users, never is, and its memory,
descriptors and threads have to stay as they are. Both meet full and slow disks, servers that die, stop and lie, reloads,
rates and schedules. At the end the servers turn honest and the disks free, and everything has to come to its end: no
task lost, doubled, stuck or wrong, nothing left over, nothing in another's directory. Needs root.

It prints a line a minute, and at the end a table; exit status 1 where anything is wrong, with what it is. `--keep DIR`
keeps the logs, databases, configurations, files and samples there. The same seed draws the same plans; which moment
they meet is the machine's to say.
"""

import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "Combinations"))

# pylint: disable=wrong-import-position
import audit
import dlctl
import processes
import samples
from audit import Auditor
from content import Content
from daemon import Daemon, Refused
from disk import FrozenDisk
from ledger import Ledger, Report
from processes import Unusable
from run import remove_disks
from samples import Sampler
from servers import Farm, Server
from storm import Killer, Life, Weather, calm
from user import Listener, User

FIRST_UID = 21_001
STEADY_USERS = 5
USERS = 20
SLOTS = 40
# Seconds after the storm within which everything has to come to its end.
BOUND = 240
# Seconds within which descriptors and threads have to be as before.
SETTLING = 200
# What no user of the soak says: the operator does, or it makes no sense without a terminal.
KNOWN_COMMANDS = {
    "add", "upload", "queue apply", "queue list", "list", "show", "wait", "pause", "resume", "set", "move", "cancel",
    "retry", "remove", "status", "limit", "reload", "shutdown", "rpc", "completion", "events", "watch", "top", "backup"}
KNOWN_METHODS = {
    "task.add", "task.get", "task.list", "task.count", "task.pause", "task.resume", "task.cancel", "task.remove",
    "task.retry", "task.update", "task.move", "queue.begin", "queue.put", "queue.commit", "queue.abort", "queue.list",
    "daemon.status", "daemon.limits", "daemon.reload", "daemon.shutdown", "events.subscribe",
    "events.list", "rpc.discover", "daemon.backup", "backup.read",
    "source.receive", "source.attach"}


class ChaosServer(Server):
    """The HTTP server that misbehaves."""

    def __init__(self, place, seed):
        super().__init__(place, "chaos")
        self.seed = seed

    def command(self):
        return [sys.executable, "-B", os.path.join(HERE, "chaos.py"), str(self.port), str(self.seed)]

    def url(self, path):
        """Returns the URL of a path."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def ask(self, what):
        """Tells or asks it something."""
        return audit.ask(self.url(f"control/{what}"))


class World:
    """One daemon with its users, and all that they share."""

    def __init__(self, soak, name, letter):
        self.name, self.letter = name, letter
        self.report, self.usage = soak.report, soak.usage
        self.farm, self.content, self.chaos = soak.farm, soak.content, soak.chaos
        self.small, self.slow = soak.disks["small"], soak.disks["slow"]
        self.papers, self.evidence = soak.papers, soak.evidence
        self.place = os.path.join(soak.place, name)
        os.makedirs(self.place)
        self.main = FrozenDisk(self.place, "6G")
        # Files of root's are taken from a directory alone that nobody else may write to.
        self.drops, self.own_drops = os.path.join(self.place, "drops"), os.path.join(self.place, "own-drops")
        self.downloads = os.path.join(self.main.path, "downloads")
        for path, mode in ((self.drops, 0o1777), (self.own_drops, 0o755), (self.downloads, 0o1777)):
            os.makedirs(path)
            os.chmod(path, mode)
        self.roots = [self.downloads, self.small.path, self.slow.path]
        self.homes_place = os.path.join(self.place, "homes")
        self.dropped = {}
        self.reported = set()
        self.ledger = Ledger(name, soak.report)
        self.life = Life()
        self.steering = threading.RLock()
        self.faults = 0
        self.slots = SLOTS
        self.pace = 1.0
        # Whether servers lie and disks fill up.
        self.is_rough = True
        self.started_at = time.monotonic()
        self.daemon = Daemon(
            soak.options.bin, self.place, self.settings(None), self.farm["sftp"].home, self.downloads, level="info")
        self.dlctl = dlctl.Dlctl(soak.options.bin, self.daemon.socket, soak.usage)
        self.auditor = Auditor(self)
        self.users, self.listeners = [], []

    def settings(self, lot):
        """Returns a configuration; with a lot, one that differs a little."""
        limits = {"active-tasks": SLOTS, "connections-per-host": 16}
        schedule, hosts = [], {}
        if lot is not None:
            limits["active-tasks"] = lot.choice([SLOTS, SLOTS // 2, SLOTS * 2])
            limits["connections-per-task"] = lot.choice(["auto", 4, 1])
            if lot.random() < 0.4:
                limits["download-rate"] = lot.choice([8_000_000, 20_000_000])
            if lot.random() < 0.4:
                now = time.localtime(time.time() + lot.choice([0, 30, 60]))
                later = time.localtime(time.mktime(now) + 60)
                window = {"from": time.strftime("%H:%M", now), "to": time.strftime("%H:%M", later)}
                schedule.append({**window, **({"pause": True} if lot.random() < 0.3 else {"download-rate": 3_000_000})})
            for name in ("http", "https", "http2", "ftp"):
                if lot.random() < 0.3:
                    hosts[f"127.0.0.1:{self.farm[name].port}"] = lot.choice([
                        {"connections": 2}, {"download-rate": 4_000_000}, {"upload-rate": 2_000_000}])
        hosts.setdefault(f"127.0.0.1:{self.farm['http2'].port}", {})["http-version"] = "2"
        return {
            "downloads": {"directory": self.downloads, "layout": "per-user",
                          "roots": [self.downloads, self.small.path, self.slow.path]},
            "uploads": {"roots": [self.farm.root]}, "limits": limits, "disk": {"min-free": "8M"},
            "tls": {"ca-file": self.farm.certificate}, "schedule": schedule, "hosts": hosts,
            "retry": {"attempts": 40, "base-delay": "200ms", "max-delay": "3s"},
            "timeouts": {"connect": "5s", "stall": "5s"},
            "watch": [{"directory": path, "defaults": {"priority": "high"}} for path in (self.drops, self.own_drops)],
            "queues": [os.path.join(self.place, "queue.d", "*.yaml")],
            "control": {"group": dlctl.GROUP, "mode": "0660"}}

    def configure(self, lot):
        """Writes another configuration."""
        settings = self.settings(lot)
        self.slots = settings["limits"]["active-tasks"]
        self.daemon.configure(settings)

    def start(self):
        """Starts the daemon; returns whether it answers."""
        try:
            self.daemon.start()
        except Unusable as error:
            self.ledger.violation("does not start", str(error))
            return False
        self.started_at = time.monotonic()
        self.life.is_back()
        return True

    def identity(self):
        """Returns the store's eight digits, from its database."""
        if not hasattr(self, "_identity"):
            text = processes.run(["sqlite3", os.path.join(self.daemon.state, "dld.db"),
                                  "SELECT value FROM meta WHERE name = 'identity'"])
            self._identity = text.strip()
        return self._identity

    def write_evidence(self, name, numbers):
        """Keeps what is known of tasks at this moment."""
        with open(os.path.join(self.evidence, f"{self.name}-{name}"), "w", encoding="utf-8") as file:
            file.write(self.daemon.evidence(numbers))

    def homes(self, uids):
        """Makes the users' own directories on the disks that they share."""
        for disk in (self.small, self.slow):
            for uid in uids:
                path = os.path.join(disk.path, str(uid))
                os.makedirs(path, exist_ok=True)
                os.chown(path, uid, dlctl.GROUP_ID if uid else 0)
                os.chmod(path, 0o755)
        os.makedirs(self.homes_place, exist_ok=True)
        for uid in uids:
            path = self.home(uid)
            os.makedirs(path)
            os.chown(path, uid, dlctl.GROUP_ID if uid else 0)
            os.chmod(path, 0o700)

    def home(self, uid):
        """Returns a directory of a user's that lies beneath no root."""
        return os.path.join(self.homes_place, str(uid))

    def add_queue_file(self):
        """Puts a queue file where it is applied at each start, with tasks of root's."""
        root = self.users[0]
        os.makedirs(os.path.join(self.place, "queue.d"))
        # Those of the first user, who is root, and whose stream has not begun.
        pairs = root._plain(3)  # pylint: disable=protected-access
        import wishes  # pylint: disable=import-outside-toplevel
        with open(os.path.join(self.place, "queue.d", "each-start.yaml"), "w", encoding="utf-8") as file:
            file.write(wishes.as_queue_file([task for task, _ in pairs], None, f"each-start-{self.letter}"))
        for _, entry in pairs:
            # It is applied again and again: once removed it would come anew.
            entry.is_standing = True


class Soak:
    """The whole run."""

    def __init__(self, options, place):
        self.options, self.place = options, place
        self.report, self.usage = Report(), dlctl.Usage()
        self.lot = random.Random(options.seed)
        self.evidence = os.path.join(place, "evidence")
        self.papers = os.path.join(place, "papers")
        for path in (self.evidence, self.papers):
            os.makedirs(path)
        self.farm = Farm(place)
        if self.farm.missing:
            raise Unusable(f"the soak needs every server: {self.farm.missing}")
        self.content = Content(self.farm.root)
        self.chaos = ChaosServer(place, self.lot.randrange(1 << 30))
        self.chaos.start()
        self.disks = {}
        for name, size in (("small", "96M"), ("slow", "2G")):
            os.makedirs(os.path.join(place, name))
            self.disks[name] = FrozenDisk(os.path.join(place, name), size)
            os.chmod(self.disks[name].path, 0o755)
        self.worlds = [World(self, "struck", "a"), World(self, "steady", "b")]
        self.weather = Weather(self.worlds, self.disks, self.farm, self.lot.randrange(1 << 30), self.report)
        self.killer = Killer(self.worlds[0], self.lot.randrange(1 << 30), self.report)
        self.sampler = None
        self.baseline, self.open = {}, {}
        self.quiet = 125 if options.seconds >= 300 else 15

    # Before

    def check_catalogue(self):
        """What is there and what the soak knows have to be the same."""
        self.commands = dlctl.commands(self.options.bin)
        self.methods = dlctl.methods(os.path.dirname(os.path.dirname(HERE))) or KNOWN_METHODS
        for kind, there, known in (
                ("command", set(self.commands), KNOWN_COMMANDS), ("method", self.methods, KNOWN_METHODS)):
            for name in sorted(there - known):
                self.report.violation("unknown to the soak", f"the {kind} {name}: teach it to Tests/Soak")
            for name in sorted(known - there):
                self.report.violation("unknown to dld", f"the {kind} {name}, which the soak uses")

    def set_up(self):
        """Starts the daemons and lets each touch everything once."""
        for size in set(__import__("wishes").SIZES + __import__("wishes").UPLOAD_SIZES):
            self.content.name(size)
        for world in self.worlds:
            count = STEADY_USERS if world.letter == "b" else USERS - STEADY_USERS
            first = FIRST_UID + (USERS - STEADY_USERS if world.letter == "b" else 0)
            uids = [0] + [first + number for number in range(1, count)]
            world.homes(uids)
            world.users = [User(world, index, uid, self.lot.randrange(1 << 30)) for index, uid in enumerate(uids)]
            world.add_queue_file()
            world.listeners = [Listener(world, uid) for uid in uids[1:4]]
            if not world.start():
                raise Unusable(f"the daemon {world.name} does not start")
        for world in self.worlds:
            self.warm_up(world)
        # Connections that nobody uses are kept for two minutes.
        self.baseline = self.settle(self.quiet, 180, lambda found: False)
        self.open = {world.name: self.held(world.daemon.child.pid) for world in self.worlds}
        for name, sample in self.baseline.items():
            self.report.say(f"{name} at rest: {self.at_rest(sample)}")

    def warm_up(self, world):
        """Has one task of each protocol run at each place, so that all threads and connections are there that stay."""
        for user in world.users[:3]:
            for place in ([], ["-d", os.path.join(world.small.path, str(user.uid))],
                          ["-d", os.path.join(world.slow.path, str(user.uid))]):
                for name in ("http", "https", "http2", "ftp", "ftps") + (("sftp",) if not user.uid else ()):
                    task, entry = user._registered(user.wishes.download)  # pylint: disable=protected-access
                    del task
                    size = 300_001
                    entry.digests, entry.must_fail, entry.login = {self.content.digest(size)}, False, None
                    entry.shares_name, entry.codes = False, frozenset()
                    entry.wish = entry.wish.RUN
                    entry.place = [place[1] if place else user._own_place()]  # pylint: disable=protected-access
                    value, is_sure = user.json(
                        ["add", "-o", f"{entry.token}.bin", *place, self.farm[name].url(self.content.name(size))], {0})
                    if is_sure and value:
                        world.ledger.acknowledge(entry, value["ids"][0])

    @staticmethod
    def held(pid):
        """Counts what a process has open, and its threads."""
        return collections.Counter(samples.descriptors(pid)) + collections.Counter(samples.lasting_threads(pid))

    @staticmethod
    def at_rest(sample):
        """Describes a sample."""
        return (f"{sample.descriptors} descriptors, {sample.threads} threads, {sample.anonymous / (1 << 20):.1f} MiB of "
                "heap") if sample else "gone"

    def settle(self, quiet, limit, is_enough):
        """Waits until no daemon's descriptors and threads change any more for `quiet` seconds, or they are enough."""
        begun = time.monotonic()
        last, since = None, begun
        while True:
            found = {world.name: samples.look(world.daemon.child.pid) for world in self.worlds}
            numbers = [(one.descriptors, one.threads) for one in found.values() if one]
            if numbers != last:
                last, since = numbers, time.monotonic()
            now = time.monotonic()
            if is_enough(found) or now - since > quiet or now - begun > limit:
                return found
            time.sleep(0.5)

    def is_as_before(self, found):
        """Whether no daemon holds more than it did before the storm."""
        return all(sample and sample.descriptors <= self.baseline[name].descriptors
                   and sample.threads <= self.baseline[name].threads for name, sample in found.items())

    # The storm

    def run(self):
        """Does it all; returns the exit status."""
        self.check_catalogue()
        self.set_up()
        seconds = self.options.seconds
        self.report.say(f"the storm begins: {seconds} s, seed {self.options.seed}, files in {self.place}")
        self.sampler = Sampler(self.worlds, os.path.join(self.place, "samples"))
        self.sampler.start()
        threads = [self.weather, self.killer]
        for world in self.worlds:
            world.auditor.start()
            threads += world.users + world.listeners
        begun = time.monotonic()
        self.used = [samples.processor_seconds(world.daemon.child.pid) for world in self.worlds]
        for thread in threads:
            thread.daemon = True
            thread.start()
        minute = 0
        while time.monotonic() - begun < seconds:
            time.sleep(min(1, max(0, begun + seconds - time.monotonic())))
            if time.monotonic() - begun >= 60 * (minute + 1):
                minute += 1
                self.tell(begun)
        self.span = time.monotonic() - begun
        self.end_storm()
        self.judge()
        return self.conclude()

    def tell(self, begun):
        """Prints the line of a minute."""
        parts = []
        for world in self.worlds:
            entries = world.ledger.all()
            status = world.auditor.last.values()
            active = sum(task["state"] == "active" for task in status)
            sample = self.sampler.samples[world.name][-1:] or [None]
            parts.append(
                f"{world.name}: {sum(user.commands for user in world.users)} commands, {len(entries)} tasks, "
                f"{world.auditor.checked} checked, {active} active, {self.at_rest(sample[0])}")
        load = os.getloadavg()[0]
        own = sum(os.times()[:4])
        self.report.say(f"{'; '.join(parts)}; {self.killer.world.life.kills} kills; load {load:.1f}; "
                        f"the soak used {100 * own / (time.monotonic() - begun):.0f} % of a core")

    def end_storm(self):
        """Lets the weather clear: no kills, honest servers, free disks, no users."""
        self.report.say("the storm ends")
        for world in self.worlds:
            for user in world.users:
                user.stopping.set()
            world.auditor.stopping.set()
        self.killer.stopping.set()
        self.weather.stopping.set()
        for thread in [self.killer, self.weather, *(user for world in self.worlds for user in world.users),
                       *(world.auditor for world in self.worlds)]:
            thread.join(200)
            if thread.is_alive():
                self.report.violation("the soak itself", f"{thread.name} does not end")
        self.sampler.stopping.set()
        self.sampler.join()
        calm(self.disks, self.farm)
        self.chaos.ask("honest")
        for world in self.worlds:
            world.is_rough = False
            world.slots = SLOTS
            world.daemon.configure(world.settings(None))
            world.dlctl.run(0, ["reload"])
            world.dlctl.run(0, ["limit", "--download", "none", "--upload", "none"])
            for user in world.users:
                self._finish_sets(user)

    @staticmethod
    def _finish_sets(user):
        """Applies once more what may have been applied."""
        while user.unapplied:
            before = len(user.unapplied)
            user.apply()
            if len(user.unapplied) >= before:
                break

    # The end

    def judge(self):
        """Waits for the end of all tasks, and looks at everything once more."""
        begun = time.monotonic()
        for world in self.worlds:
            self._come_to_the_end(world, begun)
        for world in self.worlds:
            self._judge(world)
            # They were not there before the storm either.
            for listener in world.listeners:
                listener.stopping.set()
        found = self.settle(SETTLING, SETTLING, self.is_as_before)
        for world in self.worlds:
            wanted, sample = self.baseline[world.name], found[world.name]
            self.report.say(f"{world.name} at rest: {self.at_rest(sample)}; before the storm {self.at_rest(wanted)}")
            if sample is None:
                continue
            if sample.descriptors > wanted.descriptors or sample.threads > wanted.threads:
                pid = world.daemon.child.pid
                world.ledger.violation(
                    "more at rest", f"{self.at_rest(sample)}, before the storm {self.at_rest(wanted)}; more: "
                    f"{dict(self.held(pid) - self.open[world.name])}, less: "
                    f"{dict(self.open[world.name] - self.held(pid))}")
        for world in self.worlds:
            status = world.daemon.terminate(30)
            if status != 0:
                world.ledger.violation("does not end", f"exit status {status} on SIGTERM")
            answer = subprocess.run(
                ["sqlite3", os.path.join(world.daemon.state, "dld.db"), "PRAGMA integrity_check"], capture_output=True,
                text=True, check=False).stdout
            if answer != "ok\n":
                world.ledger.violation("database", answer)

    def _come_to_the_end(self, world, begun):
        rest, asked = [], 0.0
        while True:
            try:
                tasks = world.auditor.audit()
            except (OSError, Refused) as error:
                world.ledger.violation("no answer", f"at the end: {error!r}")
                return
            rest = world.auditor.open_tasks(tasks)
            if not rest and not self._undropped(world):
                self.report.say(f"{world.name}: everything came to its end {time.monotonic() - begun:.0f} s after the storm")
                return
            if time.monotonic() - begun > BOUND:
                break
            if time.monotonic() - asked > 10:
                asked = time.monotonic()
                for user in world.users:
                    user.let_everything_go_on()
            time.sleep(1)
        for task in rest:
            entry = world.ledger.by_id.get(task["id"])
            world.ledger.violation("not at its end", f"{BOUND} s after the storm: {task}; {entry and entry.told()}")
        for path in self._undropped(world):
            world.ledger.violation("dropped and lost", f"{path} still lies there")
        world.write_evidence("open", [task["id"] for task in rest[:10]])

    @staticmethod
    def _undropped(world):
        return [path for path in world.dropped if os.path.exists(path)]

    def _judge(self, world):
        ledger = world.ledger
        tasks = world.auditor.audit()
        for entries in ledger.sets:
            there = [entry for entry in entries if entry.id is not None]
            if there and len(there) < len(entries):
                ledger.violation("half a set", f"{[entry.token for entry in there]} of {[e.token for e in entries]}")
        for path, entries in list(world.dropped.items()):
            directory, name = os.path.split(path)
            if os.path.exists(os.path.join(directory, ".failed", name)):
                note = os.path.join(directory, ".failed", f"{name}.note.txt")
                text = open(note, encoding="utf-8").read() if os.path.exists(note) else "no note"
                ledger.violation("refused drop", f"{name}: {text}")
                continue
            for entry in entries:
                if entry.id is None:
                    ledger.violation("dropped and lost", f"{entry.token} of {name}")
        paths = {}
        for task in tasks.values():
            if task["state"] == "completed" and task["kind"] == "download":
                entry = world.auditor._entry_of(task)  # pylint: disable=protected-access
                if entry and not entry.shares_name:
                    if task["path"] in paths:
                        ledger.violation("two tasks, one file", f"{task['id']} and {paths[task['path']]}: {task['path']}")
                    paths[task["path"]] = task["id"]
        deadline = time.monotonic() + 30
        while world.auditor.rubbish(tasks) and time.monotonic() < deadline:
            time.sleep(1)
        for text in world.auditor.rubbish(tasks):
            ledger.violation("rubbish", text)
        for listener in world.listeners:
            self._judge_events(world, listener, tasks)
        status = world.daemon.call("daemon.status")
        faults = status["internalFaults"] + world.faults
        if faults:
            ledger.violation("internal faults", f"{faults}; see the log")
        if status["problems"]:
            ledger.violation("problems", str(status["problems"]))
        for text in world.daemon.defects():
            ledger.violation("defect", text)

    @staticmethod
    def _judge_events(world, listener, tasks):
        deadline = time.monotonic() + 10
        expected = {task["id"] for task in tasks.values()
                    if task["owner"] == listener.uid and task["state"] == "completed"}
        while expected - listener.completed and time.monotonic() < deadline:
            time.sleep(0.2)
        for number in sorted(expected - listener.completed):
            world.ledger.violation("no event", f"user {listener.uid} never heard that {number} completed")

    def conclude(self):
        """Prints the tables; returns the exit status."""
        if self.options.seconds >= 600:
            for name in sorted(set(self.commands) | self.methods):
                if not self.usage.counts[name]:
                    self.report.violation("never used", name)
        unused = [f"{name} {option}" for name, options in sorted(self.commands.items()) for option in sorted(options)
                  if not self.usage.counts[f"{name} {option}"]]
        print()
        print(f"{'daemon':8} {'users':>5} {'commands':>8} {'tasks':>7} {'removed':>7} {'checked':>8} {'GiB':>6} "
              f"{'events':>7} {'kills':>6} {'audits':>6}")
        for world in self.worlds:
            entries = world.ledger.all()
            print(f"{world.name:8} {len(world.users):5} {sum(user.commands for user in world.users):8} "
                  f"{sum(entry.id is not None for entry in entries):7} "
                  f"{sum(entry.removed_at is not None for entry in entries):7} {world.auditor.checked:8} "
                  f"{world.auditor.checked_bytes / (1 << 30):6.2f} {sum(item.events for item in world.listeners):7} "
                  f"{world.life.kills:6} {world.auditor.audits:6}")
        print()
        for line in self.sampler.table(self.span):
            print(line)
        print()
        for world in self.worlds:
            print(f"{world.name}: tasks that failed meanwhile: {dict(world.ledger.failures.most_common())}")
        print(f"weather: {self.weather.counts}")
        print(f"options that were never used: {', '.join(unused) or 'none'}")
        for text, count in self.report.notes.most_common(20):
            print(f"{count:6} {text}")
        violations = self.report.violations
        print()
        for kind, texts in violations.items():
            print(f"{len(texts):6} {kind}: {texts[0][:500]}")
        total = sum(len(texts) for texts in violations.values())
        print(f"soak: {total} violations in {self.span:.0f} s, seed {self.options.seed}", flush=True)
        return 1 if total else 0


def keep(place, target):
    """Copies what is worth looking at; the disks only where they are mounted still."""
    os.makedirs(target, exist_ok=True)
    for name in ("evidence", "samples", "struck", "steady", "chaos", "http", "https", "http2", "ftp", "ftps", "sftp"):
        source = os.path.join(place, name)
        # What an earlier run left there, a log of a database above all, does not go with this one's.
        shutil.rmtree(os.path.join(target, name), ignore_errors=True)
        if os.path.exists(source):
            subprocess.run(
                ["rsync", "-a", "--exclude", "disk", "--exclude", "disk.image", source, target] if shutil.which("rsync")
                else ["sh", "-c", 'tar -C "$0" --exclude disk --exclude disk.image -cf - "$2" | tar -C "$1" -xf -', place,
                      target, name], check=False, capture_output=True)
    with open(os.path.join(target, "files"), "w", encoding="utf-8") as file:
        subprocess.run(["find", place, "-xdev", "-ls"], stdout=file, stderr=subprocess.DEVNULL, check=False)
        for name in ("struck/disk", "steady/disk", "small/disk", "slow/disk"):
            subprocess.run(["find", os.path.join(place, name), "-ls"], stdout=file, stderr=subprocess.DEVNULL, check=False)


def arguments():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, metavar="DIR", help="where dld and dlctl are")
    parser.add_argument("--seconds", type=int, default=3600, help="of the storm; the end takes some minutes more (3600)")
    parser.add_argument("--seed", type=int, default=1, help="draws all plans (1)")
    parser.add_argument("--keep", metavar="DIR", help="where logs, databases and evidence are kept")
    options = parser.parse_args()
    options.bin = os.path.abspath(options.bin)
    for name in ("dld", "dlctl"):
        if not os.access(os.path.join(options.bin, name), os.X_OK):
            parser.error(f"there is no {name} in {options.bin}")
    return options


def main():
    """Runs it, and cleans up whatever happens."""
    options = arguments()
    if os.geteuid() != 0:
        print("left out: only root can be twenty users and mount disks", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    place = tempfile.mkdtemp(prefix="dld-soak-")
    os.chmod(place, 0o755)
    status = 1
    try:
        status = Soak(options, place).run()
    except KeyboardInterrupt:
        status = 130
    except SystemExit as end:
        status = end.code
    except Unusable as error:
        print(f"soak: {error}", file=sys.stderr)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.end_all()
        if options.keep:
            keep(place, options.keep)
        remove_disks(place)
        shutil.rmtree(place, ignore_errors=True)
        sys.stdout.flush()
        sys.stderr.flush()
    # Threads that still wait for an answer do not hold up the end.
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    main()
