"""What the service does on a real systemd, in the order in which an administrator meets it."""

import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from faults import Faults, SERVER, check
from machine import Machine

# The address of a metadata service. Like SERVER, it is an address of the machine itself.
METADATA = "169.254.169.254"

NGINX = """
worker_processes 1;
error_log /var/log/nginx/error.log;
pid /run/nginx-test.pid;
events { worker_connections 4096; }
http {
    access_log off;
    server {
        listen 80;
        listen 443 ssl;
        ssl_certificate /srv/www/server.pem;
        ssl_certificate_key /srv/www/server.key;
        root /srv/www/files;
        location /slow/ { alias /srv/www/files/; limit_rate 64k; }
        location /private/ { alias /srv/www/files/; auth_basic files; auth_basic_user_file /srv/www/users; }
    }
}
"""


def needed(test):
    """Marks a test without which the others make no sense."""
    test.is_needed = True
    return test


class Scenarios(Faults):
    def __init__(self, box: Machine, package: pathlib.Path, previous: pathlib.Path | None, idle: float):
        self.box = box
        self.package = package
        self.previous = previous
        self.idle = idle

    def all(self):
        """Returns the tests by name, in order."""
        tests = [
            self.installs, self.first_add_activates, self.upgrade_goes_on, self.units_are_right, self.status_text,
            self.good_and_bad_reload, self.journal_tells_the_story, self.two_users, self.restart_resumes,
            self.kill_resumes, self.wedged_thread_is_killed, self.frozen_daemon_is_killed, self.out_of_memory_resumes,
            self.memory_that_runs_out, self.clock_jumps, self.second_daemon_is_refused,
            self.restart_refuses_no_client, self.many_transfers_stop_in_time, self.shutdown_stops_the_unit,
            self.damaged_databases, self.hundred_thousand_tasks, self.instance, self.user_service,
            self.denied_addresses, self.credentials, self.names_that_rebind, self.hostile_environment,
            self.open_umask, self.soak, self.reboot_resumes, self.power_cut_resumes, self.idle_daemon,
            self.remove_keeps_data, self.purge_deletes,
        ]
        return [(test.__name__.replace("_", " "), test) for test in tests]

    def diagnosis(self) -> str:
        journal = self.box.run("journalctl", "-u", "dld", "-u", "dld.socket", "-n", "25", "--no-pager", "-o", "cat",
                               check=False)
        return "".join(f"    {line}\n" for line in journal.stdout.splitlines())

    # Helpers

    def dlctl(self, *words: str, user: str = "anna", **options) -> str:
        return self.box.out("dlctl", *words, user=user, **options)

    def add(self, path: str, *words: str, user: str = "anna") -> int:
        # With --wait the path of the file follows the id.
        return int(self.dlctl("add", *words, f"http://{SERVER}{path}", user=user).split("\n")[0])

    def task(self, number: int, user: str = "anna", *words: str) -> dict:
        return json.loads(self.dlctl(*words, "show", "--json", str(number), user=user))

    def running(self, number: int, more_than: int = 0, user: str = "anna") -> dict:
        """Waits until a task has received bytes."""
        def found():
            task = self.task(number, user)
            return task if task["state"] == "active" and task["bytesDone"] > more_than else None
        return self.box.eventually(f"task {number} receives bytes", found)

    def digest(self, path: str) -> str:
        return self.box.out("sha256sum", path).split()[0]

    def same(self, task: dict, source: str = "/srv/www/files/large") -> None:
        check(self.digest(task["path"]) == self.digest(source), f"{task['path']} differs from {source}")

    def resumed(self, number: int, before: dict, user: str = "anna") -> None:
        """Lets a task complete at full speed and checks that nothing but a little was fetched twice."""
        self.box.run("dlctl", "pause", str(number), user=user)
        self.serve("s/limit_rate 64k/limit_rate 0/")
        try:
            self.box.run("dlctl", "resume", str(number), user=user)
            self.box.run("dlctl", "wait", str(number), "--timeout", "60", user=user, timeout=90)
        finally:
            self.serve("s/limit_rate 0/limit_rate 64k/")
        task = self.task(number, user)
        check(task["state"] == "completed", f"task {number} is {task['state']}: {task['error']}")
        self.same(task)
        # A checkpoint is made at least every two seconds, and a connection has some bytes on their way.
        extra = task["bytesFetched"] - task["bytesTotal"]
        check(extra <= 4 << 20, f"{extra} bytes were fetched twice")
        check(task["bytesDone"] >= before["bytesDone"], "bytes were lost")

    def serve(self, change: str) -> None:
        """Starts nginx anew with a change of its configuration, so that none of its former processes goes on."""
        self.box.run("sed", "-i", change, "/etc/nginx/nginx.conf")
        self.box.run("nginx", "-s", "stop")
        self.box.eventually("nginx ends", lambda: self.box.run("pgrep", "nginx", check=False).returncode != 0)
        self.box.run("nginx")

    def started_anew(self, former: int) -> int:
        return self.box.eventually("the service runs again", lambda: (
            lambda pid: pid if pid not in (0, former) and self.box.property("dld", "ActiveState") == "active" else None
        )(self.box.main_pid()))

    def network(self) -> None:
        self.box.run("ip", "link", "set", "lo", "up")
        for address in [SERVER, METADATA]:
            self.box.run("ip", "address", "add", f"{address}/32", "dev", "lo")

    # Installation

    @needed
    def installs(self):
        box = self.box
        before = set(box.out("dpkg-query", "-W", "-f", "${Package}\n").split())
        self.network()
        box.write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
        target = box.path("/root/dld.deb")
        target.write_bytes((self.previous or self.package).read_bytes())
        said = box.out("apt-get", "install", "--yes", "--no-install-recommends", "/root/dld.deb",
                       environment={"DEBIAN_FRONTEND": "noninteractive"})
        check("group dld" in said, f"the installation does not name the group: {said}")
        after = set(box.out("dpkg-query", "-W", "-f", "${Package}\n").split())
        check(after - before == {"dld"}, f"more than dld was installed: {after - before}")
        check(box.property("dld.socket", "ActiveState") == "active", "the socket does not listen")
        check(box.out("systemctl", "is-enabled", "dld.socket") == "enabled", "the socket is not enabled")
        check(box.out("systemctl", "is-enabled", "dld.service") == "enabled", "the service is not enabled")
        check(box.property("dld.service", "ActiveState") == "inactive", "the service runs before it is used")
        box.run("usermod", "-aG", "dld", "anna")
        box.run("usermod", "-aG", "dld", "ben")
        box.write("/etc/nginx/nginx.conf", NGINX)
        box.run("sh", "-c", """set -e; mkdir -p /srv/www/files; cd /srv/www
            head -c 8M /dev/urandom >files/large; echo small >files/small
            openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem -days 30 \
                -subj /CN=files.test -addext subjectAltName=DNS:files.test,IP:198.51.100.7 2>/dev/null
            echo "anna:$(openssl passwd -apr1 s3cret-word)" >users; nginx""")

    def units_are_right(self):
        box = self.box
        units = ["dld.service", "dld.socket", "dld@x.service", "dld@x.socket"]
        paths = [f"/lib/systemd/system/{unit}" for unit in ["dld.service", "dld.socket"]]
        said = box.run("systemd-analyze", "verify", *paths)
        check(said.stdout + said.stderr == "", f"systemd-analyze verify: {said.stdout}{said.stderr}")
        for unit in units:
            box.run("systemctl", "cat", unit)
        level = box.out("systemd-analyze", "security", "dld.service", "--no-pager").splitlines()[-1]
        exposure = float(re.search(r"([0-9.]+) \w+", level.split(":")[1]).group(1))
        print(f"  exposure {exposure}")
        check(exposure <= 1.3, level)
        for page in ["dlctl.1", "dld.8", "dld.yaml.5", "dld-queue.5"]:
            box.run("test", "-e", f"/usr/share/man/man{page[-1]}/{page}.gz")

    @needed
    def first_add_activates(self):
        number = self.add("/small", "--wait")
        task = self.task(number)
        check(task["state"] == "completed" and task["owner"] == 1001, str(task))
        check(self.box.out("cat", task["path"]) == "small", "the file is not what the server has")
        check(self.box.property("dld", "ActiveState") == "active", "the service does not run")

    def status_text(self):
        number = self.add("/slow/large")
        self.box.eventually("the status counts the task", lambda: re.fullmatch(
            r"1 active, [0-9.]+ [KM]iB/s", self.box.property("dld", "StatusText")), seconds=20)
        self.dlctl("cancel", str(number))
        self.box.eventually("the status is ready", lambda: self.box.property("dld", "StatusText") == "Ready", seconds=20)

    def good_and_bad_reload(self):
        box = self.box
        good = box.out("cat", "/etc/dld/dld.yaml")
        pid = box.main_pid()
        box.write("/etc/dld/dld.yaml", good + "\n", 0o644)
        box.run("systemctl", "reload", "dld")
        box.write("/etc/dld/dld.yaml", "downlods: {}\n", 0o644)
        try:
            check(box.run("systemctl", "reload", "dld", check=False).returncode != 0, "a wrong file was accepted")
            check("the new one is invalid" in box.property("dld", "StatusText"), box.property("dld", "StatusText"))
        finally:
            box.write("/etc/dld/dld.yaml", good + "\n", 0o644)
        box.run("systemctl", "reload", "dld")
        check(box.main_pid() == pid, "a reload restarted the daemon")

    def journal_tells_the_story(self):
        number = self.add("/no-such-file")
        self.box.run("dlctl", "wait", str(number), user="anna", check=False)

        def lines():
            text = self.box.out("journalctl", "-t", "dld", f"TASK_ID={number}", "-o", "json", "--no-pager")
            entries = [json.loads(line) for line in text.splitlines()]
            return entries if any(entry.get("HTTP_STATUS") == "404" for entry in entries) else None
        entries = self.box.eventually("the journal has the failure", lines)
        failures = [entry for entry in entries if entry["PRIORITY"] == "4"]
        check(len(failures) == 1, f"{len(failures)} warnings")
        for field in ["HOST", "URL", "OWNER_UID", "ATTEMPT", "MESSAGE_ID"]:
            check(field in failures[0], f"{field} is missing in {failures[0]}")
        text = self.box.out("journalctl", "-x", "-t", "dld", f"TASK_ID={number}", "--no-pager")
        check("Subject:" in text, f"no entry of the catalogue: {text}")

    def two_users(self):
        mine = self.add("/small", "--wait")
        other = self.add("/small", "--wait", user="ben")
        check(self.task(other, "ben")["owner"] == 1002, "a task has another owner")
        check(self.box.run("dlctl", "show", str(mine), user="ben", check=False).returncode != 0, "ben sees anna's task")
        path = self.task(mine)["path"]
        check(self.box.run("cat", path, user="anna").stdout == "small\n", "anna cannot read her file")
        check(self.box.run("cat", path, user="ben", check=False).returncode != 0, "ben can read anna's file")

    # Ends and failures

    def restart_resumes(self):
        number = self.add("/slow/large")
        before = self.running(number, 300_000)
        former = self.box.main_pid()
        self.box.run("systemctl", "restart", "dld")
        self.started_anew(former)
        self.resumed(number, before)

    def kill_resumes(self):
        number = self.add("/slow/large")
        before = self.running(number, 300_000)
        former = self.box.main_pid()
        os.kill(former, signal.SIGKILL)
        self.started_anew(former)
        self.resumed(number, before)

    def wedged_thread_is_killed(self):
        """F64: a transfer's loop thread that stands still."""
        with self.unit_lines("WatchdogSec=6"):
            number = self.add("/slow/large")
            before = self.running(number, 300_000)
            former = self.box.main_pid()
            thread = next(
                int(entry.name) for entry in pathlib.Path(f"/proc/{former}/task").iterdir()
                if (entry / "comm").read_text().strip() == "dld-loop-0")
            stop_thread(thread)
            self.started_anew(former)
            journal = self.box.out("journalctl", "-u", "dld", "-n", "50", "--no-pager", "-o", "cat")
            check("hangs" in journal and "transfer loops" in journal, f"the journal does not name the part: {journal}")
        self.resumed(number, before)

    def frozen_daemon_is_killed(self):
        """F26: a daemon that is stopped as a whole, and one that is stopped for less than the watchdog's time."""
        with self.unit_lines("WatchdogSec=8"):
            number = self.add("/slow/large")
            before = self.running(number, 300_000)
            former = self.box.main_pid()
            os.kill(former, signal.SIGSTOP)
            time.sleep(3)
            os.kill(former, signal.SIGCONT)
            self.running(number, before["bytesDone"])
            check(self.box.main_pid() == former, "a short stop restarted the daemon")
            os.kill(former, signal.SIGSTOP)
            self.started_anew(former)
        self.resumed(number, before)

    def second_daemon_is_refused(self):
        """F24"""
        self.dlctl("status")
        command = ["setpriv", "--reuid", "dld", "--regid", "dld", "--clear-groups", "dld", "--config",
                   "/etc/dld/dld.yaml", "--state-directory", "/var/lib/dld", "--socket", "/tmp/second.sock"]
        second = self.box.run(*command, check=False)
        check(second.returncode == 75, f"{second.returncode}: {second.stderr}")

    def restart_refuses_no_client(self):
        """F65: a hundred clients that connect while the service restarts."""
        answers: list[subprocess.CompletedProcess] = []
        command = ["nsenter", "--target", str(self.box.leader), "--all", "--wdns=/", "dlctl", "status", "--json"]

        def ask():
            answers.append(subprocess.run(command, capture_output=True, text=True, timeout=120))
        clients = [threading.Thread(target=ask) for _ in range(100)]
        restart = threading.Thread(target=lambda: self.box.run("systemctl", "restart", "dld"))
        restart.start()
        for client in clients:
            client.start()
        for client in clients + [restart]:
            client.join()
        refused = [answer for answer in answers if answer.returncode != 0]
        check(len(answers) == 100 and not refused, f"{len(refused)} clients were refused: {refused[:1]}")

    def many_transfers_stop_in_time(self):
        """F63: 1,000 active transfers."""
        box = self.box
        good = box.out("cat", "/etc/dld/dld.yaml")
        limits = "limits: {active-tasks: 1000, connections-per-host: 1000, connections-per-task: 1}\n"
        box.write("/etc/dld/dld.yaml", re.sub(r"(?ms)^limits:.*?(?=^\S)", limits, good), 0o644)
        box.run("systemctl", "reload", "dld")
        urls = "".join(f"http://{SERVER}/slow/large?{number}\n" for number in range(1_000))
        box.run("dlctl", "add", "--batch", "many", "--input", "-", user="anna", stdin=urls)
        box.eventually("1,000 tasks run", lambda: json.loads(
            self.dlctl("status", "--json"))["tasks"]["active"] == 1_000, seconds=60, pause=0.5)

        def progress() -> dict[int, int]:
            return {task["id"]: task["bytesDone"] for task in json.loads(self.dlctl("list", "--batch", "many", "--json"))}
        before = box.eventually("every task has bytes", lambda: (
            lambda found: found if min(found.values()) > 0 else None)(progress()), seconds=60, pause=1)
        start = time.monotonic()
        box.run("systemctl", "stop", "dld.service")
        took = time.monotonic() - start
        print(f"  stopped in {took:.2f} s")
        check(box.property("dld", "Result") == "success", box.property("dld", "Result"))
        check(took < 5, f"the stop took {took:.1f} s")
        after = progress()
        lost = [number for number, count in before.items() if after[number] < count]
        check(not lost, f"{len(lost)} tasks have lost bytes")
        box.run("dlctl", "remove", "--batch", "many", "--yes", user="anna")
        box.write("/etc/dld/dld.yaml", good + "\n", 0o644)
        box.run("systemctl", "reload", "dld")

    def shutdown_stops_the_unit(self):
        box = self.box
        self.dlctl("status")
        box.run("dlctl", "shutdown")
        box.eventually("the unit stops", lambda: box.property("dld", "ActiveState") == "inactive")
        time.sleep(2)
        check(box.property("dld", "ActiveState") == "inactive", "the unit was started again")
        self.dlctl("status")
        box.eventually("its socket starts it", lambda: box.property("dld", "ActiveState") == "active")

    def damaged_databases(self):
        """F66, A36: what is no database, and what a newer version has written, is refused and left alone."""
        box = self.box
        box.run("systemctl", "stop", "dld.service")
        box.run("cp", "-a", "/var/lib/dld/dld.db", "/root/good.db")
        damages = [
            ("head -c 64K /dev/urandom >/var/lib/dld/dld.db", "not a database"),
            ("cp -a /root/good.db /var/lib/dld/dld.db && "
             "sqlite3 /var/lib/dld/dld.db \"insert into grdb_migrations values ('999')\"", "newer"),
        ]
        for command, word in damages:
            box.run("sh", "-c", command)
            before = self.digest("/var/lib/dld/dld.db")
            said = box.run("dlctl", "status", user="anna", check=False)
            check(said.returncode == 69 and word in said.stderr, f"{said.returncode}: {said.stderr}")
            check(self.digest("/var/lib/dld/dld.db") == before, "a refused database was changed")
            box.run("systemctl", "stop", "dld.service")
        box.run("cp", "-a", "/root/good.db", "/var/lib/dld/dld.db")
        self.dlctl("status")

    def hundred_thousand_tasks(self):
        """F69: the start with 100,000 tasks."""
        box = self.box
        urls = "".join(f"http://{SERVER}/small?{number}\n" for number in range(100_000))
        start = time.monotonic()
        box.run("dlctl", "add", "--paused", "--batch", "long", "--input", "-", user="anna", stdin=urls, timeout=300)
        print(f"  100,000 tasks added in {time.monotonic() - start:.1f} s")
        box.run("systemctl", "stop", "dld.service")
        start = time.monotonic()
        box.run("systemctl", "start", "dld.service")
        took = time.monotonic() - start
        resident = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(
            f"/proc/{box.main_pid()}/status").read_text()).group(1))
        print(f"  ready in {took:.2f} s, {resident >> 10} MiB resident")
        check(took < 2, f"ready after {took:.1f} s")
        check(resident < 64 << 10, f"{resident} KiB resident")
        start = time.monotonic()
        box.run("dlctl", "remove", "--batch", "long", "--yes", user="anna", timeout=300)
        print(f"  removed in {time.monotonic() - start:.1f} s")

    # Other daemons

    def instance(self):
        box = self.box
        said = box.run("dlctl", "--instance", "night", "status", user="anna", check=False)
        check(said.returncode == 69 and "dld@night.socket" in said.stderr, said.stderr)
        box.run("systemctl", "start", "dld@night.socket")
        said = box.run("dlctl", "--instance", "night", "status", user="anna", check=False)
        check("/etc/dld/night.yaml does not exist" in said.stderr, said.stderr)
        box.write("/etc/dld/night.yaml", "limits: {active-tasks: 3}\n", 0o644)
        box.run("systemctl", "restart", "dld@night.service")
        number = int(self.dlctl("--instance", "night", "add", "--wait", f"http://{SERVER}/small").split()[0])
        task = self.task(number, "anna", "--instance", "night")
        check(task["path"].startswith("/var/lib/dld-night/downloads/"), task["path"])
        status = json.loads(self.dlctl("--instance", "night", "status", "--json"))
        check(status["limits"]["activeTasks"] == 3, str(status["limits"]))
        box.run("systemctl", "reload", "dld@night")
        box.run("systemctl", "stop", "dld@night.socket", "dld@night.service")

    def user_service(self):
        box = self.box
        box.run("loginctl", "enable-linger", "anna")
        own = {"XDG_RUNTIME_DIR": "/run/user/1001", "HOME": "/home/anna",
               "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1001/bus"}
        box.eventually("the user's manager runs", lambda: box.run(
            "systemctl", "--user", "is-system-running", user="anna", environment=own,
            check=False).stdout.strip() in ("running", "degraded"))
        box.run("systemctl", "--user", "enable", "--now", "dld.socket", user="anna", environment=own)
        number = int(self.dlctl("add", "--wait", f"http://{SERVER}/small", environment=own).split()[0])
        task = json.loads(self.dlctl("show", "--json", str(number), environment=own))
        check(task["path"].startswith("/home/anna/Downloads/small"), task["path"])
        box.run("systemctl", "--user", "start", "dld@work.socket", user="anna", environment=own)
        self.dlctl("--instance", "work", "add", "--wait", f"http://{SERVER}/small", environment=own)
        box.run("test", "-d", "/home/anna/.local/state/dld-work")
        box.eventually("the status is ready", lambda: "Ready" in box.out(
            "systemctl", "--user", "status", "dld.service", user="anna", environment=own))
        box.run("systemctl", "--user", "disable", "--now", "dld.socket", "dld.service", user="anna", environment=own)
        box.run("systemctl", "--user", "stop", "dld@work.socket", "dld@work.service", user="anna", environment=own)

    def denied_addresses(self):
        """A11: a user reaches neither this machine nor a metadata service through the daemon; root does."""
        for address in ["127.0.0.1", "localhost", f"{METADATA}", "2130706433", "[::ffff:127.0.0.1]"]:
            number = int(self.dlctl("add", f"http://{address}/small"))
            self.box.run("dlctl", "wait", str(number), "--timeout", "20", user="anna", check=False)
            task = self.task(number)
            check((task["error"] or {}).get("code") == "address-not-allowed", f"{address}: {task}")
        number = int(self.dlctl("add", "--wait", "http://127.0.0.1/small", user="root").split()[0])
        check(self.task(number, "root")["state"] == "completed", "root is denied an address")

    def credentials(self):
        """A23, A25: a password that systemd passes serves its owners alone, and is nowhere else."""
        box = self.box
        good = box.out("cat", "/etc/dld/dld.yaml") + "\n"
        unit = "/etc/systemd/system/dld.service.d/files.conf"
        entry = f"  https://{SERVER}: {{credential: files, owners: [anna], trust: {{ca-file: /srv/www/server.pem}}}}\n"

        def restart(line: str, fails: bool = False) -> None:
            box.write(unit, f"[Service]\n{line}\n")
            box.run("systemctl", "daemon-reload")
            said = box.run("systemctl", "restart", "dld", check=False)
            check((said.returncode != 0) == fails, f"{line}: {said.stderr}")

        def asks(user: str) -> dict:
            number = int(self.dlctl("add", f"https://{SERVER}/private/small", user=user))
            box.run("dlctl", "wait", str(number), "--timeout", "30", user=user, check=False)
            return self.task(number, user)

        box.write("/root/files.yaml", "user: anna\npassword: s3cret-word\n", 0o600)
        box.run("mkdir", "-p", "/etc/credstore.encrypted")
        box.run("systemd-creds", "encrypt", "--with-key=host", "--name=files", "/root/files.yaml",
                "/etc/credstore.encrypted/files")
        box.write("/etc/dld/dld.yaml", good.replace("\nhosts:\n", f"\nhosts:\n{entry}"), 0o644)
        try:
            said = box.run("dld", "--check-config")
            check("credentials of hosts are checked when the service starts" in said.stderr, said.stderr)
            for line in ["LoadCredentialEncrypted=files:/etc/credstore.encrypted/files",
                         "LoadCredential=files:/root/files.yaml"]:
                restart(line)
                task = asks("anna")
                check(task["state"] == "completed", f"{line}: {task['error']}")
                for user in ["ben", "root"]:
                    task = asks(user)
                    check((task["state"], task["reason"]) == ("paused", "auth"), f"{user}: {task}")
            box.run("systemctl", "reload", "dld")
            check(asks("anna")["state"] == "completed", "the credential is lost at a reload")
            passed = "/run/credentials/dld.service/files"
            check(box.run("cat", passed, user="ben", check=False).returncode != 0, "ben reads the credential")
            for place in ["/var/lib/dld", "/run/dld"]:
                check(box.run("grep", "-ra", "s3cret-word", place, check=False).returncode == 1, f"it is in {place}")
            check("s3cret" not in box.out("journalctl", "-b", "-t", "dld", "-o", "json", "--no-pager"), "it is logged")
            restart("", fails=True)
            check(box.property("dld", "ExecMainStatus") == "78", "a missing credential has another exit status")
        finally:
            box.write("/etc/dld/dld.yaml", good, 0o644)
            box.run("rm", unit)
            box.run("systemctl", "daemon-reload")
            box.run("systemctl", "reset-failed", "dld.service", "dld.socket", check=False)
            box.run("systemctl", "start", "dld.socket", "dld")

    # Ends of the machine

    def _across(self, end) -> None:
        number = self.add("/slow/large")
        before = self.running(number, 300_000)
        end()
        self.network()
        self.box.run("nginx")
        # Nobody asks the socket: the tasks go on because the service is enabled.
        self.box.eventually("the service runs after the boot", lambda: self.box.property("dld", "ActiveState") == "active")
        self.resumed(number, before)

    def reboot_resumes(self):
        self._across(self.box.reboot)

    def power_cut_resumes(self):
        def end():
            self.box.cut_power()
            self.box.boot()
        self._across(end)

    @needed
    def upgrade_goes_on(self):
        if self.previous:
            print(f"  from {self.previous.name}")
        else:
            print("  without a package of another version, the same one is installed again")
        number = self.add("/slow/large")
        before = self.running(number, 300_000)
        former = self.box.main_pid()
        self.box.path("/root/dld.deb").write_bytes(self.package.read_bytes())
        # A changed configuration file that nobody has edited is replaced without a question.
        self.box.run("apt-get", "install", "--yes", "--reinstall", "/root/dld.deb",
                     environment={"DEBIAN_FRONTEND": "noninteractive"})
        self.started_anew(former)
        self.resumed(number, before)

    def idle_daemon(self):
        box = self.box
        box.run("dlctl", "remove", "--all", "--yes")
        box.run("systemctl", "restart", "dld")
        self.dlctl("status")
        pid = box.main_pid()
        # Connections are kept for a minute.
        time.sleep(65)

        def wakeups() -> dict[str, int]:
            found = {}
            for entry in pathlib.Path(f"/proc/{pid}/task").iterdir():
                switches = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (entry / "status").read_text(), re.M)
                found[f"{(entry / 'comm').read_text().strip()}/{entry.name}"] = int(switches.group(1))
            return found
        before = wakeups()
        time.sleep(self.idle)
        after = wakeups()
        moved = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        private = int(re.search(r"RssAnon:\s+(\d+)", status).group(1))
        resident = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        print(f"  {private / 1024:.1f} MiB private, {resident / 1024:.1f} MiB resident; woke up: {moved}")
        check(private < 10 << 10 and resident < 45 << 10, "too much memory")
        own = {name for name in moved if name.startswith("dld")}
        check(not own, f"threads woke up: {moved}")

    # The end of the package

    def remove_keeps_data(self):
        box = self.box
        self.add("/small", "--wait")
        box.run("apt-get", "remove", "--yes", "dld", environment={"DEBIAN_FRONTEND": "noninteractive"})
        check(box.main_pid() == 0, "the daemon still runs")
        for path in ["/var/lib/dld/dld.db", "/etc/dld/dld.yaml"]:
            box.run("test", "-e", path)
        check(not box.path("/run/dld/dld.sock").exists(), "the socket is left")
        box.run("apt-get", "install", "--yes", "/root/dld.deb", environment={"DEBIAN_FRONTEND": "noninteractive"})
        check(int(json.loads(self.dlctl("status", "--json"))["tasks"]["completed"]) > 0, "the tasks are gone")

    def purge_deletes(self):
        box = self.box
        box.run("apt-get", "purge", "--yes", "dld", environment={"DEBIAN_FRONTEND": "noninteractive"})
        for path in ["/var/lib/dld", "/etc/dld/dld.yaml", "/run/dld", "/var/lib/dld-night"]:
            check(box.run("test", "-e", path, check=False).returncode != 0, f"{path} is left")
        check(box.run("id", "dld", check=False).returncode != 0, "the user is left")


def stop_thread(thread: int) -> None:
    """Stops one thread for good, as its debugger would."""
    library = ctypes.CDLL(None, use_errno=True)
    seize, interrupt, wait_for_all = 0x4206, 0x4207, 0x40000000
    stopped = threading.Event()
    failures: list[str] = []

    def trace():
        for request in [seize, interrupt]:
            if library.ptrace(request, thread, None, None) != 0:
                failures.append(os.strerror(ctypes.get_errno()))
                return stopped.set()
        os.waitpid(thread, wait_for_all)
        stopped.set()
        # A traced thread that has ended stays until its debugger has noticed.
        while not os.WIFSIGNALED(os.waitpid(thread, wait_for_all)[1]):
            pass
    threading.Thread(target=trace, daemon=True).start()
    stopped.wait(10)
    check(not failures, f"ptrace: {failures}")
