"""Tests of the guard's judgement, with figures from a list."""

import contextlib
import io
import unittest

import guard


class Figures:
    """Stands for a guard: each measurement of a figure takes the next value."""

    def __init__(self, **values):
        self.values = {name.replace("_", " "): list(some) for name, some in values.items()}
        self.count = 0

    def measure(self, _, figure):
        self.count += 1
        return {figure: self.values[figure].pop(0)}


VERSIONS = {"libcurl4": "1"}
LIMITS = {"small": {"instructions": 1000, "allocations": 100, "system calls": 100, "versions": VERSIONS}}


class GuardTests(unittest.TestCase):
    def check(self, instructions, present=None):
        figures = Figures(instructions=instructions, allocations=[100], system_calls=[103])
        with contextlib.redirect_stdout(io.StringIO()) as output:
            holds = guard.check(figures, LIMITS, ["small"], present or VERSIONS)
        return holds, figures.count, output.getvalue()

    def test_three_percent_more_is_no_growth(self):
        self.assertEqual(self.check([1030])[:2], (True, 3))

    def test_a_run_that_was_disturbed_is_repeated(self):
        self.assertEqual(self.check([1100, 1020])[:2], (True, 4))

    def test_growth_in_every_run_fails(self):
        holds, count, output = self.check([1050, 1040, 1031, 1060])
        self.assertEqual((holds, count), (False, 6))
        self.assertIn("3.1%  GREW", output)

    def test_growth_with_other_versions_is_shown_and_not_judged(self):
        holds, count, output = self.check([1050], {"libcurl4": "2"})
        self.assertEqual((holds, count), (True, 3))
        self.assertIn("5.0%  GREW", output)
        self.assertIn("libcurl4 2 (limits of small: 1)", output)

    def test_less_is_told(self):
        holds, _, output = self.check([900])
        self.assertTrue(holds)
        self.assertIn("make guard-renew", output)

    def test_a_missing_limit_is_an_error(self):
        with contextlib.redirect_stdout(io.StringIO()), self.assertRaises(guard.Unusable):
            guard.check(Figures(), {}, ["small"], VERSIONS)


if __name__ == "__main__":
    unittest.main()
