"""tools/test runs every part, whatever failed before, and lists what failed at the end.

Symptom: it ended at the first part that failed, so a newcomer learned of one test and of nothing behind it.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "test"

# Programs of the same names, which note their call and do as FAIL says: a line "PROGRAM ARGUMENTS" fails if FAIL is in it.
PROGRAM = """#!/usr/bin/env bash
call="$(basename "$0") $*"
echo "$call" >>"$CALLS"
[ -n "$FAIL" ] && [[ $call == *"$FAIL"* ]] || exit 0
if [[ $call == ctest* ]]; then
  mkdir -p "$2/Testing/Temporary"
  printf '7:a_test\\n12:another_test\\n' >"$2/Testing/Temporary/LastTestsFailed.log"
fi
exit 3
"""


class TestToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        (self.root / "path").mkdir()
        shutil.copy(TOOL, self.root / "tools" / "test")
        for name in ("tools/setup", "tools/build", "tools/fuzz", "path/ctest", "path/cmake"):
            self.write(name, PROGRAM)
        self.write("tools/no_leftovers", '#!/usr/bin/env bash\n"$@"\n')
        for name in ("backend_cudnn_tests", "backend_cuda_tests"):
            self.write(f"build-cuda/bin/{name}", PROGRAM)
        self.calls = self.root / "calls"

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_tool(self, fail, *arguments):
        environment = dict(os.environ, PATH=f"{self.root}/path:{os.environ['PATH']}", CALLS=str(self.calls), FAIL=fail)
        self.calls.write_text("")
        result = subprocess.run([self.root / "tools" / "test", *arguments], env=environment, capture_output=True,
                                text=True, timeout=60)
        # The builds run beside the whole jobs.
        return result, sorted(self.calls.read_text().splitlines())

    def test_all_parts_run_whichever_fails(self):
        good, parts = self.run_tool("")
        self.assertEqual(good.returncode, 0, good.stdout + good.stderr)
        self.assertIn("== all tests passed", good.stdout)
        self.assertNotIn("== failed", good.stdout)
        for fail, name in (("build release", "release: build: exit status 3"),
                           ("ctest --test-dir build -j", "release: tests: exit status 3\n    a_test\n    another_test"),
                           ("-L serial", "release: whole jobs, beside the builds of cuda, asan and tsan: exit status 3"),
                           ("build asan", "cuda, asan and tsan: builds, begun beside them: exit status 1"),
                           ("-L smoke", "asan: a whole job: exit status 3"),
                           ("fuzz --seconds", "fuzz: 8 seconds each: exit status 3"),
                           ("--test-dir build-tsan", "tsan: tests: exit status 3")):
            with self.subTest(fail):
                result, calls = self.run_tool(fail)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertEqual(calls, parts)
                self.assertIn("== failed", result.stdout)
                self.assertIn(name, result.stdout.split("== failed")[1])
                self.assertNotIn("all tests passed", result.stdout)

    def test_a_list_of_an_earlier_run_is_not_shown(self):
        self.run_tool("-L deploy")
        result, _ = self.run_tool("tsan")
        self.assertEqual(result.stdout.split("== failed")[1].count("another_test"), 1, result.stdout)

    def test_without_its_packages_nothing_is_tried(self):
        result, calls = self.run_tool("setup --with-tests")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(calls, ["setup --with-tests"])

    def test_fast_lists_what_failed_too(self):
        result, calls = self.run_tool("build -j", "--fast")
        self.assertEqual(result.returncode, 1)
        self.assertIn("release: tests", result.stdout.split("== failed")[1])
        self.assertEqual(len(calls), 4, calls)


if __name__ == "__main__":
    unittest.main(verbosity=2)
