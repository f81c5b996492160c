"""What was asked of the daemons and what they said to it: the account that the end is held against."""

import collections
import dataclasses
import enum
import re
import threading
import time

TOKEN = re.compile(r"soak[a-z]\d{2}n\d{5}")


class Wish(enum.Enum):
    """What the owner last asked of a task. `UNSURE` ones were asked without an answer."""

    RUN = "run"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    UNSURE = "unsure"


@dataclasses.dataclass(eq=False)
class Entry:
    """A task that somebody asked for, under a token that its URL, its name or its key holds."""

    token: str
    owner: int
    kind: str
    # SHA-256 of every version that may arrive; a function where they are known only afterwards.
    digests: object
    # Of a download: the directory beneath which it has to lie, and what its name may be.
    place: str = ""
    names: object = None
    # Its URL leads to a Metalink, or a list of digests goes with it: it has to keep it.
    is_described: bool = False
    # Of an upload: whether dlctl opens its file for the daemon.
    is_passed: bool = False
    # Of an upload: the path of what the server keeps, None for the scripted server.
    stored: object = None
    # Codes of an error that it may end with whatever is done; `must_fail`: it never completes.
    codes: frozenset = frozenset()
    must_fail: bool = False
    # Its name may be shared with others, which overwrite it.
    shares_name: bool = False
    # It stands in a queue file that is applied at each start: once removed it would come anew.
    is_standing: bool = False
    batch: object = None
    after: object = None
    login: object = None

    id: object = None
    asked_at: float = 0.0
    acknowledged_at: object = None
    # Refused by the daemon: nothing of it may be there.
    is_refused: bool = False
    wish: Wish = Wish.RUN
    wished_at: float = 0.0
    removal_asked_at: object = None
    removed_at: object = None
    # Its finished file is to go with it.
    deletes_file: bool = False
    is_completed: bool = False
    is_checked: bool = False
    completed_path: object = None
    state: object = None
    reason: object = None
    # The code of what ails it.
    error: object = None

    @property
    def is_known(self):
        """Whether the daemon gave out its id, or it was seen."""
        return self.id is not None and not self.is_refused

    @property
    def is_open(self):
        """Whether it takes one of its owner's places."""
        return self.is_known and self.removal_asked_at is None and not self.is_completed and not self.has_failed_rightly

    @property
    def has_failed_rightly(self):
        """Whether it ended as it had to."""
        return self.must_fail and self.state == "failed"

    def told(self):
        """Returns what its owner asked of it, for whoever asks why it has not come to its end."""
        return {"token": self.token, "wish": self.wish.value, "state": self.state, "batch": self.batch,
                "is standing": self.is_standing, "must fail": self.must_fail, "codes": sorted(self.codes),
                "removal asked": self.removal_asked_at is not None, "removed": self.removed_at is not None}

    def wants(self, wish):
        """Notes what is asked for from now on."""
        self.wish, self.wished_at = wish, time.monotonic()


class Ledger:
    """All entries of one daemon, and the violations that were found."""

    def __init__(self, name, report):
        self.name, self.report = name, report
        self.lock = threading.Lock()
        self.entries = {}
        self.by_id = {}
        self.sets = []
        self.failures = collections.Counter()

    def register(self, entry):
        """Notes a task before it is asked for."""
        entry.asked_at = time.monotonic()
        with self.lock:
            self.entries[entry.token] = entry

    def acknowledge(self, entry, number):
        """Notes the id that the daemon gave."""
        with self.lock:
            if entry.id is not None and entry.id != number:
                self.violation("doubled", f"{entry.token} has the ids {entry.id} and {number}")
                return
            other = self.by_id.get(number)
            if other is not None and other is not entry:
                self.violation("wrong id", f"{entry.token} and {other.token} have the id {number}")
            entry.id = number
            self.by_id[number] = entry
            if entry.acknowledged_at is None:
                entry.acknowledged_at = time.monotonic()

    def adopt(self, entry, number):
        """Notes the id of a task that was seen before its answer came; returns whether it is the only one."""
        with self.lock:
            if entry.id is not None:
                return entry.id == number
            entry.id = number
            self.by_id[number] = entry
            return True

    def of(self, owner):
        """Returns the entries of one owner."""
        with self.lock:
            return [entry for entry in self.entries.values() if entry.owner == owner]

    def all(self):
        """Returns every entry."""
        with self.lock:
            return list(self.entries.values())

    def violation(self, kind, text):
        """Tells of something that must not be."""
        self.report.violation(f"{self.name}: {kind}", text)


class Report:
    """Prints what happens, and gathers the violations, each kind a few times in full."""

    SHOWN = 12

    def __init__(self):
        self.lock = threading.RLock()
        self.begun = time.monotonic()
        self.violations = {}
        self.notes = collections.Counter()
        self.seen = set()

    def say(self, text):
        """Prints a line with the time since the start."""
        with self.lock:
            span = int(time.monotonic() - self.begun)
            print(f"{span // 60:3}:{span % 60:02} {text}", flush=True)

    def violation(self, kind, text):
        """Notes a violation, once for each text."""
        with self.lock:
            if (kind, text) in self.seen:
                return
            self.seen.add((kind, text))
            texts = self.violations.setdefault(kind, [])
            texts.append(text)
            if len(texts) <= self.SHOWN:
                self.say(f"VIOLATION {kind}: {text}")

    def note(self, text):
        """Counts something worth knowing that is no violation."""
        with self.lock:
            self.notes[text] += 1
