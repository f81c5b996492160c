"""What the guard has the daemon do: always the same steps, each after the end of the one before.

A faster or slower machine then changes neither how many results share a batch nor how many bytes a read returns.
"""

import json
import os
import socket
import threading
import time

from daemons import Connection
from settings import KIB, MIB

PIECE = 64 * KIB
# Long enough for the daemon to take a piece before the next one comes, even under callgrind.
PAUSE = 0.006


class PacedServer:
    """A web server that sends its only file in pieces, with a pause after each."""

    def __init__(self, size):
        self.size = size
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/large"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection):
        request = b""
        while b"\r\n\r\n" not in request:
            part = connection.recv(4096)
            if not part:
                return
            request += part
        piece = bytes(PIECE)
        try:
            connection.sendall(f'HTTP/1.1 200 OK\r\nContent-Length: {self.size}\r\nETag: "1"\r\n\r\n'.encode())
            for _ in range(self.size // PIECE):
                connection.sendall(piece)
                time.sleep(PAUSE)
        except OSError:
            return

    def close(self):
        self.listener.close()


class Completions(Connection):
    """A subscription to the completions of tasks."""

    def __init__(self, path):
        super().__init__(path)
        self.socket.settimeout(300)
        self.call("events.subscribe", {"types": ["completed", "failed"]})

    def wait(self):
        """Returns after the next task has completed."""
        line = self.stream.readline()
        event = json.loads(line)["params"] if line else {}
        if event.get("type") != "completed":
            raise ConnectionError(f"the task has not completed: {line[:500]!r}")


def large(bench, daemon, connection):
    """One file of 64 MiB over one connection."""
    server = PacedServer(64 * MIB)
    completions = Completions(daemon.socket)
    connection.call("task.add", {"tasks": [{"url": server.url, "connections": 1}]})
    completions.wait()
    completions.close()
    server.close()


def small(bench, daemon, connection):
    """1,000 files of 16 KiB, each after the one before."""
    same = bench.source / "same"
    if not same.exists():
        same.write_bytes(os.urandom(16 * KIB))
    url = bench.nginx().url("same")
    completions = Completions(daemon.socket)
    for number in range(1_000):
        connection.call("task.add", {"tasks": [{"url": f"{url}/{number}", "output": f"{number}"}]})
        completions.wait()
    completions.close()


def added(bench, daemon, connection):
    """10,000 tasks that are added and do not run, 500 a call."""
    for call in range(20):
        connection.call("task.add", {"tasks": [
            {"url": f"http://127.0.0.1:9/{call}/{number}", "paused": True} for number in range(500)]})


ALL = {"large": large, "small": small, "added": added}
