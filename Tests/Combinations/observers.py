"""Observers of a random round: a hook, a webhook's receiver, a subscriber, one that never reads, and backups.

They run while tasks are carried out and the daemon is killed, and are killed themselves. At the end each has to know
what the journal knows: no event is missing, none is repeated where that is promised, and the events of a task are in
order.
"""

import collections
import hashlib
import hmac
import http.server
import json
import os
import random
import socket
import sqlite3
import subprocess
import threading
import time

from processes import Child, free_port

# The types of the events that the hook and the receiver get.
TYPES = ["completed", "failed", "cancelled", "retried"]
SECRET = "of-the-receiver"
# Seconds within which everyone knows everything once all tasks have ended: a receiver that failed is tried again after
# 1, 2, 4 and 8 seconds.
PATIENCE = 40


class Receiver:
    """An HTTP server for webhooks that accepts, refuses, hangs up or answers late, by lot."""

    def __init__(self, lot):
        self.lot, self.lock = lot, threading.Lock()
        # The events that were accepted, as (sequence, task), in the order of their acceptance.
        self.accepted, self.keys, self.faults = [], {}, []
        self.is_honest = False
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers one message."""

            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                """Takes an event."""
                receiver.take(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, format, *arguments):  # pylint: disable=redefined-builtin
                """Says nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def take(self, handler, body):
        """Checks the signature and the key of a message, and answers by lot."""
        event = json.loads(body)
        with self.lock:
            answer = "accept" if self.is_honest else self.lot.choices(
                ["accept", "fail", "refuse", "close", "late"], [6, 1, 1, 1, 1])[0]
            seconds, mac = (part.split("=", 1)[1] for part in handler.headers["Dld-Signature"].split(","))
            expected = hmac.new(SECRET.encode(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
            if mac != expected:
                self.faults.append(f"the signature of event {event['sequence']} is wrong")
            key = handler.headers["Idempotency-Key"]
            if self.keys.setdefault(key, event["sequence"]) != event["sequence"]:
                self.faults.append(f"events {self.keys[key]} and {event['sequence']} have one key")
            if answer in ("accept", "late"):
                self.accepted.append((event["sequence"], event["id"]))
        if answer == "late":
            time.sleep(0.7)
        if answer == "close":
            handler.close_connection = True
            return
        handler.send_response({"fail": 500, "refuse": 409}.get(answer, 200))
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def end(self):
        """Stops listening."""
        self.server.shutdown()
        self.server.server_close()


class Subscriber(threading.Thread):
    """A client that reads all events and connects again whenever its connection ends."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.events, self.faults = [], []
        self.is_over = False

    def run(self):
        while not self.is_over:
            try:
                self._read()
            except OSError:
                time.sleep(0.02)

    def _read(self):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(0.5)
            connection.connect(self.path)
            after = self.events[-1]["sequence"] if self.events else 0
            request = {"jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": {"after": after}}
            connection.sendall(json.dumps(request).encode() + b"\n")
            rest = b""
            while not self.is_over:
                try:
                    part = connection.recv(1 << 16)
                except TimeoutError:
                    continue
                if not part:
                    return
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, message):
        if message.get("method") != "event":
            if "error" in message:
                self.faults.append(f"the subscription was refused: {message['error']}")
            return
        event = message["params"]
        if event["type"] == "gap":
            self.faults.append(f"a gap at event {event['sequence']}")
        elif self.events and event["sequence"] <= self.events[-1]["sequence"]:
            self.faults.append(f"event {event['sequence']} came after {self.events[-1]['sequence']}")
        else:
            self.events.append(event)


class Observers:
    """All observers of one round, and what is done to them."""

    def __init__(self, daemon, seed):
        self.daemon, self.lot = daemon, random.Random(f"observers of {seed}")
        self.receiver = Receiver(random.Random(f"receiver of {seed}"))
        self.notify = [{"url": self.receiver.url, "on": TYPES, "secret": SECRET}]
        self.subscriber = Subscriber(daemon.socket)
        self.place = os.path.join(daemon.place, "hook")
        os.makedirs(os.path.join(self.place, "done"))
        self.hook, self.hook_kills = None, 0
        self.stuck, self.faults, self.backups = None, [], 0
        self.summary = "not judged"

    def start(self):
        """Lets all begin; the daemon runs already."""
        self.subscriber.start()
        self._start_hook()
        self._get_stuck()

    def _start_hook(self):
        # `mkdir` tells whether the event was handled before this run of the hook.
        command = (
            f'cd {self.place}; echo "$DLD_SEQUENCE" >> all; mkdir "done/$DLD_SEQUENCE" || exit 0; '
            'echo "$DLD_SEQUENCE $DLD_ID" >> log')
        self.hook = Child(
            [os.path.join(self.daemon.programs, "dlctl"), "--socket", self.daemon.socket, "events", "--on",
             ",".join(TYPES), "--exec", command, "--cursor", "round", "--after", "0", "--jobs", "3"],
            os.path.join(self.place, "messages"), {"XDG_STATE_HOME": self.place, "HOME": self.place})

    def _watch_hook(self):
        """Starts the hook again if it met no daemon, as systemd would."""
        if self.hook.poll() is not None:
            self._start_hook()

    def _get_stuck(self):
        """Opens a subscription to everything that is never read."""
        if self.stuck is not None:
            self.stuck.close()
        self.stuck = socket.socket(socket.AF_UNIX)
        request = {"jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": {"types": ["progress", *TYPES]}}
        try:
            self.stuck.connect(self.daemon.socket)
            self.stuck.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            pass

    def disturb(self):
        """Does something to the observers, or asks for something, by lot."""
        self._watch_hook()
        what = self.lot.choice(["nothing", "hook", "stuck", "backup", "ask"])
        if what == "hook":
            self.hook_kills += 1
            self.hook.kill()
            self._start_hook()
        elif what == "stuck":
            self._get_stuck()
        elif what == "backup":
            self._back_up()
        elif what == "ask":
            for command in (["list", "--queue"], ["status"], ["list", "--json"], ["events", "--after", "0"]):
                done = self._dlctl(*command)
                if done.returncode != 0:
                    self.faults.append(f"dlctl {command}: {done.stderr}")
        return what

    def _dlctl(self, *arguments):
        return subprocess.run(
            [os.path.join(self.daemon.programs, "dlctl"), "--socket", self.daemon.socket, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def _back_up(self):
        self.backups += 1
        copy = os.path.join(self.daemon.place, f"backup-{self.backups}")
        done = self._dlctl("backup", copy)
        if done.returncode != 0:
            self.faults.append(f"dlctl backup: {done.stderr}")
            return
        with sqlite3.connect(copy) as database:
            found = database.execute("PRAGMA integrity_check").fetchall()
        database.close()
        if found != [("ok",)]:
            self.faults.append(f"the backup is damaged: {found}")

    def judge(self):
        """Waits until everyone knows what the journal knows; returns what is wrong."""
        self.receiver.is_honest = True
        events = self._journal()
        wanted = {event["sequence"]: event["id"] for event in events if event["type"] in TYPES}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self._watch_hook()
            handled, accepted = self._handled(), set(self.receiver.accepted)
            if (len(handled) >= len(wanted) and {one for one, _ in accepted} >= set(wanted)
                    and len(self.subscriber.events) >= len(events)):
                break
            time.sleep(0.05)
        self._compare("the hook", self._handled(), wanted)
        first = {}
        for sequence, task in self.receiver.accepted:
            first.setdefault(sequence, task)
        self._compare("the receiver", list(first.items()), wanted)
        got = [event["sequence"] for event in self.subscriber.events]
        if got != [event["sequence"] for event in events]:
            self.faults.append(f"the subscriber got {got} of {[event['sequence'] for event in events]}")
        repeated = [one for one, count in collections.Counter(self._lines("all")).items() if count > 1]
        self.summary = (
            f"{len(self.subscriber.events)} events, {len(self._handled())} commands, {len(self.receiver.accepted)} "
            f"messages, {self.backups} backups, {self.hook_kills} kills of the hook")
        # A kill may meet each command under way once.
        if len(repeated) > 3 * self.hook_kills:
            self.faults.append(f"the hook ran again for {repeated} after {self.hook_kills} kills")
        return self.faults + self.receiver.faults + self.subscriber.faults

    def _compare(self, who, found, wanted):
        """Compares events, as (sequence, task) in the order in which they were handled, with those of the journal."""
        missing = sorted(set(wanted) - {sequence for sequence, _ in found})
        if missing:
            self.faults.append(f"{who} missed the events {missing} of {sorted(wanted)}")
        foreign = [one for one in found if wanted.get(one[0]) != one[1]]
        if foreign:
            self.faults.append(f"{who} got {foreign}, which are not in the journal")
        last = {}
        for sequence, task in found:
            if sequence <= last.get(task, 0):
                self.faults.append(f"{who} got event {sequence} of task {task} after {last[task]}")
            last[task] = sequence

    def _lines(self, name):
        try:
            with open(os.path.join(self.place, name), encoding="ascii") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def _handled(self):
        return [tuple(map(int, line.split())) for line in self._lines("log")]

    def _journal(self):
        """Returns all events of the journal."""
        events, after = [], 0
        while after is not None:
            page = self.daemon.call("events.list", {"after": after})
            events += page["events"]
            after = page["next"]
        return events

    def evidence(self):
        """Returns what the hook said."""
        return "hook:\n" + "\n".join(self._lines("messages")[-40:])

    def end(self):
        """Ends all observers."""
        self.subscriber.is_over = True
        if self.hook is not None:
            self.hook.kill()
        if self.stuck is not None:
            self.stuck.close()
        self.receiver.end()
