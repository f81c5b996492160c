"""What a run of the benchmarks was asked for, by the environment: sizes, places, programs."""

import os
import pathlib

TREE = pathlib.Path(__file__).resolve().parents[2]
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


class Settings:
    """Sizes are those of the description times `SCALE`, so that a minute is enough to try everything."""

    def __init__(self):
        self.scale = float(os.environ.get("SCALE", "1"))
        self.runs = int(os.environ.get("RUNS", "5"))
        self.programs = pathlib.Path(os.environ.get("DLD_BIN_DIR", TREE / ".build/release")).resolve()
        # A file system on a disk, with room.
        self.place = os.environ.get("BENCH_DIR", "/var/tmp")
        # Figures of another size are not the project's.
        usual = TREE / ("docs/benchmarks" if self.scale == 1 else ".build/benchmarks")
        self.output = pathlib.Path(os.environ.get("BENCH_OUTPUT", usual)).resolve()
        self.limit = float(os.environ.get("TIME_LIMIT", "600"))

    def count(self, full, least=1):
        """Returns a number of things, scaled."""
        return max(least, round(full * self.scale))

    def size(self, full, least=MIB):
        """Returns a size in bytes, scaled to whole blocks."""
        return max(least, round(full * self.scale) // 4096 * 4096)

    def seconds(self, full):
        """Returns a time to wait, scaled."""
        return full * min(1.0, self.scale)
