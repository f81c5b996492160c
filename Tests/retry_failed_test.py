"""Tests of retry_failed.py with a command in the place of the tests."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "retry_failed.py")

# Reports that some tests failed. When it is run for those alone, it ends with a status of its own.
TESTS = textwrap.dedent("""
    import sys
    options, (failures, second) = sys.argv[3:], sys.argv[1:3]
    print("options", *options)
    if "--xunit-output" not in options:
        sys.exit(int(second))
    failed = [f'<testcase classname="M.A.B" name="t{n}(x:)"><failure/></testcase>' for n in range(int(failures))]
    if int(failures) >= 0:
        with open(options[options.index("--xunit-output") + 1], "w") as report:
            report.write(f'<s><testcase classname="M.C" name="good()"/>{"".join(failed)}</s>')
    sys.exit(0 if failures == "0" else 1)
""")


class RetryFailedTests(unittest.TestCase):
    def run_script(self, failures, second):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(TESTS)
            file.flush()
            command = [sys.executable, file.name, str(failures), str(second), "--skip", "x", "--filter", "M"]
            done = subprocess.run(
                [sys.executable, "-B", SCRIPT, "part", *command], capture_output=True, text=True, check=False
            )
        return done.returncode, done.stdout

    def test_nothing_is_tried_again_if_all_pass(self):
        status, output = self.run_script(0, 1)
        self.assertEqual((status, output.count("options")), (0, 1))

    def test_a_failed_test_that_passes_alone_is_reported(self):
        status, output = self.run_script(1, 0)
        self.assertEqual(status, 0)
        self.assertIn("options --no-parallel --filter ^(M\\.A/B/t0\\(x:\\))\n", output)
        self.assertIn("warning: part: failed beside others, passed alone: M.A/B/t0(x:)", output)

    def test_a_test_that_fails_twice_has_failed(self):
        status, output = self.run_script(1, 1)
        self.assertEqual(status, 1)
        self.assertNotIn("warning", output)

    def test_many_failures_and_an_end_without_a_report_are_final(self):
        for failures in (5, -1):
            status, output = self.run_script(failures, 0)
            self.assertEqual((status, output.count("options")), (1, 1))


if __name__ == "__main__":
    unittest.main()
