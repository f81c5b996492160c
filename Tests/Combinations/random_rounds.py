"""Random rounds: a few tasks of all kinds under a random configuration, and a storm of commands, kills and stops.

A round is planned whole from its seed before anything runs, so that it can be repeated. After the storm what was paused
is resumed, and every task has to complete with the right bytes, but for those that were cancelled. In half of the
rounds all limits are lifted before; in the others they stay, and are larger: a change of a rate would wake up a
transfer that was forgotten.
"""

import dataclasses
import os
import random
import subprocess
import time

import processes
from daemon import Daemon, Refused
from disk import FrozenDisk
from matrix import Outcome
from observers import Observers
from processes import Unusable
from servers import Nginx

MIB = 1 << 20
SIZES = [0, 1, 1000, 65_536, 300_001, MIB, 4 * MIB, 4 * MIB + 1, 5 * MIB + 4321, 8 * MIB, 13_000_000, 20 * MIB]
HTTP = ["http", "https", "http2"]
FILE_SERVERS = ["ftp", "ftps", "sftp"]
# Seconds after the storm within which everything has to be done, beyond what the rates ask for: retries, and a busy
# machine.
PATIENCE = 6
# Seconds without any progress after which something is wrong, whatever the rates.
STANDSTILL = 4
# Seconds that it is watched on before it is taken for dead.
MORE_PATIENCE = 10


@dataclasses.dataclass
class Step:
    """One event of the storm: what happens how many seconds after its beginning, with which values."""

    at: float
    what: str
    values: dict

    def __str__(self):
        return f"{self.at:.2f} s {self.what} {self.values}"


@dataclasses.dataclass
class Plan:
    """A round before it runs."""

    settings: dict
    tasks: list
    steps: list
    # Numbers of tasks that are retried after the storm if they are cancelled by then.
    retried: set
    # Whether all limits are lifted after the storm.
    lifts: bool
    # Whether the downloads go to a disk that can be frozen.
    freezes: bool


