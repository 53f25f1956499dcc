"""tools/no_leftovers blames what a command leaves behind, and nothing else.

Symptom: supervisor_test left a `sleep 1000`, which held a lock of the shell that ran the tests for a quarter of an hour.
"""
import pathlib
import re
import signal
import subprocess
import sys
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "no_leftovers"


def run(script, **more):
    return subprocess.run([sys.executable, str(TOOL), "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60,
                          **more)


class NoLeftoversTest(unittest.TestCase):
    def test_a_command_that_cleans_up_keeps_its_exit_status(self):
        other = subprocess.Popen(["sleep", "1000"])  # ours, and none of the command's business
        try:
            for code in (0, 3):
                result = run(f"sleep 1000 & kill $!; wait; echo out; exit {code}")
                self.assertEqual((result.returncode, result.stdout, result.stderr), (code, "out\n", ""))
        finally:
            other.kill()
            other.wait()

    def test_what_is_left_is_named_and_ended(self):
        # With streams of its own, in a session of its own, with an empty environment: nothing but its birth tells of it.
        result = run("setsid env -i /bin/sh -c 'sleep 1234 & wait' </dev/null >/dev/null 2>&1 & exit 0")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"left behind:\n")
        pid = int(re.search(r"pid (\d+): sleep 1234  \(in /", result.stderr).group(1))
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_a_failed_command_keeps_its_status(self):
        result = run("sleep 1234 >/dev/null 2>&1 & exit 7")
        self.assertEqual(result.returncode, 7)
        self.assertIn("sleep 1234", result.stderr)

    def test_a_command_ended_by_a_signal_gives_the_shells_status(self):
        self.assertEqual(run("kill -KILL $$").returncode, 128 + signal.SIGKILL)


if __name__ == "__main__":
    unittest.main(verbosity=2)
