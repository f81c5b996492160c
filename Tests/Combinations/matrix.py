"""The matrix: every reason to pause a transfer, with every protocol, number of connections and kind of source.

A case is one task. It has to complete with the right bytes, in the time that its rate implies, without fetching much
twice, and without an internal fault.
"""

import dataclasses
import itertools
import os
import random
import subprocess
import time

from daemon import Daemon, Refused
from disk import FrozenDisk
from processes import Unusable

MIB = 1 << 20
# "company" is a task's rate while tasks without one fetch from the same server.
REASONS = ["limit", "daemon-rate", "host-rate", "pause", "disk", "stop", "company"]
HTTP = ["http", "https", "http2", "socks", "connect", "forward"]
FILE_SERVERS = ["ftp", "ftps", "sftp"]
UPLOADS = ["put-http", "put-https", "put-http2", "put-ftp", "put-sftp"]
# Sizes with rates: of those in the first list every piece is whole, of those in the second the last one is cut short.
EVEN = [(5 * MIB, 4 * MIB), (30 * MIB, 20 * MIB)]
UNEVEN = [(13_000_000, 5 * MIB), (5 * MIB + 4321, 4 * MIB), (30 * MIB - 777, 20 * MIB)]
# Servers that a protocol needs.
NEEDS = {
    "http": ["http"], "https": ["https"], "http2": ["http2"], "socks": ["http", "socks"], "connect": ["https", "proxy"],
    "forward": ["http", "proxy"], "ftp": ["ftp"], "ftps": ["ftps"], "sftp": ["sftp"], "put-http": ["http"],
    "put-https": ["https"], "put-http2": ["http2"], "put-ftp": ["ftp"], "put-sftp": ["sftp"],
}
# Seconds that a pause, a stop and a frozen disk last.
HOLD = {"pause": 0.5, "stop": 0.7, "disk": 0.7}


@dataclasses.dataclass(frozen=True)
class Case:
    """One cell of the matrix."""

    reason: str
    protocol: str
    connections: str
    # With a checksum, and the same file by a second name of the server (on a mirror that is slower, where uneven).
    shared: bool
    # The last piece is cut short.
    uneven: bool

    @property
    def name(self):
        """The case's name, as `--case` takes it."""
        return "/".join([
            self.reason, self.protocol, self.connections, "mirror" if self.shared else "alone",
            "uneven" if self.uneven else "even"])

    @property
    def is_upload(self):
        """Whether the task sends its file."""
        return self.protocol.startswith("put-")

    @property
    def is_http(self):
        """Whether the task fetches its file by HTTP."""
        return self.protocol in HTTP

    @property
    def load(self):
        """Its size in bytes and its rate in bytes a second, always the same for the same case."""
        return random.Random(self.name).choice(UNEVEN if self.uneven else EVEN)


def every_case():
    """Returns all cases that mean something, in a fixed order.

    A file server gives one file over one connection, and an upload goes over one, to one place. A frozen disk holds
    back no reading, and so no upload.
    """
    cases = []
    for reason, protocol, uneven in itertools.product(REASONS, HTTP + FILE_SERVERS + UPLOADS, [False, True]):
        if protocol in HTTP:
            kinds = itertools.product(["1", "2", "4", "16", "auto"], [False, True])
        elif protocol in FILE_SERVERS:
            kinds = itertools.product(["1", "auto"], [False, True])
        else:
            kinds = [("1", False)] if reason not in ("disk", "company") else []
        cases += [Case(reason, protocol, connections, shared, uneven) for connections, shared in kinds]
    return cases


@dataclasses.dataclass
class Outcome:
    """What became of a case or a round."""

    name: str
    # Sentences; empty where all is well.
    faults: list
    summary: str = ""
    # Nothing is wrong but that it took somewhat too long, or not long enough.
    is_only_timing: bool = False
    evidence: str = ""


