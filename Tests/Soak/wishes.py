"""Draws tasks by lot, and writes them in every form in which a task can be handed over."""

import json
import os
import time

from ledger import Entry

MIB = 1 << 20
SIZES = [0, 1, 1000, 16_384, 65_536, 300_001, 700_000, MIB, 2 * MIB, 4 * MIB + 1, 5 * MIB + 4321, 8 * MIB]
WEIGHTS = [2, 2, 6, 12, 14, 14, 10, 8, 5, 3, 3, 2]
UPLOAD_SIZES = [0, 1, 16_384, 65_536, 300_001, MIB, 3 * MIB]
UPLOAD_WEIGHTS = [1, 1, 5, 5, 5, 3, 1]
HTTP = ["http", "https", "http2"]
CHAOS = ["flaky", "flaky", "ranges", "liar", "moving", "moving", "auth", "token", "redirect", "sums", "meta", "f"]
MOVING = [(300_001, "river"), (MIB, "stream"), (65_536, "brook"), (2 * MIB, "flood")]
NOBODY = "http://127.0.0.1:9"


class Wishes:
    """Draws the tasks of one user."""

    def __init__(self, lot, world, user):
        self.lot, self.world, self.user = lot, world, user
        self.count = 0

    # Drawing

    def token(self):
        """Returns a name that no other task has."""
        self.count += 1
        return f"soak{self.world.letter}{self.user.index:02}n{self.count:05}"

    def size(self):
        """Returns the size of a file."""
        return self.lot.choices(SIZES, WEIGHTS)[0]

    def rate(self):
        """Returns a rate that no task takes for ever with."""
        return round(10 ** self.lot.uniform(5.3, 7))

    def download(self):
        """Returns a download: its specification as `task.add` takes it, and what becomes of it."""
        lot, farm, content = self.lot, self.world.farm, self.world.content
        token, size = self.token(), self.size()
        kind = lot.choices(["http", "file", "chaos", "wrong"], [40, 15, 40, 5])[0]
        if kind == "file":
            names = [name for name in ("ftp", "ftps", "sftp") if name in farm and (name != "sftp" or not self.user.uid)]
            if not self.user.uid:
                names += ["sftp"] * 3
            task = {"url": farm[lot.choice(names)].url(content.name(size)), "output": f"{token}.bin"}
        elif kind == "http":
            name = lot.choice(HTTP)
            url = farm[name].url(content.name(size), slow=lot.random() < 0.1)
            task = {"url": f"{url}?t={token}", "output": f"{token}.bin"}
        elif kind == "wrong":
            return self._wrong(token)
        else:
            return self._chaotic(token, size)
        entry = self._entry(token, {content.digest(size)})
        if lot.random() < 0.4:
            task["checksum"] = f"sha256:{content.digest(size)}"
        if lot.random() < 0.25:
            task["mirrors"] = [self._mirror(size, token) for _ in range(lot.randint(1, 2))]
        if lot.random() < 0.12 and kind == "http":
            task["proxy"] = farm[lot.choice(["socks", "proxy"])].proxy
        if task["url"].startswith("https") and lot.random() < 0.2:
            if lot.random() < 0.5:
                task["caCertificates"] = farm.certificate
            else:
                task["insecure"] = True
        if lot.random() < 0.06:
            self._same_name(task, entry)
        self._options(task)
        self._place(task, entry)
        return task, entry

    def _chaotic(self, token, size):
        lot, content = self.lot, self.world.content
        kind = lot.choice(CHAOS)
        task = {"url": self.world.chaos.url(f"{kind}/{size}/{token}.bin")}
        digest = f"sha256:{content.digest(size)}"
        entry = self._entry(token, {content.digest(size)})
        if kind == "moving":
            size, name = lot.choice(MOVING)
            task["url"] = self.world.chaos.url(f"moving/{size}/{name}/{token}.bin")
            entry.digests = f"{size}/{name}"
        elif kind == "liar" or lot.random() < 0.3:
            task["checksum"] = digest
        if kind == "auth":
            task.update(user="soak", password=f"secret-{token}")
            if lot.random() < 0.15:
                task["password"] = "wrong"
                entry.login = f"secret-{token}"
        elif kind == "token":
            task["headers"] = [f"X-Soak: {token}"]
            task["cookies"] = f"127.0.0.1\tFALSE\t/\tFALSE\t0\tsoak\t{token}\n"
        elif kind == "sums":
            task["checksumURL"] = task["url"]
            # The list names the file of this URL alone.
            entry.is_described = True
            task["url"] = self.world.chaos.url(f"f/{size}/{token}.bin")
            task.pop("checksum", None)
        elif kind == "meta":
            task["metalink"] = entry.is_described = True
        if kind in ("flaky", "ranges") and "checksum" in task and lot.random() < 0.5:
            task["mirrors"] = [self._mirror(size, token)]
        if kind == "meta" and lot.random() < 0.5 or kind != "meta" and lot.random() < 0.3:
            task["output"] = f"{token}.bin"
        self._options(task)
        self._place(task, entry)
        return task, entry

    def _wrong(self, token):
        """A task that cannot complete."""
        lot = self.lot
        what = lot.choice(["missing", "checksum", "large"])
        entry = self._entry(token, set())
        entry.must_fail = True
        url = self.world.chaos.url(f"f/300001/{token}.bin")
        if what == "missing":
            task, entry.codes = {"url": self.world.chaos.url(f"missing/{token}.bin")}, frozenset({"http-404"})
        elif what == "checksum":
            task, entry.codes = {"url": url, "checksum": "sha256:" + "0" * 64}, frozenset({"checksum-mismatch"})
        else:
            task, entry.codes = {"url": url, "maxSize": 65_536}, frozenset({"too-large"})
        self._place(task, entry)
        return task, entry

    def _mirror(self, size, token):
        lot, farm, name = self.lot, self.world.farm, self.world.content.name(size)
        draw = lot.random()
        if draw < 0.1:
            return f"{NOBODY}/{name}?t={token}"
        if draw < 0.3:
            return self.world.chaos.url(f"flaky/{size}/{token}.bin")
        host = lot.choice(["127.0.0.1", "localhost"])
        return farm[lot.choice(HTTP)].url(name, host=host, slow=lot.random() < 0.2) + f"?t={token}"

    def _same_name(self, task, entry):
        """Gives the task a name that others of the same user have too; all these files are alike."""
        size = 65_536
        content, farm = self.world.content, self.world.farm
        task.update(
            url=farm["http"].url(content.name(size)) + f"?t={entry.token}", output=f"same-{self.user.index:02}.bin",
            onConflict=self.lot.choice(["rename", "overwrite", "skip", "fail"]))
        for key in ("checksum", "mirrors", "proxy", "caCertificates"):
            task.pop(key, None)
        entry.digests, entry.shares_name = {content.digest(size)}, True
        if task["onConflict"] == "fail":
            entry.codes = frozenset({"name-conflict"})

    def _options(self, task):
        """Adds what changes nothing of the outcome."""
        lot = self.lot
        if lot.random() < 0.4:
            task["connections"] = lot.choice([1, 2, 3, 4, 8, 16, "auto"])
        if lot.random() < 0.2:
            task["limit"] = self.rate()
        if lot.random() < 0.3:
            task["priority"] = lot.choice(["low", "normal", "high", "now"])
        if lot.random() < 0.1:
            task["startAt"] = lot.randint(1, 6)
        if lot.random() < 0.1:
            task["noMtime"] = True
        if lot.random() < 0.1:
            task["stallTimeout"] = 90_000
        if lot.random() < 0.1:
            task["maxAttempts"] = lot.choice([10, 100, 1_000_000])
        if lot.random() < 0.1:
            task["nameFrom"] = lot.choice(["url", "final", "header"])
        is_http = task["url"].startswith("http")
        if is_http and lot.random() < 0.1:
            task["userAgent"] = "soak/1.0"
        if is_http and lot.random() < 0.1:
            task["referer"] = "http://127.0.0.1/soak"
        if lot.random() < 0.1:
            task["maxSize"] = 1 << 30
        if lot.random() < 0.1:
            task["paused"] = True
        if lot.random() < 0.2:
            task["key"] = f"key-{self.world.letter}{self.user.index:02}-{self.count}"

    def _place(self, task, entry):
        lot, user, daemon = self.lot, self.user, self.world.daemon
        own = os.path.join(daemon.downloads, str(user.uid)) if user.uid else daemon.downloads
        entry.place = [own]
        draw = lot.random()
        if draw < 0.15:
            task["directory"] = lot.choice(["films", "films/old", "~/music" if user.uid else "music"])
            entry.place = [os.path.join(own, task["directory"].removeprefix("~/"))]
        elif draw < 0.25:
            task["directory"] = os.path.join(self.world.small.path, str(user.uid))
            entry.place = [task["directory"]]
        elif draw < 0.40:
            task["directory"] = os.path.join(self.world.slow.path, str(user.uid))
            entry.place = [task["directory"]]
        elif draw < 0.45 and user.uid and not entry.shares_name:
            task["shared"] = True
            entry.place = [daemon.downloads]

    def _entry(self, token, digests):
        return Entry(token, self.user.uid, "download", digests, names={f"{token}.bin"})

    def upload(self, may_pass=True):
        """Returns an upload; `may_pass`: of a file perhaps that dlctl opens for the daemon."""
        lot, farm, content = self.lot, self.world.farm, self.world.content
        token = self.token()
        size = lot.choices(UPLOAD_SIZES, UPLOAD_WEIGHTS)[0]
        entry = Entry(token, self.user.uid, "upload", {content.digest(size)})
        entry.is_passed = may_pass and bool(self.user.uid) and lot.random() < 0.3
        file = self.user.private(size) if entry.is_passed else content.path(content.name(size))
        task = {"kind": "upload", "file": file}
        names = ["http", "https", "http2", "ftp", "ftps", "chaos", "chaos"] + ([] if self.user.uid else ["sftp"] * 6)
        name = lot.choice(names)
        if name == "chaos":
            task["url"] = self.world.chaos.url(f"in/{token}.bin")
            what = lot.choice(["PUT", "POST", "form", "field"])
            if what in ("PUT", "POST"):
                task["method"] = what
                task["contentType"] = "application/x-soak"
            elif what == "form":
                task["form"] = ["title=Sea", f"token={token}"]
            else:
                task["fileField"] = "image"
        else:
            task["url"] = farm[name].upload_url(f"{token}.bin")
            entry.stored = os.path.join(farm.upload_directory(name), f"{token}.bin")
        if lot.random() < 0.2:
            task["limit"] = self.rate()
        if lot.random() < 0.2:
            task["priority"] = lot.choice(["low", "normal", "high", "now"])
        if lot.random() < 0.1:
            task["paused"] = True
        if lot.random() < 0.1:
            task["startAt"] = lot.randint(1, 6)
        if lot.random() < 0.2:
            task["key"] = f"key-{self.world.letter}{self.user.index:02}-{self.count}"
        return task, entry


