"""One user: a random stream of commands, by `dlctl` and by raw lines, each answer judged at once."""

import json
import os
import random
import shutil
import socket
import threading
import time

import dlctl
import wishes
from daemon import Refused
from identity import acting_as
from ledger import Entry, Wish
from wishes import Papers, Wishes

# Tasks of one user that have not completed, and completed ones that are kept.
OPEN = 14
KEPT = 18
FINE = {0}
MAYBE = {0, 1}
STATES = ["queued", "active", "waiting", "paused", "completed", "failed", "cancelled"]


class User(threading.Thread):
    """Acts until it is told to stop."""

    def __init__(self, world, index, uid, seed):
        super().__init__(name=f"user {world.letter}{index:02}")
        self.world, self.index, self.uid = world, index, uid
        self.lot = random.Random(seed)
        self.wishes = Wishes(self.lot, world, self)
        self.stopping = threading.Event()
        self.commands = 0
        self.batches = {}
        self.unapplied = []
        self.unkeyed = []
        # Tasks whose removal nobody answered, or that it was refused for the moment.
        self.unremoved = []
        self.actions = {
            self.add: 20, self.add_file: 4, self.add_set: 3, self.apply: 4, self.drop: 2, self.upload: 7,
            self.pause_resume: 8, self.filtered: 5, self.cancel: 3, self.retry: 3, self.remove: 4, self.set: 7,
            self.move: 3, self.look: 10, self.wait: 2, self.foreign: 4, self.forbidden: 1, self.raw_line: 2,
            self.raw_batch: 1, self.add_and_wait: 2, self.standstill: 2, self.after: 1, self.aborted_set: 1,
            self.log_in: 2,
        }

    def run(self):
        while not self.stopping.is_set():
            try:
                self.turn()
            except Exception as error:  # pylint: disable=broad-except
                # A mistake of the soak itself has to be seen too.
                import traceback  # pylint: disable=import-outside-toplevel
                self.world.ledger.violation("the soak itself", f"{error!r}: {traceback.format_exc()[-900:]}")
            self.stopping.wait(self.lot.uniform(0.2, 1.4) * self.world.pace)

    def turn(self):
        """Does one thing."""
        mine = self.world.ledger.of(self.uid)
        done = [entry for entry in mine if (entry.is_checked or entry.has_failed_rightly) and entry.removal_asked_at is None
                and not entry.is_standing and not any(entry.batch == one[0] for one in self.unapplied)]
        if len(done) > KEPT:
            self.tidy(done)
            return
        opened = [entry for entry in mine if entry.is_open]
        if len(opened) >= OPEN:
            action = self.lot.choice([
                self.pause_resume, self.resume_all, self.resume_all, self.retry_failed, self.remove, self.look, self.set,
                self.move, self.foreign, self.filtered])
        else:
            action = self.lot.choices(list(self.actions), list(self.actions.values()))[0]
        action()

    # Asking

    def say(self, words, expected=MAYBE, text=None):
        """Runs `dlctl`; returns its answer, and whether what it says can be relied on."""
        life = self.world.life
        begun = life.mark()
        answer = self.world.dlctl.run(self.uid, words, text)
        self.commands += 1
        if answer.status is None:
            self.world.ledger.violation("hangs", str(answer))
            return answer, False
        if answer.status in expected:
            return answer, True
        if life.was_disturbed(begun) and answer.status in {1, 69, 75, 77}:
            return answer, False
        self.world.ledger.violation("unexpected answer", str(answer))
        return answer, False

    def json(self, words, expected=MAYBE, text=None):
        """As `say`, with `--json`: the value, None where there is none."""
        answer, is_sure = self.say([*words, "--json"], expected, text)
        if not is_sure or answer.status != 0 and not answer.output.strip():
            return None, is_sure
        try:
            return json.loads(answer.output), is_sure
        except ValueError:
            self.world.ledger.violation("no JSON", str(answer))
            return None, False

    def call(self, method, parameters=None):
        """Makes a raw call; the result, or the error, or None where there was no answer."""
        self.world.usage.note(method)
        self.commands += 1
        begun = self.world.life.mark()
        try:
            with acting_as(self.uid, dlctl.GROUP_ID):
                return self.world.daemon.call(method, parameters)
        except Refused as error:
            if error.code == -32603 or '"internal"' in str(error):
                if not self.world.life.was_disturbed(begun):
                    self.world.ledger.violation("internal", f"{method} {parameters}: {error}")
            return error
        except (OSError, ValueError) as error:
            if not self.world.life.was_disturbed(begun):
                self.world.ledger.violation("no answer", f"{method} {str(parameters)[:300]}: {error!r}")
            return None

    def papers(self, token):
        """Returns a place for the files that a command names."""
        return Papers(self.world.papers, token)

    def mine(self, *, among=None):
        """Returns own tasks with an id that nobody asked to remove, and that no queue file may bring anew."""
        unapplied = {batch for batch, _, _, _ in self.unapplied}
        found = [entry for entry in self.world.ledger.of(self.uid)
                 if entry.is_known and entry.removal_asked_at is None and not entry.is_standing
                 and not (entry.batch and entry.batch in unapplied) and (among is None or among(entry))]
        return found[-60:]

    def some(self, most, among=None):
        """Returns a few of them."""
        found = self.mine(among=among)
        return self.lot.sample(found, min(len(found), self.lot.randint(1, most))) if found else []

    def foreign_entry(self):
        """Returns another user's task, or None."""
        found = [entry for entry in self.world.ledger.all()[-400:] if entry.is_known and entry.owner != self.uid]
        return self.lot.choice(found) if found and self.uid else None

    # Adding

    def _registered(self, draw, batch=None):
        task, entry = draw()
        entry.batch = batch
        self.world.ledger.register(entry)
        if task.get("paused"):
            entry.wants(Wish.UNSURE)
        return task, entry

    def _draw(self):
        return self._registered(self.wishes.download)

    def _listed_upload(self):
        return self.wishes.upload(may_pass=False)

    def add(self):
        """Adds a download, by either way; one with a key again where no answer came."""
        self._hand_over(*self._draw())

    def private(self, size):
        """Returns a file of so many bytes that this user alone can open; dlctl has to pass it to the daemon."""
        path = os.path.join(self.world.home(self.uid), f"private-{size}")
        if not os.path.exists(path):
            shutil.copyfile(self.world.content.path(self.world.content.name(size)), path)
            os.chown(path, self.uid, dlctl.GROUP_ID)
            os.chmod(path, 0o600)
        return path

    def upload(self):
        """Adds an upload."""
        self._hand_over(*self._registered(self.wishes.upload))

    def _hand_over(self, task, entry):
        ledger = self.world.ledger
        for _ in range(4 if "key" in task else 1):
            if self.lot.random() < 0.3 and not entry.is_passed:
                result = self.call("task.add", {"tasks": [wishes.as_parameters(task)]})
                if isinstance(result, dict):
                    ledger.acknowledge(entry, result["ids"][0])
                    return
                if isinstance(result, Refused):
                    self._refused(entry, str(result), task)
                    return
            else:
                papers = self.papers(entry.token)
                command = "upload" if entry.kind == "upload" else "add"
                value, is_sure = self.json([command, *wishes.as_words(task, papers)], FINE)
                papers.remove()
                if is_sure and value is not None:
                    if entry.is_passed:
                        self.world.usage.note("source.receive")
                    ledger.acknowledge(entry, value["ids"][0])
                    return
            time.sleep(1)

    def _refused(self, entry, text, task):
        """A well-formed task is refused only where the daemon is about to end."""
        if not self.world.life.is_troubled():
            self.world.ledger.violation("refused", f"{task}: {text}")

    def add_and_wait(self):
        """Adds several honest ones in one call and waits for their end."""
        pairs = [self._draw() for _ in range(self.lot.randint(1, 2))]
        farm, content = self.world.farm, self.world.content
        urls = []
        for _, entry in pairs:
            size = self.wishes.size()
            entry.digests, entry.must_fail, entry.codes, entry.login = {content.digest(size)}, False, frozenset(), None
            entry.place, entry.shares_name = [self._own_place()], False
            entry.wants(Wish.RUN)
            urls.append(self.world.chaos.url(f"f/{size}/{entry.token}.bin"))
        del farm
        batch = f"wait-{self.index}"
        words = ["add", "--wait", "--now", "--batch", batch, *urls]
        life = self.world.life
        begun = life.mark()
        answer = self.world.dlctl.run(self.uid, [*words, "--json"], limit=150)
        if answer.status == 0:
            value = json.loads(answer.output)
            for (_, entry), number in zip(pairs, value["ids"]):
                self.world.ledger.acknowledge(entry, number)
            for task in value["tasks"]:
                if task["state"] != "completed":
                    self.world.ledger.violation("wait", f"exit status 0 and {task}")
        elif answer.status is None:
            self.world.ledger.violation("hangs", str(answer))
        elif not (life.was_disturbed(begun) or life.is_troubled() or self.world.is_rough):
            self.world.ledger.violation("unexpected answer", str(answer))

    def _own_place(self):
        downloads = self.world.daemon.downloads
        return os.path.join(downloads, str(self.uid)) if self.uid else downloads

    def after(self):
        """Adds a task that waits for another one; where that fails, it fails."""
        before = self.some(1, lambda entry: not entry.is_completed and entry.wish == Wish.RUN)
        if not before:
            return
        task, entry = self._draw()
        task["afterTask"], entry.after = before[0].id, before[0]
        entry.codes = entry.codes | {"dependency"}
        self._hand_over(task, entry)

    def _plain(self, count):
        """Draws tasks that can stand in any file: their URL names them."""
        pairs = []
        for _ in range(count):
            token, size = self.wishes.token(), self.wishes.size()
            kind = self.lot.choice(["f", "flaky", "ranges", "redirect"])
            digest = self.world.content.digest(size)
            entry = Entry(token, self.uid, "download", {digest}, names={f"{token}.bin"}, place=[self._own_place()])
            task = {"url": self.world.chaos.url(f"{kind}/{size}/{token}.bin"), "output": f"{token}.bin"}
            if self.lot.random() < 0.6:
                task["checksum"] = f"sha256:{digest}"
                task["mirrors"] = [self.world.chaos.url(f"f/{size}/{token}.bin?mirror")]
            self.world.ledger.register(entry)
            pairs.append((task, entry))
        return pairs

    def _list_text(self, pairs, form):
        tasks = [task for task, _ in pairs]
        if form == "list":
            return wishes.as_url_list(tasks)
        return wishes.as_aria2(tasks) if form == "aria2" else wishes.as_metalink(tasks)

    def add_file(self):
        """Adds what a list, an input file of aria2 or a Metalink names: all of it or none."""
        form = self.lot.choice(["list", "aria2", "metalink"])
        pairs = self._plain(self.lot.randint(1, 4))
        text = self._list_text(pairs, form)
        papers = self.papers(pairs[0][1].token)
        if self.lot.random() < 0.5:
            value, is_sure = self.json(["add", "--input", "-"], FINE, text)
        else:
            value, is_sure = self.json(["add", "--input", papers.write(form, text)], FINE)
        papers.remove()
        if is_sure and value is not None:
            if len(value["ids"]) != len(pairs):
                self.world.ledger.violation("wrong count", f"{value} for {text}")
            for (_, entry), number in zip(pairs, value["ids"]):
                self.world.ledger.acknowledge(entry, number)
        else:
            self.world.ledger.sets.append([entry for _, entry in pairs])

    def add_set(self):
        """Adds a set by raw lines: begin, put, commit."""
        pairs = [self._draw() for _ in range(self.lot.randint(2, 5))]
        pairs = [(task, entry) for task, entry in pairs]
        batch = f"set-{self.index}-{self.wishes.count}"
        for _, entry in pairs:
            entry.batch = batch
        begun = self.call("queue.begin", {"batch": batch} if self.lot.random() < 0.5 else {})
        ledger = self.world.ledger
        if not isinstance(begun, dict):
            self._never(pairs, begun)
            return
        for task, entry in pairs:
            result = self.call(
                "queue.put", {"queue": begun["queue"], "entries": [wishes.as_parameters(task)]})
            if not isinstance(result, dict):
                self._never(pairs, result)
                return
        result = self.call("queue.commit", {"queue": begun["queue"]})
        if not isinstance(result, dict):
            if result is None:
                ledger.sets.append([entry for _, entry in pairs])
            else:
                self._never(pairs, result)
            return
        numbers = [number for first, last in result["ids"] for number in range(first, last + 1)]
        if len(numbers) == len(pairs):
            for (_, entry), number in zip(pairs, numbers):
                ledger.acknowledge(entry, number)
        else:
            ledger.violation("wrong count", f"{result} for {len(pairs)} entries of {batch}")

    def _never(self, pairs, result):
        """Notes that nothing of a set may ever be there."""
        if isinstance(result, Refused) and not self.world.life.is_troubled():
            self.world.ledger.violation("refused", f"a set {[task for task, _ in pairs]}: {result}")
        for _, entry in pairs:
            entry.is_refused = True

    def aborted_set(self):
        """Begins a set and takes it back, or only says what would change."""
        pairs = [self._draw()]
        self._never(pairs, None)
        begun = self.call("queue.begin", {"batch": f"never-{self.index}"})
        if not isinstance(begun, dict):
            return
        self.call("queue.put", {"queue": begun["queue"], "entries": [wishes.as_parameters(pairs[0][0])]})
        if self.lot.random() < 0.5:
            self.call("queue.commit", {"queue": begun["queue"], "dryRun": True})
        self.call("queue.abort", {"queue": begun["queue"]})

    def apply(self):
        """Applies a queue file, again where no answer came, and a changed one later."""
        if self.unapplied and self.lot.random() < 0.7:
            batch, tasks, entries, way = self.unapplied.pop()
        elif self.batches and self.lot.random() < 0.4:
            self._apply_again()
            return
        else:
            batch = f"batch-{self.world.letter}{self.index:02}-{self.wishes.count}"
            draws = [self._listed_upload if self.lot.random() < 0.2 else self.wishes.download
                     for _ in range(self.lot.randint(2, 5))]
            pairs = [self._registered(draw, batch) for draw in draws]
            tasks, entries = [task for task, _ in pairs], [entry for _, entry in pairs]
            way = self.lot.choice(["apply", "add"])
        papers = self.papers(f"apply-{self.world.letter}{self.index}")
        text = wishes.as_queue_file(tasks, papers, batch)
        path = papers.write("queue.yaml", text)
        words = ["queue", "apply", path] if way == "apply" else ["add", "--input", path, "--batch", batch]
        value, is_sure = self.json(words, FINE)
        papers.remove()
        if is_sure and value is not None:
            for entry in entries:
                entry.acknowledged_at = entry.acknowledged_at or time.monotonic()
            self.batches[batch] = (tasks, entries)
            for other in list(self.batches)[:-4]:
                del self.batches[other]
        else:
            self.unapplied.append((batch, tasks, entries, way))

    def _apply_again(self):
        batch = self.lot.choice(list(self.batches))
        tasks, entries = self.batches[batch]
        if any(entry.removal_asked_at for entry in entries):
            # It would come anew under the same token.
            del self.batches[batch]
            return
        pairs = list(zip(tasks, entries))
        prunes = self.lot.random() < 0.3
        tries = self.lot.random() < 0.3
        tasks = [dict(task, priority=self.lot.choice(["low", "high"])) for task in tasks]
        if prunes:
            tasks = tasks[1:]
        papers = self.papers(f"again-{self.world.letter}{self.index}")
        path = papers.write("queue.yaml", wishes.as_queue_file(tasks, papers, batch))
        words = ["queue", "apply", path, *(["--prune", "--yes"] if prunes else []), *(["--dry-run"] if tries else [])]
        if prunes and not tries:
            entries[0].wants(Wish.UNSURE)
            del self.batches[batch]
        for task, entry in pairs:
            if task.get("paused") and not tries and entry.wish == Wish.RUN:
                # Where it has failed meanwhile, it stands as the file says: paused.
                entry.wants(Wish.UNSURE)
        self.json(words, FINE)
        papers.remove()

    def drop(self):
        """Drops a file into the watched directory, as programs do it: under another name first, or written in place."""
        form = self.lot.choice(["list", "aria2", "metalink", "queue"])
        pairs = self._plain(self.lot.randint(1, 3))
        text = (wishes.as_queue_file([task for task, _ in pairs], None) if form == "queue"
                else self._list_text(pairs, form))
        name = f"{pairs[0][1].token}-{form}"
        path = os.path.join(self.world.drops if self.uid else self.world.own_drops, name)
        moves = self.lot.random() < 0.5
        with acting_as(self.uid, dlctl.GROUP_ID):
            with open(path + ".tmp" if moves else path, "w", encoding="utf-8") as file:
                file.write(text)
            if moves:
                os.rename(path + ".tmp", path)
        self.world.dropped[path] = [entry for _, entry in pairs]

    # Steering

    def _select(self, verb, entries, *, delete_file=False):
        """Acts on tasks by their ids; returns those that were changed, and those of which it is not known."""
        numbers = [entry.id for entry in entries]
        if self.lot.random() < 0.4:
            parameters = {"ids": numbers, **({"deleteFile": True} if delete_file else {})}
            value = self.call(f"task.{verb}", parameters)
            value = value if isinstance(value, dict) else None
        else:
            words = [verb, *map(str, numbers), *(["--delete-file"] if delete_file else [])]
            lost = verb in ("resume", "retry") and any(entry.error == "source-lost" for entry in entries)
            value, _ = self.json(words)
            if lost and value is not None:
                # dlctl passes them anew.
                self.world.usage.note("source.receive", "source.attach")
            if value is not None and "errors" not in value:
                value = None
        if value is None:
            return [], entries
        refused = {error["id"]: error for error in value["errors"]}
        for entry in entries:
            error = refused.get(entry.id)
            if error is not None and error["code"] == "unknown-task":
                self.world.ledger.violation("lost", f"{verb} of {entry.token}: {error}")
        return [entry for entry in entries if entry.id not in refused], []

    def pause_resume(self):
        """Pauses some, or lets some go on."""
        verb = self.lot.choice(["pause", "resume", "resume"])
        entries = self.some(3, lambda entry: not entry.is_completed)
        if not entries:
            return
        before = {entry: entry.wish for entry in entries}
        for entry in entries:
            entry.wants(Wish.UNSURE if before[entry] != Wish.CANCELLED else Wish.CANCELLED)
        changed, _ = self._select(verb, entries)
        for entry in changed:
            entry.wants(Wish.PAUSED if verb == "pause" else Wish.RUN)

    def resume_all(self):
        """Lets everything go on."""
        self._forget_pauses()
        self.json(["resume", *(["--all"] if self.uid else map(str, [entry.id for entry in self.mine(
            among=lambda entry: not entry.is_completed)] or [1]))])

    def _forget_pauses(self):
        for entry in self.world.ledger.of(self.uid):
            if entry.wish == Wish.PAUSED:
                entry.wants(Wish.UNSURE)

    def filtered(self):
        """Acts on what a filter finds among the user's own tasks; or only lists it."""
        if not self.uid:
            return
        verb = self.lot.choice(["pause", "resume", "resume", "retry", "cancel", "set"])
        batches = sorted({entry.batch for entry in self.mine() if entry.batch})
        condition = self.lot.choice([
            ["--all"], ["--state", self.lot.choice(STATES)], ["--search", "flaky"],
            ["--since", "1h"], ["--owner", str(self.uid)], ["--until", "1h", "--state", "queued"],
            *([["--batch", self.lot.choice(batches)]] if batches else [])])
        tries = self.lot.random() < 0.3
        if verb == "cancel":
            if not batches:
                return
            condition = ["--batch", self.lot.choice(batches)]
        if not tries:
            # Those too whose ids nobody has told yet: dropped ones, and those of a queue file.
            for entry in self.world.ledger.of(self.uid):
                if entry.is_completed or entry.is_refused or entry.removal_asked_at is not None:
                    continue
                if verb in ("pause", "resume") and entry.wish == Wish.CANCELLED:
                    continue
                if verb == "cancel" and entry.batch != condition[1]:
                    continue
                entry.wants(Wish.UNSURE)
        changes = ["--limit", self.lot.choice(["none", "3M"]), "--priority", "normal"] if verb == "set" else []
        words = [verb, *condition, *changes, *(["--dry-run"] if tries else [])]
        if self.lot.random() < 0.2 and not tries:
            # Of the user's own alone, whatever is agreed to.
            words.append("--yes")
        self.json(words)

    def cancel(self):
        """Ends some."""
        entries = self.some(2, lambda entry: not entry.is_completed)
        if not entries:
            return
        for entry in entries:
            entry.wants(Wish.UNSURE)
        changed, _ = self._select("cancel", entries)
        for entry in changed:
            entry.wants(Wish.CANCELLED)

    def retry(self):
        """Takes some back."""
        entries = self.some(3, lambda entry: not entry.is_completed and (
            entry.state in ("failed", "cancelled") or entry.wish in (Wish.CANCELLED, Wish.UNSURE)))
        if not entries:
            return
        for entry in entries:
            entry.wants(Wish.UNSURE)
        changed, _ = self._select("retry", entries)
        for entry in changed:
            entry.wants(Wish.RUN)

    def retry_failed(self):
        """Takes everything back that failed."""
        self.json(["retry", *(["--state", "failed"] if self.uid else map(str, [entry.id for entry in self.mine(
            among=lambda entry: entry.state == "failed")] or [1]))])

    def remove(self):
        """Forgets some, whatever they are at."""
        self._remove(self.some(2, lambda entry: not entry.shares_name), self.lot.random() < 0.5)

    def tidy(self, done):
        """Forgets the oldest of those that completed, and deletes what stays of them, as their owner."""
        self._remove([entry for entry in done if not entry.shares_name][:6] or done[:6], self.lot.random() < 0.5)

    def _remove(self, entries, delete_file):
        if not entries:
            return
        for entry in entries:
            entry.removal_asked_at, entry.deletes_file = time.monotonic(), delete_file
        self.remove_again()
        changed, _ = self._select("remove", entries, delete_file=delete_file)
        for entry in changed:
            self._forget(entry)
        self.unremoved += [entry for entry in entries if entry.removed_at is None]

    def remove_again(self):
        """Removes what may have been removed: of whose removal there was no answer. Else its file would lie there for
        ever, and the small disk be full of such files after an hour."""
        asked, self.unremoved = self.unremoved, []
        for delete_file in (False, True):
            entries = [entry for entry in asked if entry.deletes_file == delete_file]
            if not entries:
                continue
            value = self.call("task.remove", {
                "ids": [entry.id for entry in entries], **({"deleteFile": True} if delete_file else {})})
            if not isinstance(value, dict):
                self.unremoved += entries
                continue
            refused = {error["id"]: error for error in value["errors"]}
            for entry in entries:
                error = refused.get(entry.id)
                if error is None or error["code"] == "unknown-task":
                    self._forget(entry)
                else:
                    self.world.report.note(f"removal refused: {error['code']}")
                    self.unremoved.append(entry)

    def _forget(self, entry):
        """Looks what a removal left, and deletes the file that it leaves to the owner."""
        entry.removed_at = time.monotonic()
        if entry.kind != "download" or entry.shares_name:
            return
        path, violation = entry.completed_path, self.world.ledger.violation
        if path is None:
            # It completed unseen perhaps, and its file stays then; it has to be whole.
            for path in [os.path.join(place, name) for place in entry.place for name in entry.names]:
                if os.path.exists(path) and not entry.deletes_file:
                    text = self.world.auditor.wrong_file(entry, path)
                    if text:
                        violation("rubbish", text)
                    else:
                        self._unlink(path)
            return
        if entry.deletes_file:
            if os.path.exists(path):
                violation("file not deleted", f"{path} of {entry.token}")
            return
        if entry.is_checked and not os.path.exists(path):
            violation("file gone", f"{path} of {entry.token} after its removal")
            return
        self._unlink(path)

    def _unlink(self, path):
        """Deletes an own file."""
        try:
            with acting_as(self.uid, dlctl.GROUP_ID):
                os.unlink(path)
        except OSError as error:
            if os.path.dirname(path) == self.world.daemon.downloads:
                # Of everybody's directory, which is sticky here: the daemon's own.
                os.unlink(path)
            else:
                self.world.ledger.violation("not hers", f"{path}: {error}")

    def set(self):
        """Changes what tasks ask for."""
        lot = self.lot
        entries = self.some(3, lambda entry: not entry.is_completed)
        if not entries:
            return
        what = lot.choice(["limit", "priority", "connections", "start-at", "output", "directory", "mirror", "url",
                           "header", "checksum"])
        entry = entries[0]
        numbers = [str(one.id) for one in entries]
        papers = self.papers(f"set-{self.world.letter}{self.index}")
        if what == "limit":
            words = ["--limit", lot.choice(["none", str(self.wishes.rate())])]
        elif what == "priority":
            words = ["--priority", lot.choice(["low", "normal", "high", "now"])]
        elif what == "connections":
            words = ["--connections", lot.choice(["1", "4", "16", "auto", "none"])]
            numbers = [str(one.id) for one in entries if one.kind == "download"]
        elif what == "start-at":
            words = ["--start-at", lot.choice(["none", "+3s"])]
        elif what == "header":
            words = ["--header", "X-Other: 1"]
            numbers = [str(one.id) for one in entries if one.kind == "upload"]
        elif entry.kind != "download" or entry.shares_name or entry.must_fail:
            return
        else:
            numbers = [str(entry.id)]
            if entry.batch and what in ("output", "url"):
                # Its queue file, applied again, would not know it any more.
                return
            if what == "output":
                entry.names = entry.names | {f"{entry.token}.other"}
                words = ["--output", f"{entry.token}.other"]
            elif what == "directory":
                entry.place = [*entry.place, os.path.join(self._own_place(), "moved")]
                words = ["--directory", "moved"]
            elif entry.is_described or not isinstance(entry.digests, set) or len(entry.digests) != 1:
                return
            else:
                size = next((size for size in wishes.SIZES if self.world.content.digest(size) in entry.digests), None)
                if size is None:
                    return
                url = self.world.farm["http"].url(self.world.content.name(size) + lot.choice(["", ".link", ".copy"]))
                url += f"?t={entry.token}"
                if what == "mirror":
                    words = ["--mirror", lot.choice(["none", url])]
                elif what == "checksum":
                    words = ["--checksum", f"sha256:{self.world.content.digest(size)}"]
                else:
                    entry.names = entry.names | {f"{entry.token}.other"}
                    words = ["--url", url, "--output", f"{entry.token}.other"]
        if not numbers:
            return
        for one in entries:
            if one.wish == Wish.PAUSED and what in ("url", "mirror", "checksum", "start-at"):
                one.wants(Wish.UNSURE)
        if what == "limit" and lot.random() < 0.4:
            limit = None if words[1] == "none" else int(words[1])
            self.call("task.update", {"id": int(numbers[0]), "changes": {"limit": limit}})
        else:
            # What has bytes already does not move to another file system; to FTP a header field says nothing.
            self.say(["set", *numbers, *words], MAYBE | {64} if what in ("directory", "header") else MAYBE)
        papers.remove()

    def log_in(self):
        """Says who it is where that was wrong."""
        for entry in self.mine(among=lambda entry: entry.login and not entry.is_completed)[:1]:
            if entry.wish == Wish.PAUSED:
                # A login lets it go on where it waits for one, and to pause it changed nothing then.
                entry.wants(Wish.UNSURE)
            papers = self.papers(f"login-{self.world.letter}{self.index}")
            _, is_sure = self.say([
                "set", str(entry.id), "--user", "soak", "--password-file", papers.write("password", entry.login)])
            papers.remove()
            if is_sure:
                entry.login = None

    def move(self):
        """Changes a task's place."""
        entries = self.some(2, lambda entry: not entry.is_completed)
        if not entries:
            return
        where = self.lot.choice(["first", "last", "before"])
        if where == "before" and len(entries) < 2:
            where = "last"
        if self.lot.random() < 0.5:
            self.call("task.move", {"id": entries[0].id, where: entries[1].id if where == "before" else True})
        else:
            # Before one of another priority there is no place.
            self.say(["move", str(entries[0].id), f"--{where}", *([str(entries[1].id)] if where == "before" else [])],
                     MAYBE | {64} if where == "before" else MAYBE)

    # Looking

    def look(self):
        """Asks for something, and sees that nothing of others is in it."""
        lot = self.lot
        what = lot.choice(["list", "list", "show", "status", "queue list", "limit", "rpc", "completion", "count", "get",
                           "tasks", "limits", "queues", "statuses", "events", "journal", "watch", "backup", "discover"])
        entries = self.some(3)
        if what == "list":
            condition = lot.choice([
                [], ["--state", lot.choice(STATES)], ["--limit", "5"], ["--search", "soak"], ["--since", "10m"],
                ["--owner", str(self.uid)], ["--after", "10", "--limit", "4"], ["--batch", f"wait-{self.index}"],
                ["--until", "1m"]])
            value, _ = self.json(["list", *condition], FINE)
            self._only_own(value)
        elif what == "show" and entries:
            value, is_sure = self.json(["show", *(str(entry.id) for entry in entries)])
            value = value if isinstance(value, list) else [value]
            self._only_own([one for one in value if one and "id" in one])
        elif what == "status":
            self.json(["status"], FINE)
        elif what == "queue list":
            self.json(["queue", "list"], FINE)
        elif what == "limit":
            self.json(["limit"], FINE)
        elif what == "rpc":
            answer, is_sure = self.say(["rpc", "task.list", '{"limit": 3}'], FINE)
            if is_sure:
                self._only_own(json.loads(answer.output)["tasks"])
        elif what == "completion":
            self.say(["completion", lot.choice(["bash", "zsh", "fish"])], FINE)
        elif what == "count":
            self.call("task.count", {"filter": {"states": [lot.choice(STATES)]}})
        elif what == "get" and entries:
            value = self.call("task.get", {"id": entries[0].id})
            if isinstance(value, dict):
                self._only_own([value])
            elif isinstance(value, Refused):
                self.world.ledger.violation("lost", f"task.get of {entries[0].token}: {value}")
        elif what == "tasks":
            value = self.call("task.list", {"filter": {}, "newest": 5})
            self._only_own(value["tasks"] if isinstance(value, dict) else None)
        elif what == "limits":
            self.call("daemon.limits")
        elif what == "queues":
            self.call("queue.list")
        elif what == "statuses":
            self.call("daemon.status")
        elif what == "events":
            answer, is_sure = self.say(["events", "--since", "20s", "--json"], FINE)
            if is_sure:
                self._only_own(json.loads(line) for line in answer.output.splitlines())
        elif what == "journal":
            value = self.call("events.list", {"after": 0, "limit": 50})
            self._only_own(value["events"] if isinstance(value, dict) else None)
        elif what == "watch":
            ended = self.some(2, lambda entry: entry.is_completed)
            if ended:
                self.say(["watch", *(str(entry.id) for entry in ended)])
        elif what == "backup":
            self.back_up()
        elif what == "discover":
            self.call("rpc.discover")

    def back_up(self):
        """Copies the database, which only root may."""
        papers = self.papers(f"backup-{self.world.letter}{self.index}")
        self.say(["backup", "--force", papers.write("dld.db", "")], MAYBE if self.uid == 0 else {77})
        papers.remove()

    def _only_own(self, tasks):
        for task in tasks or []:
            if self.uid and task["owner"] != self.uid:
                self.world.ledger.violation("seen by others", f"user {self.uid} sees {task}")

    def wait(self):
        """Waits for some, a short time."""
        entries = self.some(3, lambda entry: not entry.is_completed)
        if entries:
            self.say(["wait", *(str(entry.id) for entry in entries), "--timeout", self.lot.choice(["0.5", "2"])],
                     {0, 1, 75})

    def standstill(self):
        """Pauses a task, and looks that its bytes stand still."""
        entries = self.some(1, lambda entry: entry.state == "active" and entry.wish == Wish.RUN)
        if not entries:
            return
        entry = entries[0]
        life = self.world.life
        begun = life.mark()
        entry.wants(Wish.UNSURE)
        if not isinstance(self.call("task.pause", {"ids": [entry.id]}), dict):
            return
        before = self.call("task.get", {"id": entry.id})
        time.sleep(0.3)
        after = self.call("task.get", {"id": entry.id})
        if life.was_disturbed(begun) or not isinstance(before, dict) or not isinstance(after, dict):
            return
        if before["state"] == after["state"] == "paused":
            for field in ("bytesDone", "bytesFetched"):
                if before[field] != after[field]:
                    self.world.ledger.violation(
                        "moves while paused", f"{field} of {entry.token} from {before[field]} to {after[field]}")
        self.call("task.resume", {"ids": [entry.id]})

    # What must not be

    def foreign(self):
        """Tries another user's task; it is as if there were none."""
        entry = self.foreign_entry()
        if entry is None:
            return
        number = str(entry.id)
        words = self.lot.choice([
            ["show", number], ["cancel", number], ["remove", number, "--delete-file"], ["pause", number],
            ["resume", number], ["retry", number], ["set", number, "--limit", "1K"], ["move", number, "--first"],
            ["wait", number, "--timeout", "10"], ["add", "--after-task", number, self.world.chaos.url("f/1/never.bin")]])
        if self.lot.random() < 0.3:
            value = self.call(*self.lot.choice([
                ("task.get", {"id": entry.id}), ("task.update", {"id": entry.id, "changes": {"limit": 1}}),
                ("task.move", {"id": entry.id, "first": True})]))
            if isinstance(value, dict):
                self.world.ledger.violation("another's task", f"user {self.uid} got {value}")
            return
        answer, is_sure = self.say(words, {1, 64, 77})
        if is_sure and entry.token in answer.output + answer.error:
            self.world.ledger.violation("another's task", f"user {self.uid}: {answer}")

    def forbidden(self):
        """Tries what only administrators may, and what is nonsense."""
        if not self.uid:
            return
        words, expected = self.lot.choice([
            (["limit", "--download", "1K"], {77}), (["reload"], {77}), (["shutdown"], {77}),
            (["add", "gopher://127.0.0.1/"], {64}), (["show", "x"], {64}), (["show", "99999999"], {1}),
            (["add", "-d", "/etc", self.world.chaos.url("f/1/x")], {1, 64, 77}),
            (["add", "-d", "../../x", self.world.chaos.url("f/1/x")], {1, 64, 77}),
            (["upload", "/etc/shadow", self.world.chaos.url("in/x")], {1, 64, 77}),
            (["rpc", "daemon.shutdown"], {77}), (["rpc", "daemon.limits", '{"download": 1}'], {77}),
            (["rpc", "daemon.reload"], {77}), (["rpc", "no.method"], {1, 64})])
        self.say(words, expected)
        for word in words:
            if "." in word and word in ("daemon.shutdown", "daemon.limits", "daemon.reload"):
                self.world.usage.note(word)

    def raw_line(self):
        """Sends nonsense, half a line, or a line that is too long."""
        line = self.lot.choice([
            b"nonsense\n", b"{}\n", b"[]\n", b'{"jsonrpc":"2.0","id":1,"method":"task.add"}\n',
            b'{"jsonrpc":"2.0","id":1,"method":"task.list"', b"[" * 200 + b"\n", b'"' + b"x" * 70_000 + b'"\n',
            b"\x00\xff\n", b'{"jsonrpc":"2.0","id":1,"method":"task.get","params":{"id":-1}}\n'])
        begun = self.world.life.mark()
        try:
            with acting_as(self.uid, dlctl.GROUP_ID), socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(20)
                connection.connect(self.world.daemon.socket)
                connection.sendall(line)
                if line.endswith(b"\n") and b'"error"' not in connection.recv(1 << 16):
                    raise ConnectionError("no error")
        except OSError as error:
            if not self.world.life.was_disturbed(begun):
                self.world.ledger.violation("no answer", f"{line[:60]}: {error!r}")

    def raw_batch(self):
        """Sends several calls as one batch."""
        calls = [{"jsonrpc": "2.0", "id": number, "method": method} for number, method in enumerate(
            ["daemon.status", "task.list", "queue.list", "task.count"])]
        begun = self.world.life.mark()
        try:
            with acting_as(self.uid, dlctl.GROUP_ID), socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(30)
                connection.connect(self.world.daemon.socket)
                connection.sendall(json.dumps(calls).encode() + b"\n")
                text = b""
                while not text.endswith(b"\n"):
                    part = connection.recv(1 << 18)
                    if not part:
                        raise ConnectionError("the daemon closed the connection")
                    text += part
            answers = {answer["id"]: answer for answer in json.loads(text)}
            self._only_own(answers[1]["result"]["tasks"])
        except (OSError, ValueError, KeyError) as error:
            if not self.world.life.was_disturbed(begun):
                self.world.ledger.violation("no answer", f"a batch: {error!r}")

    # The end

    def let_everything_go_on(self):
        """Resumes what is paused, and takes back what failed though it need not have."""
        self.remove_again()
        stuck = []
        for entry in self.mine(among=lambda entry: not entry.is_completed):
            if entry.state == "failed" and not entry.must_fail or entry.wish == Wish.UNSURE and entry.state == "cancelled":
                stuck.append(entry)
        paused = self.mine(among=lambda entry: entry.state in ("paused", "waiting"))
        for entry in paused:
            if entry.wish in (Wish.PAUSED, Wish.UNSURE):
                entry.wants(Wish.RUN)
        # dlctl opens files anew that the daemon has lost with its last process.
        passed = [str(entry.id) for entry in paused if entry.is_passed]
        if passed:
            lost = any(entry.is_passed and entry.error == "source-lost" for entry in paused)
            _, is_sure = self.say(["resume", *passed])
            if lost and is_sure:
                self.world.usage.note("source.receive", "source.attach")
        if paused:
            self.call("task.resume", {"ids": [entry.id for entry in paused if not entry.is_passed]})
        if stuck:
            result = self.call("task.retry", {"ids": [entry.id for entry in stuck]})
            for error in result["errors"] if isinstance(result, dict) else [{"code": str(result)[:100]}]:
                self.world.report.note(f"not taken back at the end: {error['code']}")
        for _ in range(20):
            waiting = self.mine(among=lambda entry: entry.login and not entry.is_completed)
            if not waiting:
                break
            self.log_in()


