"""Files to be transferred, the lists that tools read, and the comparison of what came with its source."""

import filecmp
import os

from processes import Unusable

BLOCK = 1 << 20


def make_file(path, size):
    """Makes a file of random bytes, unless it exists with this size; it is in the page cache afterwards."""
    if path.exists() and path.stat().st_size == size:
        return path
    with open(path, "wb") as file:
        for begin in range(0, size, BLOCK):
            file.write(os.urandom(min(BLOCK, size - begin)))
        file.flush()
        os.fsync(file.fileno())
    return path


class Files:
    """Many files of one size in a directory of the server."""

    def __init__(self, bench, name, count, size):
        self.bench, self.name, self.size = bench, name, size
        self.directory = bench.directory("source", name)
        self.names = [f"f{number:06d}" for number in range(count)]
        for one in self.names:
            path = self.directory / one
            if not path.exists():
                path.write_bytes(os.urandom(size))
        bench.sync()

    @property
    def gib(self):
        return len(self.names) * self.size / (1 << 30)

    def some(self, count):
        """Returns the first of the files, as files of their own."""
        part = object.__new__(Files)
        part.bench, part.name, part.size, part.directory = self.bench, self.name, self.size, self.directory
        part.names = self.names[:count]
        return part

    def urls(self, kind):
        return [self.bench.nginx().url(f"{self.name}/{one}", kind) for one in self.names]

    def url_list(self, kind="http"):
        """Returns the path of a list of the URLs."""
        path = self.bench.place / f"{self.name}-{len(self.names)}-{kind}.urls"
        path.write_text("".join(f"{url}\n" for url in self.urls(kind)))
        return path

    def curl_list(self, kind="http"):
        """Returns the path of a configuration of curl that names URLs and outputs."""
        path = self.bench.place / f"{self.name}-{len(self.names)}-{kind}.curl"
        lines = (f"url = {url}\noutput = {one}\n" for url, one in zip(self.urls(kind), self.names))
        path.write_text("".join(lines))
        return path

    def curl_uploads(self, url):
        """Returns the path of a configuration of curl that sends each file beneath a URL."""
        path = self.bench.place / f"{self.name}-{len(self.names)}-upload-{os.path.basename(url.rstrip('/'))}.curl"
        path.write_text("".join(f"upload-file = {self.directory / one}\nurl = {url}{one}\n" for one in self.names))
        return path

    def verify(self, directory):
        """Unusable unless a directory holds these files and no others."""
        found = sorted(os.listdir(directory))
        if found != self.names:
            raise Unusable(f"{len(found)} files came instead of {len(self.names)}")
        for one in self.names:
            if not filecmp.cmp(self.directory / one, directory / one, shallow=False):
                raise Unusable(f"{one} has other bytes")


def verify_file(source, result):
    """Unusable unless two files have the same bytes."""
    if not result.exists():
        raise Unusable(f"{result.name} did not come")
    if not filecmp.cmp(source, result, shallow=False):
        raise Unusable(f"{result.name} has other bytes")
