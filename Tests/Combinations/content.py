"""The files that go to and fro: the same bytes for the same size, whatever the seed."""

import hashlib
import os
import random
import threading


class Content:
    """Original files in the directory that the servers serve, made when they are first asked for.

    Beside `NAME` lie `NAME.link`, the same file by another name, and `NAME.copy`, the same bytes with another time.
    """

    def __init__(self, root):
        self.root = root
        self.digests = {}
        self.lock = threading.Lock()

    def path(self, name):
        """Returns where a file lies."""
        return os.path.join(self.root, name)

    def name(self, size):
        """Returns the name of the file of so many bytes."""
        name = f"file-{size}"
        with self.lock:
            if name not in self.digests:
                data = random.Random(size).randbytes(size)
                for path, time in ((name, 1_600_000_000), (f"{name}.copy", 1_600_100_000)):
                    with open(self.path(path), "wb") as file:
                        file.write(data)
                    os.chmod(self.path(path), 0o644)
                    os.utime(self.path(path), (time, time))
                os.link(self.path(name), self.path(f"{name}.link"))
                self.digests[name] = hashlib.sha256(data).hexdigest()
        return name

    def digest(self, size):
        """Returns the SHA-256 of the file of so many bytes, in hexadecimal digits."""
        return self.digests[self.name(size)]

    def difference(self, size, path):
        """Returns how the file at `path` differs from the original of so many bytes, or None."""
        try:
            with open(path, "rb") as file:
                found = file.read()
        except OSError as error:
            return str(error)
        with open(self.path(self.name(size)), "rb") as file:
            wanted = file.read()
        if found == wanted:
            return None
        if len(found) != len(wanted):
            return f"{path} has {len(found)} bytes in place of {len(wanted)}"
        return f"{path} differs: " + ", ".join(self._foreign(found, wanted))

    @staticmethod
    def _foreign(found, wanted):
        """Describes the first few places where two texts of the same length differ, and where what is there is from."""
        places, position = [], 0
        while len(places) < 4:
            while position < len(found) and found[position:position + 65536] == wanted[position:position + 65536]:
                position += 65536
            while position < len(found) and found[position] == wanted[position]:
                position += 1
            if position >= len(found):
                return places
            origin = wanted.find(found[position:position + 24])
            length = 0
            if origin >= 0:
                while (max(position, origin) + length < len(found)
                       and found[position + length] == wanted[origin + length]):
                    length += 1
                places.append(f"{length} bytes at {position} are those of {origin}")
            else:
                while position + length < len(found) and found[position + length] != wanted[position + length]:
                    length += 1
                first = found[position:position + 8]
                places.append(f"{length} bytes at {position} are foreign, the first {first}")
            position += length
        return places + ["…"]