class Listener(threading.Thread):
    """A user's subscription to events, over all restarts."""

    def __init__(self, world, uid):
        super().__init__(name=f"listener {uid}")
        self.world, self.uid = world, uid
        self.stopping = threading.Event()
        self.last = 0
        self.completed = set()
        self.events = 0

    def run(self):
        while not self.stopping.is_set():
            try:
                self._listen()
            except (OSError, ValueError):
                pass
            self.stopping.wait(0.2)

    def _listen(self):
        self.world.usage.note("events.subscribe")
        with socket.socket(socket.AF_UNIX) as connection:
            with acting_as(self.uid, dlctl.GROUP_ID):
                connection.connect(self.world.daemon.socket)
            connection.settimeout(1)
            request = {"jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": {"after": self.last}}
            connection.sendall(json.dumps(request).encode() + b"\n")
            rest = b""
            while not self.stopping.is_set():
                try:
                    part = connection.recv(1 << 18)
                except TimeoutError:
                    continue
                if not part:
                    return
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, message):
        if message.get("method") != "event":
            return
        event = message["params"]
        self.events += 1
        ledger = self.world.ledger
        if event["type"] == "gap":
            ledger.violation("gap", f"the events of user {self.uid} before {event}")
            return
        if event["sequence"] <= self.last:
            ledger.violation("event order", f"{event} after {self.last}")
        self.last = max(self.last, event["sequence"])
        entry = ledger.by_id.get(event["id"])
        if entry is not None and entry.owner != self.uid:
            ledger.violation("seen by others", f"user {self.uid} hears of {event}")
        if event["type"] == "completed":
            self.completed.add(event["id"])
