"""Holds what a daemon says, and what lies on the disks and servers, against the ledger."""

import hashlib
import json
import os
import re
import threading
import time
import urllib.request

from daemon import Refused
from ledger import TOKEN, Wish

# An active task that gets no further for so long is stuck: the stall timeout is 5 s, and retries come within 3 s.
STUCK = 75
# A waiting one whose time has come, and a queued one while slots are free.
OVERDUE = 75
# Codes with which no task may end whatever the servers and disks do.
NEVER = {"internal", "invalid", "path-not-allowed", "cannot-start", "database-lost", "address-not-allowed",
         "protocol-not-allowed", "quota", "part-in-use", "dns"}
PART = re.compile(r"^\.dld-[0-9a-f]{8}-(\d+)\.part$")


class Auditor(threading.Thread):
    """Looks at all tasks of one daemon every few seconds."""

    INTERVAL = 8

    def __init__(self, world):
        super().__init__(name=f"auditor {world.name}", daemon=True)
        self.world, self.ledger = world, world.ledger
        self.stopping = threading.Event()
        self.signs = {}
        self.audits = 0
        self.checked = 0
        self.checked_bytes = 0
        self.last = {}

    def run(self):
        while not self.stopping.wait(self.INTERVAL):
            try:
                self.audit()
            except (OSError, Refused) as error:
                if not self.world.life.is_troubled() and not isinstance(error, ConnectionError):
                    self.ledger.violation("no answer", f"the audit: {error!r}")
            except Exception as error:  # pylint: disable=broad-except
                import traceback  # pylint: disable=import-outside-toplevel
                self.ledger.violation("the soak itself", f"{error!r}: {traceback.format_exc()[-700:]}")

    def tasks(self):
        """Returns all tasks, page by page."""
        found, after = {}, None
        while True:
            page = self.world.daemon.call("task.list", {"after": after} if after is not None else {})
            for task in page["tasks"]:
                found[task["id"]] = task
            after = page["next"]
            if after is None:
                return found

    def audit(self):
        """Looks once."""
        life = self.world.life
        begun, mark = time.monotonic(), life.mark()
        tasks = self.tasks()
        self.last = tasks
        seen = {}
        for number, task in tasks.items():
            entry = self._entry_of(task)
            if entry is None:
                continue
            if entry in seen:
                self.ledger.violation("doubled", f"{entry.token} is {seen[entry]} and {number}")
            seen[entry] = number
            if not self.ledger.adopt(entry, number):
                self.ledger.violation("doubled", f"{entry.token} is {entry.id} and {number}")
            self._judge(entry, task, begun)
            entry.state, entry.reason = task["state"], task["reason"]
            entry.error = (task["error"] or {}).get("code")
        for entry in self.ledger.all():
            if entry not in seen and not entry.is_refused and entry.removal_asked_at is None and (
                    entry.acknowledged_at is not None and entry.acknowledged_at < begun):
                self.ledger.violation("lost", f"{entry.token} ({entry.id}, user {entry.owner}, {entry.state})")
        self._progress(tasks, life.was_disturbed(mark))
        self.audits += 1
        return tasks

    def _entry_of(self, task):
        text = " ".join(str(task[key]) for key in ("url", "path", "key", "checksumURL") if task[key])
        found = TOKEN.search(text)
        entry = self.ledger.entries.get(found.group()) if found else None
        if entry is None:
            self.ledger.violation("nobody asked for it", json.dumps(task))
        return entry

    def _judge(self, entry, task, begun):
        violation, number, state = self.ledger.violation, task["id"], task["state"]
        if entry.is_refused:
            violation("refused and there", f"{entry.token}: {task}")
        if entry.removed_at is not None and entry.removed_at < begun:
            violation("back after its removal", f"{entry.token}: {task}")
        if task["owner"] != entry.owner:
            violation("wrong owner", f"{entry.token} of {entry.owner}: {task}")
        if entry.wished_at < begun and entry.removal_asked_at is None:
            if entry.wish == Wish.CANCELLED and state != "cancelled":
                violation("cancelled and goes on", f"{entry.token}: {task}")
            if entry.wish == Wish.PAUSED and state != "paused":
                violation("paused and goes on", f"{entry.token}: {task}")
            if entry.wish == Wish.RUN and (state == "cancelled" or state == "paused" and task["reason"] == "user"):
                violation("stopped by nobody", f"{entry.token}: {task}")
        if entry.is_completed and state != "completed" and entry.removal_asked_at is None:
            violation("was completed", f"{entry.token}: {task}")
        if state == "failed":
            code = (task["error"] or {}).get("code")
            self.ledger.failures[code] += entry.state != "failed"
            if code in NEVER:
                violation("fails so", f"{entry.token}: {task}")
        if state == "completed" and not entry.is_completed:
            if entry.must_fail:
                violation("must not complete", f"{entry.token}: {task}")
            if entry.kind == "download":
                entry.completed_path = task["path"]
            entry.is_completed = True
        if state == "completed" and not entry.is_checked and entry.removal_asked_at is None:
            self._check(entry, task)
        del number

    # Whole and right

    def _digests(self, entry):
        if isinstance(entry.digests, set):
            return entry.digests
        return set(self.world.chaos.ask("versions").get(entry.digests, []))

    def _check(self, entry, task):
        violation = self.ledger.violation
        if entry.kind == "upload":
            self._check_upload(entry, task)
            return
        path = task["path"] or ""
        directory, name = os.path.split(path)
        if not entry.shares_name and name not in entry.names or directory not in entry.place:
            violation("wrong place", f"{entry.token} is {path}, not {entry.names} in {entry.place}")
        try:
            digest, size = digest_of(path)
        except OSError as error:
            if entry.removal_asked_at is None:
                violation("file gone", f"{entry.token}: {error}; {task}")
            return
        if entry.removal_asked_at is not None:
            return
        if digest not in self._digests(entry):
            violation("wrong bytes", f"{entry.token}: {path} has {size} bytes and {digest}, which was never served: {task}")
            self._keep(path, entry)
        if task["bytesDone"] != size and not entry.shares_name:
            violation("wrong size", f"{entry.token}: {path} has {size} bytes, {task}")
        if task["checksum"] and not task["verified"] and not entry.shares_name:
            violation("not verified", f"{entry.token}: {task}")
        entry.is_checked = True
        self.checked += 1
        self.checked_bytes += size

    def _keep(self, path, entry):
        """Keeps a wrong file for whoever looks into it."""
        place = self.world.evidence
        with open(path, "rb") as source, open(os.path.join(place, f"wrong-{entry.token}"), "wb") as file:
            file.write(source.read())

    def _check_upload(self, entry, task):
        if entry.stored is None:
            digests = set(self.world.chaos.ask("uploads").get(entry.token, []))
            if not digests:
                self.ledger.violation("upload gone", f"{entry.token}: nothing came; {task}")
            elif digests != entry.digests:
                self.ledger.violation("wrong upload", f"{entry.token}: {digests} came, not {entry.digests}; {task}")
            size = 0
        else:
            try:
                digest, size = digest_of(entry.stored)
            except OSError as error:
                self.ledger.violation("upload gone", f"{entry.token}: {error}; {task}")
                entry.is_checked = True
                return
            if digest not in entry.digests:
                self.ledger.violation("wrong upload", f"{entry.token}: {entry.stored} has {size} bytes; {task}")
                self._keep(entry.stored, entry)
            os.unlink(entry.stored)
        entry.is_checked = True
        self.checked += 1
        self.checked_bytes += size

    # Getting on

    def _progress(self, tasks, was_disturbed):
        now = time.monotonic()
        signs = {}
        active = sum(task["state"] == "active" for task in tasks.values())
        for number, task in tasks.items():
            sign = (task["state"], task["reason"], task["phase"], task["bytesDone"], task["bytesFetched"],
                    task["attempts"], task["notBefore"])
            old = self.signs.get(number)
            since = now if was_disturbed or old is None or old[0] != sign else old[1]
            signs[number] = (sign, since)
            still = now - since
            if task["state"] == "active" and still > STUCK:
                self._stuck(f"active without progress for {still:.0f} s", task)
            overdue = task["notBefore"] is not None and task["notBefore"] / 1000 < time.time() - OVERDUE
            if task["state"] == "waiting" and task["reason"] in ("retry", "scheduled") and overdue and still > OVERDUE:
                self._stuck(f"waiting though its time came, for {still:.0f} s", task)
            if (task["state"] == "queued" and task["reason"] is None and still > OVERDUE
                    and active < self.world.slots // 2):
                self._stuck(f"queued beside {active} active ones for {still:.0f} s", task)
        self.signs = signs

    def _stuck(self, text, task):
        known = f"stuck {task['id']}"
        if known in self.world.reported:
            return
        self.world.reported.add(known)
        self.ledger.violation("stuck", f"{text}: {json.dumps(task)}")
        self.world.write_evidence(f"stuck-{task['id']}", [task["id"]])

    # The end

    def open_tasks(self, tasks):
        """Returns the tasks that have not come to their end."""
        rest = []
        for task in tasks.values():
            entry = self._entry_of(task)
            if entry is None or task["state"] == "completed":
                continue
            if task["state"] == "cancelled" and entry.wish != Wish.RUN:
                continue
            if task["state"] == "failed" and self._fails_rightly(entry, task):
                continue
            rest.append(task)
        return rest

    def _fails_rightly(self, entry, task):
        code = (task["error"] or {}).get("code")
        if code in entry.codes:
            return code != "dependency" or entry.after is None or not (
                entry.after.is_completed and entry.after.removal_asked_at is None)
        return False

    def rubbish(self, tasks):
        """Returns what lies in the places and belongs to nothing."""
        found = []
        finished = {task["path"] for task in tasks.values() if task["state"] == "completed" and task["kind"] == "download"}
        keeps_part = {number for number, task in tasks.items() if task["state"] != "completed"}
        for root in self.world.roots:
            for directory, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(directory, name)
                    part = PART.match(name)
                    if part:
                        if not self._is_mine(path):
                            continue
                        if int(part.group(1)) not in keeps_part:
                            found.append(f"{path} is left over")
                    elif name.startswith(".dld-"):
                        found.append(f"{path} is left over")
                    else:
                        found += self._stranger(path, finished)
        return found

    def _is_mine(self, path):
        """Whether a part beneath a place that both daemons use is this one's."""
        return f".dld-{self.world.identity()}-" in path

    def wrong_file(self, entry, path):
        """Returns what is wrong with the file of a removed task; None where it is whole."""
        digest, size = digest_of(path)
        if digest in self._digests(entry):
            return None
        return f"{path} of {entry.token}, which was removed, has {size} bytes that were never served"

    def _stranger(self, path, finished):
        token = TOKEN.search(os.path.basename(path))
        is_shared = os.path.basename(path).startswith("same-")
        if path in finished or is_shared:
            return []
        if token is None:
            return [f"{path} is nobody's"]
        if token.group()[4] != self.world.letter:
            return []
        entry = self.ledger.entries.get(token.group())
        if entry is None:
            return [f"{path} is nobody's"]
        if entry.removal_asked_at is not None and entry.removed_at is None:
            return []
        if entry.removed_at is not None and not entry.deletes_file:
            # It had completed before, and its file stays.
            text = self.wrong_file(entry, path)
            return [text] if text else []
        return [f"{path} of {entry.token} ({entry.state}) lies there"]


def digest_of(path):
    """Returns the SHA-256 of a file, and its size."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256")
        return found.hexdigest(), os.fstat(file.fileno()).st_size


def ask(url):
    """Returns what a URL on loopback answers, as JSON."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        return json.loads(answer.read())
