"""Faults and attacks, by their numbers in docs/failures.md, against the service on a real systemd."""

import contextlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import time

from machine import Failure

# An address of the machine itself that the shipped policy permits.
SERVER = "198.51.100.7"
DROP_IN = "/run/systemd/system/dld.service.d/test.conf"


def check(holds, message: str) -> None:
    if not holds:
        raise Failure(message)


class Faults:
    """Tests that use the machine `box` and the helpers of `Scenarios`."""

    @contextlib.contextmanager
    def unit_lines(self, *lines: str):
        """Restarts the service with further lines in the section `[Service]` of its unit, and finally without them."""
        self.box.write(DROP_IN, "\n".join(["[Service]", *lines, ""]))
        self.box.run("systemctl", "daemon-reload")
        self.box.run("systemctl", "restart", "dld")
        try:
            yield
        finally:
            self.box.run("rm", "-f", DROP_IN)
            self.box.run("systemctl", "daemon-reload")
            self.box.run("systemctl", "restart", "dld")

    def resident(self, pid: int, name: str = "VmRSS") -> int:
        """Returns a size of a process in KiB."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+)", status).group(1))

    def add_many(self, count: int, batch: str) -> None:
        urls = "".join(f"http://{SERVER}/small?{batch}{number}\n" for number in range(count))
        self.box.run("dlctl", "add", "--batch", batch, "--input", "-", user="anna", stdin=urls)

    def all_complete(self, batch: str, seconds: float) -> None:
        """Waits until a batch is complete, through restarts of the service, and compares its files."""
        def left():
            said = self.box.run("dlctl", "list", "--batch", batch, "--json", "--limit", "2000", user="anna", check=False)
            if said.returncode != 0:
                return False
            states = [task["state"] for task in json.loads(said.stdout)]
            check("failed" not in states, f"{states.count('failed')} tasks of {batch} failed")
            return set(states) == {"completed"}
        self.box.eventually(f"the batch {batch} completes", left, seconds=seconds, pause=0.5)
        for task in json.loads(self.dlctl("list", "--batch", batch, "--json", "--limit", "2000")):
            check(self.box.path(task["path"]).read_text() == "small\n", f"{task['path']} is wrong")

    # Memory

    def memory_that_runs_out(self):
        """F21: no further memory for the process. It restarts, or its tasks wait, and all of them complete."""
        pid = self.box.main_pid()
        limit = (self.resident(pid, "VmData") << 10) + (512 << 10)
        self._limit_data(str(limit))
        try:
            self.add_many(300, "scarce")
        except Failure:
            # The daemon ended while it took the batch. What it acknowledged is there; the batch is merged again.
            self.started_anew(pid)
            self.add_many(300, "scarce")
        time.sleep(3)
        now = self.box.main_pid()
        print("  the daemon", "went on" if now == pid else "was restarted")
        if now == pid:
            self._limit_data("unlimited")
        self.all_complete("scarce", 90)

    def _limit_data(self, limit: str) -> None:
        """Sets the soft limit on the private memory of the daemon."""
        inner = self.box.property("dld", "MainPID")
        self.box.run("setpriv", "--reuid", "dld", "--regid", "dld", "--clear-groups", "prlimit", "--pid", inner,
                     f"--data={limit}:")

    def out_of_memory_resumes(self):
        """F22: the kernel ends the process for lack of memory, as the limit of its control group says."""
        number = self.add("/slow/large")
        before = self.running(number, 300_000)
        former = self.box.main_pid()
        group = pathlib.Path("/sys/fs/cgroup/memory/dld-test")
        if not group.parent.is_dir():
            self.box.run("systemctl", "set-property", "--runtime", "dld.service", "MemoryMax=1M")
        else:
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(2 << 20))
            (group / "cgroup.procs").write_text(str(former))
        self.box.run("dlctl", "add", "--batch", "hungry", "--input", "-", user="anna", check=False,
                     stdin="".join(f"http://{SERVER}/slow/large?{number}\n" for number in range(2_000)))
        self.started_anew(former)
        if group.is_dir():
            events = (group / "memory.oom_control").read_text()
            check("oom_kill 0" not in events, f"the kernel did not end the process: {events}")
            group.rmdir()
        else:
            self.box.run("systemctl", "set-property", "--runtime", "dld.service", "MemoryMax=infinity")
        self.box.run("dlctl", "remove", "--batch", "hungry", "--yes", user="anna", check=False)
        self.resumed(number, before)

    def soak(self):
        """F70, compressed: rounds of tasks, after which memory, open files, threads and the log are as before."""
        box = self.box
        box.run("systemctl", "restart", "dld")
        samples = []
        for number in range(6):
            self.add_many(500, f"soak{number}")
            self.all_complete(f"soak{number}", 120)
            box.run("dlctl", "remove", "--batch", f"soak{number}", "--yes", user="anna")
            time.sleep(2)
            pid = box.main_pid()
            process = pathlib.Path(f"/proc/{pid}")
            samples.append({
                "KiB": self.resident(pid, "RssAnon"), "files": len(list((process / "fd").iterdir())),
                "threads": len(list((process / "task").iterdir())),
                "log": box.path("/var/lib/dld/dld.db-wal").stat().st_size,
            })
        print(f"  after 1,000 tasks {samples[1]}, after 3,000 {samples[-1]}")
        for name, slack in [("KiB", 4 << 10), ("files", 16), ("threads", 4)]:
            # The allocator returns memory now and then: one of the first rounds may find little.
            first = max(sample[name] for sample in samples[:2])
            check(samples[-1][name] <= first + slack, f"{name} grows: {samples}")
        check(samples[-1]["log"] <= 64 << 20, f"the log grows: {samples}")

    # Time

    def clock_jumps(self):
        """F25: the system's time is set a day back and a day ahead, in the middle of a transfer."""
        box = self.box
        step = box.path("/srv/clock-step")
        step.write_bytes(struct.pack("q", 0))
        compiler = ["cc", "-O2", "-shared", "-fPIC", "-o", str(box.path("/usr/lib/dld-clock.so"))]
        subprocess.run(compiler + [str(pathlib.Path(__file__).with_name("clock.c"))], check=True)
        with self.unit_lines("Environment=LD_PRELOAD=/usr/lib/dld-clock.so CLOCK_STEP=/srv/clock-step", "WatchdogSec=8"):
            pid = box.main_pid()
            number = self.add("/slow/large", "--connections", "1")
            before = self.running(number, 100_000)
            day = 86_400
            for jump in [-day, day, 0]:
                with open(step, "r+b") as file:
                    file.write(struct.pack("q", jump))
                at = self.task(number)["bytesDone"]
                time.sleep(4)
                self.running(number, at + 64_000)
                new = self.task(self.add("/small", "--wait"))["createdAt"] // 1_000
                check(abs(new - time.time() - jump) < 60, f"the clock of the daemon does not jump: {new}")
            check(box.main_pid() == pid, "the daemon was restarted")
            check(self.task(number)["attempts"] == before["attempts"], "the transfer began anew")
        self.resumed(number, before)

    # Attacks

    def names_that_rebind(self):
        """A12: a name that has a permitted address at one moment and the machine's own at the next."""
        box = self.box
        box.run("sh", "-c", "mkdir -p /srv/www/inside && echo inside >/srv/www/inside/small")
        # The server on the loopback address stands for a service of the machine.
        config = box.out("cat", "/etc/nginx/nginx.conf")
        inside = ("log_format plain '$request'; server { listen 127.0.0.1:80; root /srv/www/inside; "
                  "access_log /var/log/nginx/inside plain; }")
        box.write("/etc/nginx/nginx.conf", config.replace("access_log off;", "access_log off; " + inside, 1))
        box.write("/etc/resolv.conf", f"nameserver {SERVER}\n")
        names = subprocess.Popen([
            "nsenter", "--target", str(box.leader), "--net", sys.executable, "-B",
            str(pathlib.Path(__file__).with_name("names.py")), SERVER, "rebind.test", SERVER, "127.0.0.1"])
        try:
            box.run("nginx", "-s", "reload")
            number = int(self.dlctl("add", "http://rebind.test/slow/large"))
            self.running(number, 100_000)
            # A new process asks for the name again.
            box.run("systemctl", "restart", "dld")
            box.run("dlctl", "wait", str(number), "--timeout", "30", user="anna", check=False)
            task = self.task(number)
            check((task["error"] or {}).get("code") == "address-not-allowed", f"{task['state']}: {task['error']}")
            check(box.run("cat", "/var/log/nginx/inside", check=False).stdout == "", "the machine was reached")
        finally:
            names.kill()
            names.wait()
            box.write("/etc/nginx/nginx.conf", config + "\n")
            box.run("nginx", "-s", "reload")

    def hostile_environment(self):
        """A33: variables that change what libcurl and OpenSSL do."""
        box = self.box
        box.run("sh", "-c", "mkdir -p /srv/hostile && printf 'insecure\nproxy=http://127.0.0.1:9\n' >/srv/hostile/.curlrc"
                " && printf 'machine 198.51.100.7 login x password netrc-word\n' >/srv/hostile/.netrc")
        with self.unit_lines(
                "Environment=SSLKEYLOGFILE=/var/lib/dld/keys http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9",
                "Environment=https_proxy=http://127.0.0.1:9 CURL_HOME=/srv/hostile HOME=/srv/hostile",
                "Environment=CURL_CA_BUNDLE=/srv/www/server.pem SSL_CERT_FILE=/srv/www/server.pem"):
            number = self.add("/small", "--wait")
            check(self.task(number)["state"] == "completed", "a proxy of the environment was used")
            # The certificate is one that only the variables trust.
            number = int(self.dlctl("add", f"https://{SERVER}/small"))
            box.run("dlctl", "wait", str(number), "--timeout", "30", user="anna", check=False)
            check((self.task(number)["error"] or {}).get("code") == "tls", str(self.task(number)["error"]))
            check(not box.path("/var/lib/dld/keys").exists(), "the keys of TLS sessions were written")

    def open_umask(self):
        """A34: started with a umask of 0, files have no more permissions than otherwise."""
        box = self.box

        def modes() -> dict[str, str]:
            path = self.task(self.add("/small", "--wait"))["path"]
            return {name: box.out("stat", "-c", "%a", file) for name, file in [
                ("file", path), ("directory", str(pathlib.Path(path).parent)), ("database", "/var/lib/dld/dld.db"),
                ("log", "/var/lib/dld/dld.db-wal")]}
        usual = modes()
        print(f"  {usual}")
        check(usual["database"] == "600" and usual["file"][-1] == "0", f"others may read: {usual}")
        with self.unit_lines("UMask=0000"):
            found = modes()
        check(found == usual, f"with a umask of 0: {found}; usually: {usual}")