# Writing

WORDS = {
    "output": "output", "directory": "directory", "checksum": "checksum", "checksumURL": "checksum-url",
    "mirrors": "mirror", "connections": "connections", "limit": "limit", "headers": "header", "user": "user",
    "password": "password-file", "cookies": "cookies", "userAgent": "user-agent", "referer": "referer",
    "proxy": "proxy", "caCertificates": "cacert", "priority": "priority", "maxSize": "max-size",
    "connectTimeout": "connect-timeout", "stallTimeout": "stall-timeout", "maxAttempts": "max-attempts",
    "startAt": "start-at", "afterTask": "after-task", "onConflict": "on-conflict", "nameFrom": "name-from",
    "noMtime": "no-mtime", "insecure": "insecure",
    "shared": "shared", "batch": "batch", "key": "key", "paused": "paused", "metalink": "metalink",
    "method": "method", "contentType": "content-type", "form": "form", "fileField": "file-field", "file": "file",
    "url": "url",
}


class Papers:
    """The files that a user's commands name, readable to everybody and deleted after the command."""

    def __init__(self, place, token):
        self.place, self.token = place, token
        self.paths = []

    def write(self, name, text):
        """Writes a file and returns its path."""
        path = os.path.join(self.place, f"{self.token}-{len(self.paths)}-{name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
        self.paths.append(path)
        return path

    def remove(self):
        """Deletes them all."""
        for path in self.paths:
            os.unlink(path)
        self.paths = []


def _value(key, value, papers):
    """Returns a value as a command line or a queue file takes it."""
    if key == "password":
        return papers.write("password", value + "\n")
    if key == "cookies":
        return papers.write("cookies", "# Netscape HTTP Cookie File\n" + value)
    if key == "startAt":
        return f"+{value}s"
    if key in ("connectTimeout", "stallTimeout"):
        return f"{value}ms"
    return value


def as_words(task, papers):
    """Returns the options of `dlctl add` or `dlctl upload`, and the URL last."""
    words = []
    for key, value in task.items():
        if key in ("url", "kind", "file"):
            continue
        option = f"--{WORDS[key]}"
        if key == "priority" and value == "now":
            words.append("--now")
        elif value is True:
            words.append(option)
        elif isinstance(value, list):
            for one in value:
                words += [option, one]
        else:
            words += [option, str(_value(key, value, papers))]
    return words + ([task["file"]] if task.get("kind") == "upload" else []) + [task["url"]]


def as_parameters(task):
    """Returns the task as `task.add` takes it."""
    parameters = dict(task)
    if "startAt" in task:
        parameters["startAt"] = int((time.time() + task["startAt"]) * 1000)
    if "caCertificates" in task:
        with open(task["caCertificates"], encoding="ascii") as file:
            parameters["caCertificates"] = file.read()
    if "cookies" in task:
        parameters["cookies"] = "# Netscape HTTP Cookie File\n" + task["cookies"]
    return parameters


def as_queue_file(tasks, papers, batch=None):
    """Returns the tasks as a queue file; JSON is YAML."""
    lists = {"download": [], "upload": []}
    for task in tasks:
        entry = {WORDS[key]: _value(key, value, papers) for key, value in task.items() if key not in ("kind", "batch")}
        lists[task.get("kind", "download")].append(entry)
    file = {**({"batch": batch} if batch else {}),
            **({"downloads": lists["download"]} if lists["download"] else {}),
            **({"uploads": lists["upload"]} if lists["upload"] else {})}
    # A file in flow style would be taken for a list of URLs perhaps: one key a line.
    return "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in file.items())


def as_url_list(tasks):
    """Returns the URLs, one a line."""
    return "# of the soak\n" + "".join(task["url"] + "\n" for task in tasks)


def as_aria2(tasks):
    """Returns an input file of aria2."""
    text = ""
    for task in tasks:
        text += "\t".join([task["url"], *task.get("mirrors", [])]) + "\n"
        if "output" in task:
            text += f" out={task['output']}\n"
        if "checksum" in task:
            text += f" checksum=sha-256={task['checksum'].removeprefix('sha256:')}\n"
        for header in task.get("headers", []):
            text += f" header={header}\n"
    return text


def as_metalink(tasks):
    """Returns a Metalink (RFC 5854) with a file for each task."""
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<metalink xmlns="urn:ietf:params:xml:ns:metalink">\n'
    for task in tasks:
        name = task.get("output") or task["url"].rpartition("/")[2]
        text += f'<file name="{name}">'
        if "checksum" in task:
            text += f'<hash type="sha-256">{task["checksum"].removeprefix("sha256:")}</hash>'
        for number, url in enumerate([task["url"], *task.get("mirrors", [])]):
            text += f'<url priority="{number + 1}">{url}</url>'
        text += "</file>\n"
    return text + "</metalink>\n"
