"""Tests of retry_failed.py with a command in the place of the tests."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "retry_failed.py")

# Reports that some tests failed. Run for those alone, it ends with a status of its own and reports those that pass.
TESTS = textwrap.dedent("""
    import sys
    options, (failures, second, unknown) = sys.argv[4:], sys.argv[1:4]
    print("options", *options)
    is_again = "M" not in options
    has_failed = not is_again or second != "0"
    count = int(failures)
    tests = [f'<testcase classname="M.A.B" name="t{n}(x:)">{"<failure/>" if has_failed else ""}</testcase>'
             for n in range(0 if second == "none" and is_again else count)]
    if count >= 0:
        with open(options[options.index("--xunit-output") + 1], "w") as report:
            total = (count if has_failed else 0) + int(unknown)
            report.write(f'<s><testsuite failures="{total}"><testcase classname="M.C" name="good()"/>'
                         f'{"".join(tests)}</testsuite></s>')
    sys.exit(1 if has_failed and count != 0 and second != "none" or not is_again and count != 0 else 0)
""")


class RetryFailedTests(unittest.TestCase):
    def run_script(self, failures, second, unknown=0, program=TESTS, quiet="600"):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            command = [sys.executable, file.name, str(failures), str(second), str(unknown), "--skip", "x", "--filter", "M"]
            done = subprocess.run(
                [sys.executable, "-B", SCRIPT, "part", *command], capture_output=True, text=True, check=False,
                env={**os.environ, "DLD_QUIET_SECONDS": quiet},
            )
        return done.returncode, done.stdout

    def test_nothing_is_tried_again_if_all_pass(self):
        status, output = self.run_script(0, 1)
        self.assertEqual((status, output.count("options")), (0, 1))

    def test_a_failed_test_that_passes_alone_is_reported(self):
        status, output = self.run_script(1, 0)
        self.assertEqual(status, 0)
        self.assertIn("options --no-parallel --filter ^(M\\.A/B/t0\\(x:\\)) ", output)
        self.assertIn("warning: part: failed beside others, passed alone: M.A/B/t0(x:)", output)

    def test_a_test_that_fails_twice_has_failed(self):
        status, output = self.run_script(1, 1)
        self.assertEqual(status, 1)
        self.assertNotIn("warning", output)

    def test_a_test_that_is_not_found_again_has_failed(self):
        status, output = self.run_script(1, "none")
        self.assertEqual(status, 1)
        self.assertNotIn("warning", output)

    def test_a_failure_of_no_test_is_final(self):
        status, output = self.run_script(1, 0, unknown=1)
        self.assertEqual((status, output.count("options")), (1, 1))

    def test_many_failures_and_an_end_without_a_report_are_final(self):
        for failures in (5, -1):
            status, output = self.run_script(failures, 0)
            self.assertEqual((status, output.count("options")), (1, 1))

    def test_a_command_that_hangs_is_killed_with_what_it_started_and_named(self):
        program = textwrap.dedent("""
            import subprocess, time
            child = subprocess.Popen(["sleep", "1000"])
            print("child", child.pid, "started", flush=True)
            time.sleep(1000)
        """)
        status, output = self.run_script(0, 0, program=program, quiet="1")
        self.assertEqual(status, 1)
        self.assertIn("error: nothing was printed for 1 seconds", output)
        child = output.split()[1]
        self.assertIn(f"process {child}: sleep 1000", output)
        self.assertFalse(os.path.exists(f"/proc/{child}/fd/1"))

    def test_the_end_is_that_of_the_command_whatever_it_leaves_behind(self):
        program = "import subprocess\nsubprocess.Popen(['sleep', '3'])\nprint('done')"
        self.assertEqual(self.run_script(0, 0, program=program), (0, "done\n"))


if __name__ == "__main__":
    unittest.main()
