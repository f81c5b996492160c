"""Acting as another user in one thread, for connections and files that have to be that user's own."""

import contextlib
import ctypes
import os
import platform

_libc = ctypes.CDLL(None, use_errno=True)
# The C library's own functions would change every thread of the process.
_NUMBERS = {
    "x86_64": {"setgroups": 116, "setresgid": 119, "setresuid": 117},
    "aarch64": {"setgroups": 159, "setresgid": 149, "setresuid": 147},
}[platform.machine()]
_KEEP = -1


def _call(name, *arguments):
    if _libc.syscall(_NUMBERS[name], *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


@contextlib.contextmanager
def acting_as(uid, gid):
    """Has the calling thread act as a user without supplementary groups."""
    if uid == 0:
        yield
        return
    _call("setgroups", 0, None)
    _call("setresgid", _KEEP, gid, _KEEP)
    _call("setresuid", _KEEP, uid, _KEEP)
    try:
        yield
    finally:
        _call("setresuid", _KEEP, 0, _KEEP)
        _call("setresgid", _KEEP, 0, _KEEP)
