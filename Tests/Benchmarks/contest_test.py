#!/usr/bin/env python3
"""Tests of a contest, with sides that only write a file."""

import contextlib
import pathlib
import tempfile
import types
import unittest
from unittest import mock

from bench import Unusable  # finds the modules that the contest shares with other tests

import contest


class FakeBench:
    """A place without servers and programs; what is run takes a second."""

    def __init__(self, place):
        self.place, self.count = pathlib.Path(place), 0
        self.settings, self.with_calls = types.SimpleNamespace(runs=3), True
        self.rests = 0

    def recording(self, _):
        return contextlib.nullcontext()

    def fresh(self, name):
        self.count += 1
        path = self.place / f"{name}-{self.count}"
        path.mkdir()
        return path

    def rest(self, seconds):
        self.rests += 1

    def sync(self, path=None):
        return None

    def run(self, command, limit=None):
        return types.SimpleNamespace(seconds=1.0, processor=0.5, peak_kib=100)


class Writer(contest.Peer):
    """A side that writes `text`, and fails in the run `fails_in`."""

    def __init__(self, name, text="whole", fails_in=None, calls=7):
        super().__init__(name, lambda place: ["true"])
        self.text, self.fails_in, self.calls, self.runs = text, fails_in, calls, 0

    def measure(self, bench, directory):
        self.runs += 1
        if self.runs == self.fails_in:
            raise Unusable(f"{self.name} ended with 1")
        (directory / "file").write_text(self.text)
        return super().measure(bench, directory)

    def count(self, bench, directory):
        (directory / "file").write_text(self.text)
        if self.calls is None:
            raise Unusable("too slow")
        return self.calls


class OursWriter(Writer, contest.Ours):
    """The same as a side of dld."""

    needs_sync = False


def verify(directory):
    if (directory / "file").read_text() != "whole":
        raise Unusable("other bytes")


class ContestTests(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.bench = FakeBench(place.name)

    def hold(self, *sides, **options):
        with mock.patch("builtins.print"):
            return contest.Contest(self.bench, sides, verify, **options).hold("case")

    def test_each_side_has_all_runs_and_its_calls(self):
        case = self.hold(Writer("a"), Writer("b"), output="file")
        self.assertEqual({name: len(runs) for name, runs in case["sides"].items()}, {"a": 3, "b": 3})
        self.assertEqual(case["calls"], {"a": 7, "b": 7})
        self.assertEqual(self.bench.rests, 6)

    def test_a_sync_is_added_for_peers_only(self):
        case = self.hold(Writer("a"), OursWriter("dld"), output="file")
        self.assertEqual(case["sides"]["a"][0]["synced"], 2.0)
        self.assertEqual(case["sides"]["dld"][0]["synced"], 1.0)

    def test_a_peer_that_fails_is_left_out_with_the_reason(self):
        case = self.hold(Writer("a", fails_in=2), Writer("b"))
        self.assertEqual(list(case["sides"]), ["b"])
        self.assertEqual(case["left_out"], {"a": "a ended with 1"})

    def test_a_peer_with_other_bytes_is_left_out(self):
        self.assertEqual(self.hold(Writer("a", text="part"))["left_out"], {"a": "other bytes"})

    def test_a_failure_of_dld_ends_the_row(self):
        with self.assertRaises(Unusable):
            self.hold(OursWriter("dld", text="part"))

    def test_calls_that_cannot_be_counted_cost_no_runs(self):
        case = self.hold(Writer("a", calls=None))
        self.assertEqual(len(case["sides"]["a"]), 3)
        self.assertEqual(case["calls"], {})

    def test_results_are_removed_unless_they_are_kept(self):
        self.hold(Writer("a"))
        self.assertEqual(list(self.bench.place.glob("a-*")), [])
        self.hold(Writer("b"), keep=True)
        self.assertEqual(len(list(self.bench.place.glob("b-*"))), 4)


if __name__ == "__main__":
    unittest.main()
