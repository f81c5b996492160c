"""A machine with a real systemd: a copy of the tree, booted by systemd-nspawn in a network of its own."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time


class Failure(Exception):
    """A check that did not hold, or a command that failed."""


class Machine:
    def __init__(self, tree: pathlib.Path):
        # /var/tmp, because the upper layer of an overlay needs a real file system.
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="dld-systemd-", dir="/var/tmp"))
        self.root = self.place / "root"
        for name in ["root", "upper", "work"]:
            (self.place / name).mkdir()
        subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir={tree},upperdir={self.place}/upper,workdir={self.place}/work", str(self.root)], check=True)
        self.nspawn: subprocess.Popen | None = None
        self.leader = 0

    # Life of the machine

    def boot(self) -> None:
        log = open(self.place / "console", "ab")
        self.nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network",
             "--machine=dld-test", "--console=pipe", "--directory", str(self.root)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.eventually("systemd is the first process", self._find_leader)
        self.eventually("the machine is up", self._is_up, seconds=90)

    def _find_leader(self) -> bool:
        assert self.nspawn
        if self.nspawn.poll() is not None:
            said = (self.place / "console").read_text(errors="replace").strip().splitlines()
            raise Failure(f"systemd-nspawn ended with {self.nspawn.returncode}: {' '.join(said[-3:])}")
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        for child in children:
            try:
                status = pathlib.Path(f"/proc/{child}/status").read_text()
            except OSError:
                continue
            for line in status.splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == "1" and len(line.split()) > 2:
                    self.leader = int(child)
                    return True
        return False

    def _is_up(self) -> bool:
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def power_off(self) -> None:
        """Ends the machine in good order."""
        assert self.nspawn
        os.kill(self.leader, signal.SIGRTMIN + 4)
        self.nspawn.wait(timeout=90)

    def cut_power(self) -> None:
        assert self.nspawn
        os.kill(self.leader, signal.SIGKILL)
        self.nspawn.wait(timeout=30)

    def reboot(self) -> None:
        self.power_off()
        self.boot()

    def remove(self) -> None:
        if self.nspawn and self.nspawn.poll() is None:
            self.cut_power()
        subprocess.run(["umount", "--lazy", str(self.root)], check=False)
        shutil.rmtree(self.place, ignore_errors=True)

    # Commands

    def run(self, *command: str, user: str = "root", check: bool = True, timeout: float = 120,
            environment: dict[str, str] | None = None, stdin: str | None = None) -> subprocess.CompletedProcess:
        """Runs a command in the machine, as a user with the groups that a new login would have."""
        enter = ["nsenter", "--target", str(self.leader), "--all", "--wdns=/"]
        if user != "root":
            enter += ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env"]
        enter += ["env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]
        enter += [f"{name}={value}" for name, value in (environment or {}).items()]
        result = subprocess.run(
            enter + list(command), capture_output=True, text=True, timeout=timeout, input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None)
        if check and result.returncode != 0:
            raise Failure(f"{' '.join(command)} ended with {result.returncode}: {result.stdout}{result.stderr}".strip())
        return result

    def out(self, *command: str, **options) -> str:
        return self.run(*command, **options).stdout.strip()

    def path(self, path: str) -> pathlib.Path:
        return self.root / path.lstrip("/")

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Writes a file from inside, where all mounts are seen."""
        self.run("sh", "-c", f'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod {mode:o} "$1"', "sh", path, stdin=text)

    # Waiting

    @staticmethod
    def eventually(what: str, condition, seconds: float = 30, pause: float = 0.05):
        end = time.monotonic() + seconds
        while True:
            answer = condition()
            if answer:
                return answer
            if time.monotonic() > end:
                raise Failure(f"not within {seconds:.0f} s: {what}")
            time.sleep(pause)

    # systemd

    def property(self, unit: str, name: str) -> str:
        return self.out("systemctl", "show", "--value", "--property", name, unit)

    def main_pid(self, unit: str = "dld.service") -> int:
        """Returns the daemon's pid as the host sees it; 0 if it does not run."""
        inner = int(self.property(unit, "MainPID") or 0)
        if inner == 0:
            return 0
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = next(
                    line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:")).split()
                if fields[-1] == str(inner) and len(fields) > 2 and self._is_inside(entry.name):
                    return int(entry.name)
            except (OSError, StopIteration):
                continue
        return 0

    def _is_inside(self, pid: str) -> bool:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self.leader}/ns/pid")
