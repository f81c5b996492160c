"""A Debian 12 tree with systemd and the libraries that the package needs, but without a Swift toolchain."""

import fcntl
import os
import pathlib
import shutil
import subprocess

# What `apt install` would fetch, since the machine under test has no network, and what the tests use.
PACKAGES = [
    "systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "apt", "ca-certificates", "libcurl4",
    "libsqlite3-0", "libsystemd0", "libstdc++6", "zlib1g", "nginx-light", "iproute2", "procps", "sqlite3", "jq",
    "man-db", "openssl",
]


def directory() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/root"), ".cache")
    return pathlib.Path(cache) / "dld-test" / "bookworm"


def ensure() -> pathlib.Path:
    """Returns the tree, which is made by the first run and kept."""
    tree = directory()
    tree.parent.mkdir(parents=True, exist_ok=True)
    with open(tree.parent / "lock", "w") as lock:
        # Another run may be making it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = tree.parent / (tree.name + ".packages")
        wanted = " ".join(PACKAGES)
        if not (tree.is_dir() and mark.is_file() and mark.read_text() == wanted):
            remove(tree)
            make(tree)
            mark.write_text(wanted)
    return tree


def remove(tree: pathlib.Path) -> None:
    """Removes a tree, and first what an interrupted run has left mounted in it."""
    mounted = [line.split()[1] for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    for place in reversed([place for place in mounted if place.startswith(f"{tree}/")]):
        subprocess.run(["umount", place], check=True)
    shutil.rmtree(tree, ignore_errors=True)


def make(tree: pathlib.Path) -> None:
    print(f"making a Debian 12 tree in {tree} …", flush=True)
    with open(tree.parent / "mmdebstrap.log", "w") as log:
        subprocess.run(
            ["mmdebstrap", "--variant=minbase", "--include=" + ",".join(PACKAGES), "bookworm", str(tree)],
            stdout=log, stderr=subprocess.STDOUT, check=True)
    # Services that tests start themselves, and a getty that nobody uses.
    for unit in ["nginx.service", "console-getty.service", "apt-daily.timer", "apt-daily-upgrade.timer",
                 "man-db.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "systemd-timesyncd.service"]:
        subprocess.run(["systemctl", "--root", str(tree), "mask", unit], check=True, capture_output=True)
    for name, uid in [("anna", 1001), ("ben", 1002)]:
        subprocess.run(["chroot", str(tree), "useradd", "--create-home", "--uid", str(uid), "--shell", "/bin/sh", name],
                       check=True)


def version(package: pathlib.Path) -> str:
    return subprocess.run(["dpkg-deb", "--field", str(package), "Version"], check=True, capture_output=True,
                          text=True).stdout.strip()


# Databases of earlier versions are refused: they are of development versions with another schema.
FIRST_VERSION = "0.1.0~r1234"


def is_before(one: str, other: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", one, "lt", other]).returncode == 0


def is_earlier(one: pathlib.Path, other: pathlib.Path) -> bool:
    return is_before(version(one), version(other))


def earlier_package(package: pathlib.Path) -> pathlib.Path | None:
    """Returns the newest package of an earlier version, from which an upgrade is possible: beside `package`, or the one
    that passed last."""
    found = None
    for other in [directory().parent / "passed.deb", *package.parent.glob("dld_*.deb")]:
        if not other.is_file() or is_before(version(other), FIRST_VERSION) or not is_earlier(other, package):
            continue
        if found is None or is_earlier(found, other):
            found = other
    return found


def keep_package(package: pathlib.Path) -> None:
    shutil.copyfile(package, directory().parent / "passed.deb")