class Planner:
    """Draws a plan by lot."""

    def __init__(self, seed, farm, content):
        self.random = random.Random(seed)
        self.farm, self.content = farm, content
        self.lifts = self.random.random() < 0.5
        self.freezes = self.random.random() < 0.15 and os.geteuid() == 0
        # In many rounds all tasks are of one kind.
        self.protocols = [name for name in HTTP * 3 + FILE_SERVERS if name in farm]
        if self.random.random() < 0.4:
            self.protocols = [self.random.choice(self.protocols + ["http2"] * 4)]
        # Bytes a second by which the tasks outlast most of the storm.
        self.steady = {}

    def plan(self):
        """Returns the whole plan."""
        lot = self.random
        tasks = [self._task(number) for number in range(lot.randint(3, 10))]
        span = lot.uniform(1.5, 4)
        for key, is_upload in (("download-rate", False), ("upload-rate", True)):
            total = sum(fact["size"] for fact in tasks if fact["upload"] == is_upload)
            self.steady[key] = max(100_000, round(total / span))
        settings = self._settings()
        times = sorted(lot.uniform(0, span) for _ in range(lot.randint(3, 12)))
        steps = [self._step(at, tasks) for at in times]
        retried = {number for number in range(len(tasks)) if lot.random() < 0.5}
        return Plan(settings, tasks, steps, retried, self.lifts, self.freezes)

    def _rate(self):
        return round(10 ** self.random.uniform(5 if self.lifts else 6.2, 7.2))

    def _maybe_rate(self):
        return self._rate() if self.random.random() < 0.4 else None

    def _settings(self):
        lot = self.random
        limits = {
            "active-tasks": lot.choice([1, 2, 3, 8, 16]), "connections-per-host": lot.choice([1, 2, 4, 16]),
            "connections-per-task": lot.choice([1, 2, 4, 16, "auto"])}
        for key, steady in self.steady.items():
            if lot.random() < 0.85:
                limits[key] = round(steady * lot.uniform(0.7, 2))
        if lot.random() < 0.2:
            limits["active-tasks-per-owner"] = lot.choice([1, 2, 4])
        if lot.random() < 0.2:
            limits["bytes-per-owner"] = "2G"
        hosts = {}
        for name in HTTP + FILE_SERVERS:
            if name not in self.farm:
                continue
            host = {}
            if name == "http2":
                host["http-version"] = lot.choice(["2", "2", "2", "auto"])
            if lot.random() < 0.25:
                host["download-rate"] = self._rate()
            if lot.random() < 0.15:
                host["upload-rate"] = self._rate()
            if lot.random() < 0.2:
                host["connections"] = lot.choice([1, 2, 5])
            if lot.random() < 0.15:
                host["requests-per-second"] = lot.choice([50, 200])
            if host:
                address = lot.choice(["127.0.0.1", "localhost"]) if name not in HTTP else "127.0.0.1"
                hosts[f"{address}:{self.farm[name].port}"] = host
                if name == "http2":
                    hosts[f"localhost:{self.farm[name].port}"] = dict(host)
        return {
            "limits": limits, "disk": {"min-free": 0}, "tls": {"ca-file": self.farm.certificate},
            "retry": {"attempts": 50, "base-delay": "100ms", "max-delay": "1s"},
            **({"hosts": hosts} if hosts else {})}

    def _size(self):
        lot = self.random
        largest = len(SIZES) if self.lifts else SIZES.index(8 * MIB) + 1
        return lot.choice(SIZES[5:largest]) if lot.random() < 0.75 else lot.choice(SIZES[:largest])

    def _task(self, number):
        lot = self.random
        size = self._size()
        protocol = lot.choice(self.protocols)
        server = self.farm[protocol]
        output = f"task-{number}"
        task = {"batch": f"{number}"}
        # The values that the round looks at, apart from what is sent.
        facts = {"size": size, "protocol": protocol, "upload": lot.random() < 0.25, "output": output}
        if facts["upload"]:
            task.update(kind="upload", url=server.upload_url("@ROUND@-" + output), file=self.content.path(
                self.content.name(size)))
        else:
            task.update(url=server.url(self.content.name(size)), output=output)
            if lot.random() < 0.6:
                task["connections"] = lot.choice([1, 2, 3, 4, 8, 16, "auto"])
            if lot.random() < 0.5:
                task["checksum"] = f"sha256:{self.content.digest(size)}"
            if lot.random() < 0.4:
                task["mirrors"] = [self._mirror(size) for _ in range(lot.randint(1, 2))]
        if protocol in HTTP and lot.random() < 0.25:
            proxy = lot.choice([name for name in ("socks", "proxy") if name in self.farm])
            task["proxy"] = self.farm[proxy].proxy
        if lot.random() < 0.5:
            task["limit"] = self._rate()
        if lot.random() < 0.2:
            task["priority"] = lot.choice(["low", "high", "now"])
        if lot.random() < 0.1:
            task["paused"] = True
        return {"task": task, **facts}

    def _mirror(self, size):
        lot = self.random
        server = self.farm[lot.choice([name for name in HTTP if name in self.farm])]
        draw = lot.random()
        if draw < 0.1:
            return server.url("missing")
        if draw < 0.2:
            # Nobody listens on port 9 (discard).
            return f"http://127.0.0.1:9/{self.content.name(size)}"
        return server.url(self.content.name(size), host=lot.choice(["127.0.0.1", "localhost"]), slow=lot.random() < 0.4)

    def _step(self, at, tasks):
        lot = self.random
        number = lot.randrange(len(tasks))
        what = lot.choices(
            ["pause", "resume", "pause-all", "resume-all", "limit", "connections", "priority", "url", "rates", "reload",
             "kill", "stop", "cancel", "retry", "server", "server-reload", "move", "flurry",
             "server-stop", "freeze"],
            [4, 4, 1, 2, 4, 2, 1, 2, 3, 2, 2, 2, 1, 1, 2, 1, 1, 3, 2, 8 if self.freezes else 0])[0]
        values = {"task": number}
        if what in ("pause-all", "resume-all"):
            values = {}
        elif what == "limit":
            values["limit"] = self._maybe_rate()
        elif what == "connections":
            if tasks[number]["upload"]:
                return Step(at, "resume", values)
            values["connections"] = lot.choice([1, 2, 4, 16, "auto", None])
        elif what == "priority":
            values["priority"] = lot.choice(["low", "normal", "high", "now"])
        elif what == "url":
            fact = tasks[number]
            if fact["upload"]:
                return Step(at, "resume", values)
            name = self.content.name(fact["size"]) + lot.choice(["", ".link", ".copy"])
            values["url"] = self.farm[fact["protocol"]].url(name)
        elif what == "rates":
            values = {"download": lot.choice([self._rate() * 3, self._rate(), 0]),
                      "upload": lot.choice([self._rate() * 3, self._rate(), 0])}
            del values[lot.choice(["download", "upload"])]
        elif what == "reload":
            values = {"settings": self._settings()}
        elif what == "kill":
            values = {"seconds": lot.choice([0, 0, 0.1, 0.5])}
        elif what == "stop":
            values = {"seconds": lot.choice([0.1, 0.3, 1, 1.5, 3])}
        elif what == "freeze":
            values = {"seconds": lot.choice([0.1, 0.5, 1.5])}
        elif what == "server-stop":
            # A session of vsftpd whose processes were stopped sends its file, and then answers no QUIT any more.
            names = [name for name in self.farm.servers if name not in ("ftp", "ftps")]
            values = {"server": lot.choice(names), "seconds": lot.choice([0.1, 0.5, 1.2, 2.5])}
        elif what in ("server", "server-reload"):
            values = {"server": lot.choice(list(self.farm.servers)), "seconds": lot.choice([0, 0, 0.2, 0.5])}
            if what == "server-reload":
                values = {"server": lot.choice([name for name in HTTP if name in self.farm])}
        elif what == "move":
            values["first"] = lot.random() < 0.5
        elif what == "flurry":
            values = {"steps": self._flurry(tasks), "gap": lot.choice([0, 0.005, 0.02, 0.05])}
        return Step(at, what, values)


    def _flurry(self, tasks):
        """Returns steps that follow one another at once."""
        lot = self.random
        chosen = lot.sample(range(len(tasks)), lot.randint(1, len(tasks)))
        kinds = lot.choice([
            ["pause", "resume"], ["limit"], ["limit", "rates"], ["connections"], ["pause", "limit", "resume"]])
        steps = []
        for turn in range(lot.randint(3, 20)):
            number = chosen[turn // len(kinds) % len(chosen)]
            what = kinds[turn % len(kinds)]
            values = {"task": number}
            if what == "limit":
                values["limit"] = self._maybe_rate()
            elif what == "connections":
                values["connections"] = lot.choice([1, 2, 4, 16, "auto"])
            elif what == "rates":
                values = {"download": lot.choice([self._rate() * 3, 0])}
            steps.append(Step(0, what, values))
        return steps


class Rounds:
    """Runs rounds against a farm of servers."""

    def __init__(self, programs, place, farm, content):
        self.programs, self.place, self.farm, self.content = programs, place, farm, content

    def run(self, seed, is_verbose=False):
        """Plans and runs the round of a seed, and returns its outcome."""
        begun = time.monotonic()
        place = os.path.join(self.place, f"round-{seed}")
        os.makedirs(place)
        plan = Planner(seed, self.farm, self.content).plan()
        home = self.farm["sftp"].home if "sftp" in self.farm else None
        disk = FrozenDisk(place, "500M") if plan.freezes else None
        daemon = Daemon(self.programs, place, plan.settings, home, disk and disk.path)
        performance = Performance(daemon, disk, self.farm, self.content, plan, seed, is_verbose)
        observers = performance.observers
        daemon.more_settings = {"notify": observers.notify}
        daemon.configure(plan.settings)
        try:
            daemon.start()
            observers.start()
            performance.run()
        except (Unusable, Refused, OSError) as error:
            performance.faults.append(f"{type(error).__name__}: {error}")
            performance.evidence = performance.evidence or daemon.log_text()
        finally:
            observers.end()
            if daemon.child is not None:
                daemon.child.kill()
            for server in self.farm.servers.values():
                if server.child is None or server.child.poll() is not None:
                    server.kill()
                    server.start()
            if disk is not None:
                disk.remove()
            subprocess.run(["rm", "-rf", place], check=False)
        for name in HTTP:
            if name in self.farm:
                text = self.farm[name].accesses()
                performance.evidence = performance.evidence and f"{performance.evidence}\naccesses of {name}:\n{text}"
        outcome = Outcome(f"round seed {seed}", performance.faults, evidence=performance.evidence)
        outcome.summary = (
            f"{len(plan.tasks)} tasks, {len(plan.steps)} events ({performance.kills} kills), "
            f"{time.monotonic() - begun:.1f} s, the end {performance.end:.1f} s after the storm"
            f"{'' if plan.lifts else ', limits stay'}; {observers.summary}")
        return outcome


class Performance:
    """One round as it runs."""

    def __init__(self, daemon, disk, farm, content, plan, seed, is_verbose):
        self.daemon, self.disk, self.farm, self.content, self.plan, self.seed = daemon, disk, farm, content, plan, seed
        self.is_verbose = is_verbose
        self.observers = Observers(daemon, seed)
        self.numbers = []
        self.faults = []
        self.evidence = ""
        self.kills = 0
        self.end = 0.0
        self.most_memory = 0
        # What counts for the tasks and the hosts at this moment.
        self.limits = {}
        self.settings = plan.settings

    def _tell(self, text):
        if self.is_verbose:
            print(f"    {time.time() % 1000:.2f} {text}", flush=True)

    def run(self):
        """Adds the tasks, raises the storm, lifts everything and judges."""
        self._tell(f"settings {self.plan.settings}")
        for fact in self.plan.tasks:
            task = dict(fact["task"], url=fact["task"]["url"].replace("@ROUND@", f"round-{self.seed}"))
            self.numbers.append(self.daemon.add(task))
            self.limits[self.numbers[-1]] = task.get("limit")
            self._tell(f"task {self.numbers[-1]} {task}")
        begun = time.monotonic()
        for step in self.plan.steps:
            time.sleep(max(0, begun + step.at - time.monotonic()))
            self._tell(step)
            self._perform(step)
            self._tell(f"observers: {self.observers.disturb()}")
            self.most_memory = max(self.most_memory, self.daemon.memory())
        if self.plan.lifts:
            self._lift()
        else:
            self._go_on()
        self._wait()
        self._judge()

    def _try(self, call):
        """Makes a call that the daemon may refuse, as long as it is not at a loss itself."""
        try:
            call()
        except Refused as error:
            if error.code == -32603 or '"internal"' in str(error):
                self.faults.append(f"the daemon answered: {error}")
            self._tell(f"refused: {error}")

    def _perform(self, step):
        daemon, values = self.daemon, step.values
        number = self.numbers[values["task"]] if "task" in values else None
        what = step.what
        if what == "pause":
            self._try(lambda: self._pause(number))
        elif what in ("resume", "cancel", "retry"):
            self._try(lambda: daemon.select(what, [number]))
        elif what in ("pause-all", "resume-all"):
            self._try(lambda: daemon.select(what.removesuffix("-all")))
        elif what in ("limit", "connections", "priority", "url"):
            self._try(lambda: daemon.call("task.update", {"id": number, "changes": {what: values[what]}}))
            if what == "limit":
                self.limits[number] = values["limit"]
        elif what == "rates":
            self._try(lambda: daemon.call("daemon.limits", values))
        elif what == "reload":
            self.settings = values["settings"]
            daemon.configure(values["settings"])
            self._try(lambda: daemon.call("daemon.reload"))
        elif what == "kill":
            self.kills += 1
            daemon.kill()
            time.sleep(values["seconds"])
            daemon.start()
        elif what == "stop":
            daemon.stand_still(values["seconds"])
        elif what == "server":
            server = self.farm[values["server"]]
            server.kill()
            time.sleep(values["seconds"])
            server.start()
        elif what == "server-stop":
            self.farm[values["server"]].stand_still(values["seconds"])
        elif what == "freeze":
            self.disk.stand_still(values["seconds"])
        elif what == "server-reload":
            self.farm[values["server"]].reload()
        elif what == "move":
            place = {"first": True} if values["first"] else {"last": True}
            self._try(lambda: daemon.call("task.move", {"id": number, **place}))
        elif what == "flurry":
            for one in values["steps"]:
                self._perform(one)
                time.sleep(values["gap"])

    def _pause(self, number):
        """Pauses a task, and looks that it stands still."""
        self.daemon.select("pause", [number])
        before = self.daemon.task(number)
        after = self.daemon.task(number)
        if before["state"] == after["state"] == "paused":
            for field in ("bytesDone", "bytesFetched"):
                if before[field] != after[field]:
                    self.faults.append(
                        f"{field} of task {number} grew from {before[field]} to {after[field]} during a pause")

    def _go_on(self):
        """Retries what the plan says of what was cancelled, and resumes what was paused."""
        tasks = self.daemon.tasks()
        for index, number in enumerate(self.numbers):
            if tasks[number]["state"] == "cancelled" and index in self.plan.retried:
                self._try(lambda number=number: self.daemon.call("task.retry", {"ids": [number]}))
        if any(task["state"] == "paused" for task in tasks.values()):
            self._try(lambda: self.daemon.select("resume", [
                number for number, task in tasks.items() if task["state"] == "paused"]))

    def _least_time(self):
        """Returns the seconds that the rates in force ask for at most, as if each waited for all others."""
        daemon = self.daemon
        tasks = daemon.tasks()
        daemon_rates = daemon.call("daemon.limits")
        span = 0
        for index, number in enumerate(self.numbers):
            fact = self.plan.tasks[index]
            direction = "upload" if fact["upload"] else "download"
            rates = [daemon_rates[direction], self.limits.get(number)]
            rates += [host.get(f"{direction}-rate") for host in self.settings.get("hosts", {}).values()]
            rates = [rate for rate in rates if rate]
            if rates and tasks[number]["state"] not in ("completed", "cancelled"):
                span += fact["size"] / min(rates)
        return span

    def _slow_time(self):
        """Returns the seconds that the largest file takes from a slow mirror: a task may stay there to its end."""
        return max((
            fact["size"] / Nginx.SLOW_RATE for fact in self.plan.tasks
            if any("/slow/" in mirror for mirror in fact["task"].get("mirrors", []))), default=0)

    def _lift(self):
        """Takes all rates back, and lets everything go on."""
        daemon = self.daemon
        daemon.call("daemon.limits", {"download": 0, "upload": 0})
        settings = {key: value for key, value in self.plan.settings.items() if key != "hosts"}
        hosts = {
            name: {"http-version": host["http-version"]}
            for name, host in self.plan.settings.get("hosts", {}).items() if "http-version" in host}
        if hosts:
            settings["hosts"] = hosts
        settings["limits"] = {"active-tasks": 16}
        daemon.configure(settings)
        daemon.call("daemon.reload")
        tasks = daemon.tasks()
        for index, number in enumerate(self.numbers):
            if tasks[number]["state"] not in ("completed", "cancelled"):
                self._try(lambda number=number: daemon.call(
                    "task.update", {"id": number, "changes": {"limit": None}}))
            if tasks[number]["state"] == "cancelled" and index in self.plan.retried:
                self._try(lambda number=number: daemon.call("task.retry", {"ids": [number]}))
                self._try(lambda number=number: daemon.call(
                    "task.update", {"id": number, "changes": {"limit": None}}))
        daemon.select("resume")
        # Those that were paused by themselves, before all were.
        paused = [number for number, task in daemon.tasks().items() if task["state"] == "paused"]
        if paused:
            daemon.select("resume", paused)

    def _wait(self):
        begun = time.monotonic()
        patience = PATIENCE + self._slow_time() + (0 if self.plan.lifts else 1.2 * self._least_time())
        is_late = False
        last, moved = None, begun
        while True:
            tasks = self.daemon.tasks()
            signs = [(task["state"], task["phase"], task["bytesDone"], task["bytesFetched"]) for task in tasks.values()]
            if signs != last:
                last, moved = signs, time.monotonic()
            self.most_memory = max(self.most_memory, self.daemon.memory())
            open_ones = [
                number for number in self.numbers if tasks[number]["state"] in ("queued", "active", "waiting")]
            if not open_ones:
                break
            now = time.monotonic()
            if not is_late and (now - begun > patience or now - moved > STANDSTILL):
                is_late = True
                if now - moved > STANDSTILL:
                    self.faults.append(f"nothing moved for {STANDSTILL} s, {now - begun:.1f} s after the storm")
                    patience = now - begun
                self.evidence = self.daemon.evidence(open_ones)
                for number in open_ones:
                    task = tasks[number]
                    self.faults.append(
                        f"task {number} is {task['state']} ({task['reason']}, {task['phase']}) {patience:.1f} s after "
                        f"the storm, with {task['bytesDone']} of {task['bytesTotal']} bytes; "
                        f"{self.plan.tasks[self.numbers.index(number)]['task']}")
            if time.monotonic() - begun > patience + MORE_PATIENCE:
                for number in open_ones:
                    task = tasks[number]
                    self.faults.append(
                        f"task {number} is still {task['state']} {MORE_PATIENCE} s later, with {task['bytesDone']} "
                        "bytes")
                break
            time.sleep(0.03)
        self.end = time.monotonic() - begun

    def _judge(self):
        daemon = self.daemon
        tasks = daemon.tasks()
        cancelled = set()
        for index, number in enumerate(self.numbers):
            task = tasks[number]
            self._tell(
                f"task {number} {task['state']} at {(task['finishedAt'] or 0) % 1_000_000 / 1000:.2f}, "
                f"{task['attempts']} attempts, fetched {task['bytesFetched']} of {task['bytesTotal']}")
            if task["state"] == "cancelled":
                cancelled.add(number)
                if not any(s.what == "cancel" and s.values["task"] == index for s in self.plan.steps):
                    self.faults.append(f"task {number} is cancelled, and nobody did it")
            elif task["state"] == "completed":
                self._compare(index, task)
            elif task["state"] in ("failed", "paused"):
                self.faults.append(
                    f"task {number} is {task['state']} ({task['reason']}, {task['error']}); "
                    f"{self.plan.tasks[index]['task']}")
        if not self.faults:
            self._look_for_rubbish(tasks, cancelled)
        self.faults += self.observers.judge()
        if daemon.child.poll() is None and daemon.faults():
            self.faults.append(f"internalFaults is {daemon.faults()}")
        self.faults += daemon.defects()
        if self.most_memory > 200 << 20:
            self.faults.append(f"the daemon had {self.most_memory >> 20} MiB of anonymous memory")
        if self.faults:
            self.evidence = self.evidence or daemon.evidence(self.numbers)
            self.evidence += "\n" + self.observers.evidence()
        else:
            status = daemon.terminate()
            if status != 0:
                self.faults.append(f"the daemon ended with {status} on SIGTERM")
                self.evidence = daemon.log_text()
        self._clean()

    def _stored(self, index):
        fact = self.plan.tasks[index]
        if fact["upload"]:
            return os.path.join(self.farm.upload_directory(fact["protocol"]), f"round-{self.seed}-{fact['output']}")
        return os.path.join(self.daemon.downloads, fact["output"])

    def _compare(self, index, task):
        fact = self.plan.tasks[index]
        difference = self.content.difference(fact["size"], self._stored(index))
        if difference:
            self.faults.append(f"task {task['id']}: {difference}; {fact['task']}")
        if task["bytesDone"] != fact["size"]:
            self.faults.append(f"task {task['id']} says {task['bytesDone']} bytes in place of {fact['size']}")
        if not fact["upload"] and "checksum" in fact["task"] and not task["verified"]:
            self.faults.append(f"task {task['id']} is not verified; {fact['task']}")

    def _rubbish(self, cancelled):
        wanted = {os.path.basename(self._stored(i)) for i, fact in enumerate(self.plan.tasks) if not fact["upload"]}
        found = []
        for name in os.listdir(self.daemon.downloads):
            if name in wanted or name == "lost+found":
                continue
            if not any(name.endswith(f"-{number}.part") for number in cancelled):
                found.append(name)
        for directory in {self.farm.uploads, self.farm.ftp_uploads}:
            for name in os.listdir(directory):
                if f"round-{self.seed}-" in name and ".dld-" in name:
                    if not any(name.endswith(f"-{number}.tmp") for number in cancelled):
                        found.append(name)
        return found

    def _look_for_rubbish(self, tasks, cancelled):
        """What is left beside the files; a server may take a moment to do what it was told."""
        deadline = time.monotonic() + 2
        while self._rubbish(cancelled) and time.monotonic() < deadline:
            time.sleep(0.05)
        for name in self._rubbish(cancelled):
            self.faults.append(f"{name} is left over")

    def _clean(self):
        """Removes what the round put on the servers."""
        for directory in {self.farm.uploads, self.farm.ftp_uploads}:
            for name in os.listdir(directory):
                if f"round-{self.seed}-" in name:
                    processes.run(["rm", "-rf", os.path.join(directory, name)])
