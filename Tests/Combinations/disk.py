"""A disk that can stand still."""

import os
import subprocess
import threading
import time

import processes


class FrozenDisk:
    """An ext4 on a loop device, on which nothing can be written while it is frozen. Needs root."""

    _lock = threading.Lock()

    def __init__(self, place, size="160M"):
        self.path = os.path.join(place, "disk")
        self.is_mounted = False
        image = os.path.join(place, "disk.image")
        os.makedirs(self.path)
        with FrozenDisk._lock:
            processes.run(["truncate", "-s", size, image])
            processes.run(["mkfs.ext4", "-q", "-F", image])
            processes.run(["mount", "-t", "ext4", "-o", "loop", image, self.path])
        self.is_mounted = True

    def stand_still(self, seconds):
        """Freezes the disk for a while."""
        try:
            processes.run(["fsfreeze", "-f", self.path])
            time.sleep(seconds)
        finally:
            subprocess.run(["fsfreeze", "-u", self.path], capture_output=True, check=False)

    def remove(self):
        """Unmounts it."""
        if self.is_mounted:
            subprocess.run(["umount", "-l", self.path], capture_output=True, check=False)