class Matrix:
    """Runs cases against a farm of servers."""

    def __init__(self, programs, place, farm, content, slack=0.3):
        # Seconds that a case may take beyond its time and a tenth of it.
        self.slack = slack
        self.programs, self.place, self.farm, self.content = programs, place, farm, content
        # Seconds that a small task takes without any rate, by protocol.
        self.set_up = {}
        self._number = itertools.count(1)

    def why_not(self, case):
        """Returns why a case cannot be run here, or None."""
        for server in NEEDS[case.protocol]:
            if server not in self.farm:
                return f"{server}: {self.farm.missing[server]}"
        if case.reason == "disk" and os.geteuid() != 0:
            return "only root can freeze a disk"
        return None

    def _task(self, case, size, output, source):
        server = self.farm[NEEDS[case.protocol][0]]
        if case.is_upload:
            return {"kind": "upload", "file": source, "url": server.upload_url(output)}
        name = self.content.name(size)
        task = {"url": server.url(name), "output": output}
        if case.connections != "1" or case.is_http:
            task["connections"] = "auto" if case.connections == "auto" else int(case.connections)
        if case.shared:
            task["checksum"] = f"sha256:{self.content.digest(size)}"
            slow = {"slow": True} if case.is_http and case.uneven else {}
            task["mirrors"] = [server.url(name, host="localhost", **slow)]
        if case.protocol == "socks":
            task["proxy"] = self.farm["socks"].proxy
        if case.protocol in ("connect", "forward"):
            task["proxy"] = self.farm["proxy"].proxy
        return task

    def _settings(self, case, rate):
        hosts = {}
        names = [f"{host}:{self.farm[NEEDS[case.protocol][0]].port}" for host in ("127.0.0.1", "localhost")]
        if case.protocol in ("http2", "put-http2"):
            for name in names:
                hosts.setdefault(name, {})["http-version"] = "2"
        if case.reason == "host-rate":
            key = "upload-rate" if case.is_upload else "download-rate"
            for name in names:
                hosts.setdefault(name, {})[key] = rate
        return {
            "disk": {"min-free": 0}, "tls": {"ca-file": self.farm.certificate},
            "retry": {"base-delay": "100ms", "max-delay": "1s"}, **({"hosts": hosts} if hosts else {})}

    def measure_set_up(self):
        """Measures what a small task takes by each protocol without a rate."""
        for protocol in NEEDS:
            case = Case("none", protocol, "1", False, False)
            if self.why_not(case):
                continue
            spans = []
            place = os.path.join(self.place, f"set-up-{protocol}")
            os.makedirs(place)
            daemon = self._daemon(case, place, 0)
            try:
                daemon.start()
                source = self.content.path(self.content.name(1000))
                for turn in range(3):
                    number = daemon.add(self._task(case, 1000, f"set-up-{protocol}-{turn}", source))
                    task = self._ended(daemon, number, time.monotonic() + 20)
                    if task["state"] != "completed":
                        raise Unusable(f"{protocol}: a small task does not complete: {task}")
                    spans.append((task["finishedAt"] - task["createdAt"]) / 1000)
            finally:
                daemon.terminate()
            self.set_up[protocol] = min(0.5, sorted(spans)[1])

    def _daemon(self, case, place, rate, downloads=None):
        home = self.farm["sftp"].home if "sftp" in NEEDS[case.protocol] else None
        return Daemon(self.programs, place, self._settings(case, rate), home, downloads)

    @staticmethod
    def _ended(daemon, number, deadline):
        while True:
            task = daemon.task(number)
            if task["state"] in ("completed", "failed", "cancelled") or time.monotonic() > deadline:
                return task
            time.sleep(0.02)

    def run(self, case):
        """Runs a case, and once more where nothing is wrong but its time."""
        outcome = self._run_once(case)
        if outcome.is_only_timing:
            again = self._run_once(case)
            if not again.faults:
                again.summary += f" (at the first try: {outcome.faults[0]})"
                return again
            again.evidence = outcome.evidence
            again.faults.append("at the first try: " + "; ".join(outcome.faults))
            return again
        return outcome

    def _run_once(self, case):
        number = next(self._number)
        place = os.path.join(self.place, f"case-{number}")
        os.makedirs(place)
        disk = None
        daemon = None
        try:
            if case.reason == "disk":
                disk = FrozenDisk(place)
            _, rate = case.load
            daemon = self._daemon(case, place, rate, disk and disk.path)
            daemon.start()
            return self._watch(case, daemon, disk, f"case-{number}")
        except (Unusable, Refused, OSError) as error:
            evidence = daemon.log_text() if daemon else ""
            return Outcome(case.name, [f"{type(error).__name__}: {error}"], evidence=evidence)
        finally:
            if daemon is not None and daemon.child is not None:
                daemon.child.kill()
            if disk is not None:
                disk.remove()
            subprocess.run(["rm", "-rf", place], check=False)

    def _watch(self, case, daemon, disk, output):
        size, rate = case.load
        faults = []
        source = self.content.path(self.content.name(size))
        task = self._task(case, size, output, source)
        if case.reason in ("limit", "pause", "stop", "disk", "company"):
            task["limit"] = rate
        if case.reason == "daemon-rate":
            daemon.call("daemon.limits", {"upload" if case.is_upload else "download": rate})
        number = daemon.add(task)
        begun = time.monotonic()
        least = most = size / rate
        set_up = self.set_up.get(case.protocol, 0.5)
        pauses = 0
        if case.reason == "host-rate" and case.shared and case.is_http:
            least /= 2
        if case.reason in HOLD:
            time.sleep(0.4 * most)
            held = time.monotonic()
            if case.reason == "pause":
                pauses = 1
                self._pause(daemon, number, faults)
                if case.is_upload:
                    # An upload begins anew.
                    most += held - begun
                    least += held - begun
                set_up *= 2
            elif case.reason == "stop":
                daemon.stand_still(HOLD["stop"])
            else:
                disk.stand_still(HOLD["disk"])
            most += time.monotonic() - held
            if case.reason != "disk":
                least += HOLD[case.reason]
        if case.reason == "company":
            time.sleep(0.2)
            company = self._add_company(case, daemon)
        task = self._ended(daemon, number, begun + most * 1.1 + self.slack + set_up + 3)
        if case.reason == "company":
            self._judge_company(daemon, company, faults)
        is_right = self._judge(case, daemon, task, size, pauses, faults)
        is_only_timing = False
        if is_right:
            span = (task["finishedAt"] - task["createdAt"]) / 1000
            late = span - (most * 1.1 + self.slack + set_up)
            early = least * 0.9 - self.slack - span
            summary = f"{span:.2f} s of {most:.2f} s"
            if late > 0 or early > 0:
                is_only_timing = late < 1 and not faults
                faults.append(f"took {span:.2f} s in place of {least:.2f} to {most:.2f} s, set-up {set_up:.2f} s")
        else:
            summary = "not completed"
        evidence = daemon.evidence([number]) if faults else ""
        if is_right:
            status = daemon.terminate()
            if status != 0:
                faults.append(f"the daemon ended with {status} on SIGTERM")
                evidence = evidence or daemon.log_text()
        if is_right:
            path = os.path.join(self.farm.upload_directory(NEEDS[case.protocol][0]), output) if case.is_upload else (
                os.path.join(daemon.downloads, output))
            difference = self.content.difference(size, path)
            if difference:
                faults.append(difference)
            try:
                os.remove(path)
            except OSError:
                pass
        return Outcome(case.name, faults, summary, is_only_timing and len(faults) == 1, evidence)

    def _add_company(self, case, daemon):
        """Adds tasks that fetch another file from the same server, with neither a rate nor a mirror."""
        numbers = {}
        for turn in range(4):
            task = self._task(dataclasses.replace(case, shared=False), 6 * MIB, f"company-{turn}", None)
            numbers[daemon.add(task)] = task["output"]
            time.sleep(0.1)
        return numbers

    def _judge_company(self, daemon, company, faults):
        """Adds what is wrong with those tasks."""
        for number, output in company.items():
            task = self._ended(daemon, number, time.monotonic() + 5)
            if task["state"] != "completed":
                faults.append(f"{output} is {task['state']} ({task['reason']}, {task['error']})")
                continue
            difference = self.content.difference(6 * MIB, os.path.join(daemon.downloads, output))
            if difference:
                faults.append(difference)

    @staticmethod
    def _pause(daemon, number, faults):
        """Pauses the task, looks that it stands still, and resumes it."""
        daemon.select("pause", [number])
        before = daemon.task(number)
        time.sleep(HOLD["pause"])
        after = daemon.task(number)
        if before["state"] != "paused" and before["state"] != "completed":
            faults.append(f"{before['state']} after a pause")
        for field in ("bytesDone", "bytesFetched"):
            if before[field] != after[field]:
                faults.append(f"{field} grew from {before[field]} to {after[field]} during a pause")
        daemon.select("resume", [number])

    @staticmethod
    def _judge(case, daemon, task, size, pauses, faults):
        """Adds what is wrong with a task's end, and returns whether it completed."""
        if task["state"] != "completed":
            faults.append(
                f"{task['state']} ({task['reason']}, {task['phase']}, {task['error']}) with {task['bytesDone']} of "
                f"{task['bytesTotal']} bytes")
        elif case.is_http:
            connections = 16 if case.connections == "auto" else int(case.connections)
            extra = task["bytesFetched"] - size
            if extra > 65536 * connections * (1 + pauses):
                faults.append(f"{extra} bytes were fetched beyond the file's, by {connections} connections")
            if extra < 0:
                faults.append(f"{-extra} bytes fewer were fetched than the file has")
        count = daemon.faults()
        if count:
            faults.append(f"internalFaults is {count}")
        faults += daemon.defects()
        return task["state"] == "completed"
