"""W14: a long line with loss, between two network namespaces. Where there are none, a scripted line without loss."""

import os
import pathlib
import re
import sys
import time

import processes
from contest import Contest, Ours, Peer
from nginx import Nginx
from processes import Child
from rows_large import NAME, Download
from settings import MIB, TREE
from workloads import make_file, verify_file

ROUND_TRIP, LOSS, CONNECTION, LINK, QUEUE = 40, 10, 100, 400, 1024
RATES = f"{ROUND_TRIP} ms, {CONNECTION} Mbit/s a connection, {LINK} Mbit/s in all"
FIXED = (1, 2, 4, 8, 16)


class Link:
    """Two namespaces with a link between them, by link.c."""

    def __init__(self, bench):
        log = bench.place / "link.log"
        words = [str(value) for value in (ROUND_TRIP, LOSS, CONNECTION, LINK, QUEUE)]
        self.child = Child([bench.helper("link"), *words], str(log))
        end = time.monotonic() + 10
        while not (found := re.search(r"^ready (\d+) (\d+)$", log.read_text(), re.M)):
            if self.child.poll() is not None or time.monotonic() > end:
                bench.fail(f"no link: {log.read_text()}")
            time.sleep(0.01)
        self.server, self.client = (
            ("nsenter", f"--net=/proc/{self.child.pid}/fd/{number}") for number in found.groups())
        self.server_address = "198.18.0.1"
        self.description = f"{RATES}, {LOSS / 10:g} % loss"

    def congestion(self):
        return processes.run([*self.server, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).strip()


class ScriptedLine:
    """line.py before a server, with its options; it loses nothing."""

    def __init__(self, bench, server, *options):
        self.port = processes.free_port()
        self.client = ()
        self.child = Child(
            [sys.executable, "-B", str(TREE / "Tests/Benchmarks/line.py"), "--port", str(self.port), "--upstream",
             str(server.ports["http"]), *options], bench.log)
        self.child.wait_for_port(self.port)
        self.description = f"{RATES}, no loss, scripted"

    def congestion(self):
        return pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()


def can_link():
    """Returns whether namespaces and their link can be made here."""
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun")


def long_line(bench):
    path = make_file(bench.source / "line.bin", bench.settings.size(500 * MIB))
    if can_link():
        line = Link(bench)
        server = Nginx(
            bench.directory("far"), bench.source, bench.nginx().certificate, line.server_address, line.server)
        server.start()
        url = server.url("line.bin")
        bench.run([*line.client, "curl", "-q", "-sS", "--retry", "20", "--retry-connrefused", "--retry-delay", "1",
                   "-r", "0-0", "-o", "/dev/null", url])
    else:
        server = bench.nginx()
        line = ScriptedLine(bench, server, "--each", str(CONNECTION * 122), "--total", str(LINK * 122), "--latency",
                            str(ROUND_TRIP / 1000))
        url = f"http://127.0.0.1:{line.port}/line.bin"
    only = {"limits": {"active-tasks": 1}}
    daemons = {name: bench.daemon(only, name, prefix=line.client) for name in bench.programs}
    sides = []
    for name, daemon in daemons.items():
        daemon.start()
        sides.append(Ours(name, daemon, _words(url)))
    if bench.with_calls:
        sides += [Ours(_fixed(number), daemons["dld"], _words(url, number)) for number in FIXED]
        tools = Download(url, bench.certificate, connections=16).commands()
        sides += [Peer(name, _inside(line, tools[name])) for name in bench.peers]
    # A file as the disk had it; nothing else is on the line.
    case = Contest(bench, sides, lambda place: verify_file(path, place / NAME), output=NAME, rest=1).hold("the line")
    note = f"{line.description}; congestion control {line.congestion()}"
    for daemon in daemons.values():
        daemon.terminate()
    if server is not bench.server:
        server.stop()
    line.child.kill()
    return {"a long line": {**case, "gib": path.stat().st_size / (1 << 30), "note": note}}


def _words(url, number=None):
    connections = () if number is None else ("--connections", number)
    return lambda place: ("add", "--wait", "--directory", place, "--output", NAME, *connections, url)


def _fixed(number):
    return f"dld, {number} connection{'s' if number > 1 else ''}"


def _inside(line, command):
    return lambda place: [*line.client, *command(place)]
