"""What befalls the daemons: kills, stops, signals, disks that are full or stand still, servers that die."""

import os
import random
import signal
import threading
import time

from processes import Unusable, send


class Life:
    """When a daemon was down or frozen, so that an answer can be judged."""

    # An answer may be late by so much.
    AFTERMATH = 1.0

    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0
        self.is_down = False
        self.back_at = 0.0
        self.kills = 0

    def mark(self):
        """Returns what `was_disturbed` wants to know later."""
        # A daemon that is down now is another one than answers later.
        return self.count - int(self.is_down), time.monotonic()

    def was_disturbed(self, mark):
        """Whether the daemon was down at any moment since a mark."""
        return self.is_down or self.count != mark[0]

    def is_troubled(self):
        """Whether it was down a moment ago."""
        return self.is_down or time.monotonic() - self.back_at < self.AFTERMATH

    def goes(self):
        """Notes that the daemon is about to end."""
        with self.lock:
            self.is_down = True
            self.count += 1

    def is_back(self):
        """Notes that it answers again."""
        self.back_at = time.monotonic()
        self.is_down = False


class Killer(threading.Thread):
    """Ends one daemon every half a minute, and starts it again."""

    def __init__(self, world, seed, report):
        super().__init__(name="killer")
        self.world, self.report = world, report
        self.lot = random.Random(seed)
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(self.lot.uniform(20, 40)):
            self.strike()

    def strike(self):
        """Ends it in one of several ways."""
        world, life = self.world, self.world.life
        way = self.lot.choices(["kill", "terminate", "shutdown", "burst"], [75, 10, 7, 8])[0]
        with world.steering:
            for _ in range(3 if way == "burst" else 1):
                life.goes()
                life.kills += 1
                if way in ("kill", "burst"):
                    self._note_faults()
                    world.daemon.child.kill()
                else:
                    self._end_in_order(way)
                time.sleep(self.lot.choice([0, 0, 0.2, 1, 2]))
                if not world.start():
                    return
                if way == "burst":
                    time.sleep(self.lot.uniform(0, 0.3))

    def _note_faults(self):
        try:
            self.world.faults += self.world.daemon.call("daemon.status", None, 2).get("internalFaults", 0)
        except OSError:
            pass

    def _end_in_order(self, way):
        world = self.world
        self._note_faults()
        if way == "shutdown":
            answer = world.dlctl.run(0, ["shutdown"])
            world.usage.note("daemon.shutdown")
            if answer.status != 0:
                world.ledger.violation("unexpected answer", str(answer))
        begun = time.monotonic()
        status = world.daemon.terminate(30)
        if status != 0:
            world.ledger.violation("does not end", f"{way}: exit status {status} after {time.monotonic() - begun:.0f} s")


class Weather(threading.Thread):
    """Disks, servers, signals and configurations, for all daemons."""

    def __init__(self, worlds, disks, farm, seed, report):
        super().__init__(name="weather")
        self.worlds, self.disks, self.farm, self.report = worlds, disks, farm, report
        self.lot = random.Random(seed)
        self.stopping = threading.Event()
        self.counts = {}
        self.events = {
            self.full_disk: 5, self.frozen_disk: 4, self.slow_disk: 4, self.dead_server: 5, self.still_server: 3,
            self.new_workers: 2, self.hang_up: 3, self.reload: 4, self.still_daemon: 3, self.rates: 4,
        }

    def run(self):
        while not self.stopping.wait(self.lot.uniform(2, 9)):
            event = self.lot.choices(list(self.events), list(self.events.values()))[0]
            name = event.__name__
            self.counts[name] = self.counts.get(name, 0) + 1
            try:
                event()
            except (Unusable, OSError) as error:
                self.report.violation("the soak itself", f"{name}: {error}")

    def _pause(self, least, most):
        self.stopping.wait(self.lot.uniform(least, most))

    def full_disk(self):
        """Fills the small disk, and empties it again."""
        disk = self.disks["small"]
        filler = os.path.join(disk.path, "filler")
        try:
            try:
                with open(filler, "wb", buffering=0) as file:
                    block = bytes(1 << 20)
                    while True:
                        file.write(block)
            except OSError:
                pass
            self._pause(4, 15)
        finally:
            os.unlink(filler)

    def frozen_disk(self):
        """Has the slow disk stand still."""
        self.disks["slow"].stand_still(self.lot.uniform(0.3, 4))

    def slow_disk(self):
        """Has the slow disk stand still for most of the time."""
        end = time.monotonic() + self.lot.uniform(3, 10)
        while time.monotonic() < end and not self.stopping.is_set():
            self.disks["slow"].stand_still(self.lot.uniform(0.1, 0.6))
            self._pause(0.05, 0.2)

    def dead_server(self):
        """Kills a server for a while."""
        server = self.farm[self.lot.choice(list(self.farm.servers))]
        server.kill()
        self._pause(0, 3)
        server.start()

    def still_server(self):
        """Stops a server for a while."""
        # A session of vsftpd whose processes were stopped sends its file, and then answers no QUIT any more.
        names = [name for name in self.farm.servers if name not in ("ftp", "ftps")]
        self.farm[self.lot.choice(names)].stand_still(self.lot.uniform(0.2, 4))

    def new_workers(self):
        """Has nginx begin anew with its configuration."""
        self.farm[self.lot.choice(["http", "https", "http2"])].reload()

    def hang_up(self):
        """SIGHUP: the configuration is read again."""
        world = self.lot.choice(self.worlds)
        with world.steering:
            if world.daemon.child.poll() is None:
                send(world.daemon.child.pid, signal.SIGHUP)

    def reload(self):
        """Another configuration, by the command."""
        world = self.lot.choice(self.worlds)
        with world.steering:
            world.configure(self.lot)
            answer = world.dlctl.run(0, ["reload"])
            world.usage.note("daemon.reload")
            if answer.status != 0:
                world.ledger.violation("unexpected answer", str(answer))

    def still_daemon(self):
        """SIGSTOP, and SIGCONT some time later."""
        world = self.worlds[0] if self.lot.random() < 0.8 else self.lot.choice(self.worlds)
        with world.steering:
            if world.daemon.child.poll() is None:
                world.daemon.stand_still(self.lot.uniform(0.3, 5))

    def rates(self):
        """Sets rates for all tasks together, and takes them back."""
        world = self.lot.choice(self.worlds)
        self._limit(world, self.lot.choice([
            ["--download", "4M"], ["--upload", "2M"], ["--download", "none"], ["--download", "6M", "--upload", "config"]]))
        self._pause(2, 8)
        self._limit(world, ["--download", "config", "--upload", "config"])

    @staticmethod
    def _limit(world, words):
        with world.steering:
            answer = world.dlctl.run(0, ["limit", *words])
            world.usage.note("daemon.limits")
            if answer.status != 0:
                world.ledger.violation("unexpected answer", str(answer))


def calm(disks, farm):
    """Ends what a storm that was broken off may have left behind."""
    filler = os.path.join(disks["small"].path, "filler")
    if os.path.exists(filler):
        os.unlink(filler)
    for server in farm.servers.values():
        if server.child is None or server.child.poll() is not None:
            server.kill()
            server.start()
