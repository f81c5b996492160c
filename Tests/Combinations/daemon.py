"""The daemon under test: its configuration, its socket, and what can be told of it when something is wrong."""

import json
import os
import signal
import socket
import subprocess
import time

from processes import Child, Unusable, send


class Refused(Exception):
    """An error that the daemon answered with."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.code = error.get("code")


def to_yaml(settings):
    """Returns settings as YAML: JSON is YAML."""
    return "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in settings.items())


class Daemon:
    """A daemon with a state directory, a socket and a download directory of its own."""

    def __init__(self, programs, place, settings, home=None, downloads=None, level="debug"):
        self.programs, self.place, self.home, self.level = programs, place, home, level
        self.state = os.path.join(place, "state")
        self.downloads = downloads or os.path.join(place, "downloads")
        self.socket = os.path.join(place, "socket")
        self.log = os.path.join(place, "log")
        self.file = os.path.join(place, "dld.yaml")
        for directory in (self.state, self.downloads):
            os.makedirs(directory, exist_ok=True)
        # Settings that stand in every configuration.
        self.more_settings = {}
        self.configure(settings)
        self.child = None
        # Of the daemons that were killed.
        self.earlier_faults = 0

    def configure(self, settings):
        """Writes the configuration; it counts from the next start or reload on."""
        # A daemon that starts at this moment reads the one or the other.
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(to_yaml({**settings, **self.more_settings}))
        os.replace(self.file + ".new", self.file)

    def start(self):
        """Starts it and waits until it answers."""
        command = [
            os.path.join(self.programs, "dld"), "--config", self.file, "--socket", self.socket, "--state-directory",
            self.state, "--download-directory", self.downloads, "--log-level", self.level]
        if self.home is not None:
            accounts = os.path.join(self.place, "passwd")
            with open("/etc/passwd", encoding="utf-8") as old, open(accounts, "w", encoding="utf-8") as new:
                for line in old:
                    fields = line.split(":")
                    if len(fields) == 7 and fields[2] == str(os.geteuid()):
                        fields[5] = self.home
                    new.write(":".join(fields))
            script = 'mount --bind "$0" /etc/passwd; exec "$@"'
            command = [
                "unshare", "--mount", "--propagation", "slave", "sh", "-ec", script, accounts, *command]
        surroundings = {"XDG_CONFIG_HOME": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}
        self.child = Child(command, self.log, surroundings)
        deadline = time.monotonic() + 30
        while True:
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise Unusable(f"dld does not start ({self.child.poll()}): {self.log_text()[-2000:]}")
            try:
                return self.status()
            except OSError:
                time.sleep(0.01)

    def call(self, method, parameters=None, limit=30):
        """Makes one call on the control socket and returns its result.

        Refused where the daemon says no; OSError where it does not answer.
        """
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        if parameters is not None:
            request["params"] = parameters
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(limit)
            connection.connect(self.socket)
            connection.sendall(json.dumps(request).encode() + b"\n")
            parts = []
            while not parts or b"\n" not in parts[-1]:
                part = connection.recv(1 << 20)
                if not part:
                    raise ConnectionError("the daemon closed the control connection")
                parts.append(part)
        answer = json.loads(b"".join(parts))
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    def status(self):
        """Returns what `dlctl status --json` prints."""
        return self.call("daemon.status")

    def add(self, task):
        """Queues a task and returns its id."""
        return self.call("task.add", {"tasks": [task]})["ids"][0]

    def task(self, number):
        """Returns what `dlctl show ID --json` prints."""
        return self.call("task.get", {"id": number})

    def tasks(self):
        """Returns all tasks by their ids."""
        return {task["id"]: task for task in self.call("task.list", {})["tasks"]}

    def select(self, verb, numbers=None):
        """Pauses, resumes, cancels or retries tasks by their ids, or all."""
        return self.call(f"task.{verb}", {"filter": {}} if numbers is None else {"ids": numbers})

    def faults(self):
        """Returns the internal faults that were counted since the first start."""
        return self.earlier_faults + self.status().get("internalFaults", 0)

    def kill(self):
        """SIGKILL, as a power cut is to the process."""
        try:
            self.earlier_faults = self.faults()
        except (OSError, Refused):
            pass
        self.child.kill()

    def stand_still(self, seconds):
        """SIGSTOP, and SIGCONT some time later."""
        send(self.child.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            send(self.child.pid, signal.SIGCONT)

    def terminate(self, limit=20):
        """SIGTERM; returns the exit status, or None where it does not end."""
        if self.child is None:
            return 0
        send(self.child.pid, signal.SIGTERM)
        try:
            status = self.child.process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        self.child.kill()
        return status

    def log_text(self):
        """Returns what it logged over all its starts."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def memory(self):
        """Returns its anonymous memory in bytes, 0 where it is not known."""
        try:
            with open(f"/proc/{self.child.pid}/status", encoding="ascii", errors="replace") as file:
                for line in file:
                    if line.startswith("RssAnon:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0

    def defects(self):
        """Returns what is wrong with the process itself, as sentences."""
        found = []
        if self.child.poll() is not None:
            found.append(f"the daemon ended with {self.child.poll()}")
        text = self.log_text()
        for mark in ("Fatal error", "internal fault", "Crash:", "Precondition failed", "Thread 0 crashed"):
            for line in text.splitlines():
                if mark in line:
                    found.append(f"the log says: {line[:600]}")
                    break
        if self.memory() > 200 << 20:
            found.append(f"the daemon has {self.memory() >> 20} MiB of anonymous memory")
        return found

    def evidence(self, numbers):
        """Returns what there is to know of tasks that stand still: each task twice, threads, sockets, the log's end."""
        parts = []
        for _ in range(2):
            for number in numbers:
                try:
                    parts.append(json.dumps(self.call("task.get", {"id": number}, 5)))
                except (OSError, Refused) as error:
                    parts.append(f"task {number}: {error}")
            time.sleep(2)
        try:
            parts.append(json.dumps(self.call("daemon.status", None, 5)))
        except (OSError, Refused) as error:
            parts.append(f"status: {error}")
        for thread in sorted(os.listdir(f"/proc/{self.child.pid}/task")) if self.child.poll() is None else []:
            try:
                base = f"/proc/{self.child.pid}/task/{thread}"
                texts = []
                for name in ("comm", "wchan", "syscall"):
                    with open(f"{base}/{name}", encoding="ascii", errors="replace") as file:
                        texts.append(file.read().strip())
                parts.append(f"thread {thread}: " + " | ".join(texts))
            except OSError:
                continue
        try:
            sockets = subprocess.run(["ss", "-tnpOi"], capture_output=True, text=True, check=False).stdout
            parts += [line for line in sockets.splitlines() if f"pid={self.child.pid}," in line]
        except OSError:
            pass
        parts.append("log:\n" + self.log_text()[-60_000:])
        return "\n".join(parts)
