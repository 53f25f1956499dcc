"""The operations' rows of tools/gpu_check: what a made-up program says, and what the real one says of a processor."""
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
sys.dont_write_bytecode = True
from gpu_report import budget, operations, report, table  # noqa: E402

CEILINGS = '{"row":"ceilings","device":"cuda:0","product_side":8192,"tflops":700.5,"copy_bytes":1073741824,"gbs":2900}'
ATTENTION = ('{"row":"attention","network":"gpt2_1.5b","context":1024,"sequences":8,"heads":25,"head_width":64,'
             '"way":"own kernels","why":"cuDNN is not here"}')
OPERATION = ('{"row":"operation","network":"resnet_50","operation":"convolution","attributes":"stride_height=2 groups=1",'
             '"inputs":"activation[n, 8, 8, 3]","samples":4,"times":2,"us":10.5,"tflops":1.25,"gbs":30,"of_ceiling":0.5,'
             '"runs":9,"way":"own kernels"}')
LATE = OPERATION.replace('"us":10.5,', '"not_run":"time",').replace("[n, 8,", "[n, 9,")


class OperationsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)

    def check(self, text, seconds=60):
        program = pathlib.Path(self.temporary.name, "gpu-operations")
        program.write_text("#!/bin/sh\n" + text + "\n")
        program.chmod(0o755)
        here = types.SimpleNamespace(program=lambda name: program, env=None, device="cuda:0", on_card=True)
        section = table.Section("operations", budget=budget.Budget(seconds), say=lambda _: None)
        operations.check_operations(section, here)
        return section

    def test_each_line_is_a_row_with_its_numbers(self):
        section = self.check("\n".join(f"echo '{line}'" for line in (CEILINGS, ATTENTION, OPERATION, LATE)))
        self.assertEqual([row["row"] for row in section.rows],
                         ["ceilings: product of side 8192, copy of 1074 MB",
                          "attention, gpt2_1.5b, context 1024, 8 sequences, 25 heads of 64",
                          "resnet_50: convolution stride_height=2 activation[n, 8, 8, 3], n = 4",
                          "resnet_50: convolution stride_height=2 activation[n, 9, 8, 3], n = 4"])
        self.assertEqual([row["outcome"] for row in section.rows], [table.PASSED] * 3 + [table.NOT_RUN])
        text = table.section_table(section)
        self.assertIn("| 700 | 2.9e+03 |", text)
        self.assertIn("own kernels: cuDNN is not here", text)
        self.assertIn("| resnet_50 | 2 | 10.5 | 1.25 | 30 | 50.0 % | own kernels | passed |", text)
        self.assertIn("not run: time", text)

    def test_a_program_that_ends_badly_keeps_its_rows_and_says_why(self):
        section = self.check(f"echo '{CEILINGS}'\necho 'gpu-operations: cudaErrorIllegalAddress' >&2\nexit 1")
        self.assertEqual([row["outcome"] for row in section.rows], [table.PASSED, table.FAILED])
        self.assertRegex(section.rows[-1]["why"], "exit 1: gpu-operations: cudaErrorIllegalAddress")

    def test_a_program_that_hangs_is_ended_with_the_time(self):
        began = pathlib.Path(self.temporary.name, "pid")
        looks = []

        def monotonic():
            """Its time begins at the first look, and is over as soon as it is there, however long that takes."""
            looks.append(began.exists() and began.read_text())
            return 1000 if len(looks) > 1 and looks[-1] else 0
        with mock.patch.object(operations, "time", types.SimpleNamespace(monotonic=monotonic)):
            section = self.check(f"echo $$ > {began}\necho '{CEILINGS}'\nexec sleep 1000")
        self.assertEqual(section.rows[-1]["outcome"], table.FAILED)
        self.assertIn("hangs", section.rows[-1]["why"])
        with self.assertRaises(ProcessLookupError):
            os.kill(int(began.read_text()), 0)

    def test_a_line_that_is_cut_short_is_a_failure_and_so_is_no_line(self):
        section = self.check(f"echo '{CEILINGS}'\necho '{OPERATION[:40]}'\necho '{{\"row\": null}}'")
        self.assertEqual([row["outcome"] for row in section.rows], [table.PASSED, table.FAILED])
        self.assertIn(OPERATION[:40], section.rows[-1]["why"])
        self.assertEqual([row["outcome"] for row in self.check("exit 0").rows], [table.FAILED])

    def test_a_signal_between_two_rows_says_that_the_rest_is_missing(self):
        section = table.Section("operations", budget=budget.Budget(60), say=lambda _: None)

        def stopped():
            if section.rows:
                raise report.Stopped("stopped by SIGTERM")
        program = pathlib.Path(self.temporary.name, "gpu-operations")
        program.write_text(f"#!/bin/sh\necho '{CEILINGS}'\nexec sleep 1000\n")
        program.chmod(0o755)
        here = types.SimpleNamespace(program=lambda name: program, env=None, device="cuda:0", on_card=True)
        lines = operations.lines_of
        with mock.patch.object(operations, "lines_of", lambda process: (stopped() or line for line in lines(process))):
            with self.assertRaises(report.Stopped):
                operations.check_operations(section, here)
        self.assertEqual([row["outcome"] for row in section.rows], [table.PASSED, table.NOT_RUN])
        self.assertIn("SIGTERM", section.rows[-1]["why"])

    def test_without_time_nothing_is_started(self):
        section = self.check("touch " + self.temporary.name + "/started", 5)
        self.assertEqual([row["outcome"] for row in section.rows], [table.NOT_RUN])
        self.assertFalse(pathlib.Path(self.temporary.name, "started").exists())


class RealProgramTest(unittest.TestCase):
    def test_every_operation_of_small_networks_runs_on_a_processor(self):
        program = pathlib.Path(PROGRAM)
        if not program.is_file():
            self.skipTest("gpu-operations is not built here")
        here = types.SimpleNamespace(program=lambda name: program, env=None, device="cpu", on_card=False)
        section = table.Section("operations", budget=budget.Budget(120), say=lambda _: None)
        operations.check_operations(section, here)
        self.assertEqual({row["outcome"] for row in section.rows}, {table.PASSED}, section.why())
        names = " ".join(row["row"] for row in section.rows)
        for operation in ("ceilings", "attention_gradient", "embedding_weight_gradient", "cross_entropy",
                          "convolution_weight_gradient", "batch_norm", "adamw of 0.1 million", "squared_norm of"):
            self.assertIn(operation, names)
        for row in section.rows:
            if "us" in row:
                self.assertGreater(row["us"], 0)
                self.assertGreater(row["of_ceiling"], 0)

    def test_a_processor_has_no_table_of_matrix_algorithms(self):
        if not pathlib.Path(PROGRAM).is_file():
            self.skipTest("gpu-operations is not built here")
        with tempfile.TemporaryDirectory() as folder:
            table_file = pathlib.Path(folder, "table.json")
            done = subprocess.run([PROGRAM, "--device", "cpu", f"--matmul-table-out={table_file}"], capture_output=True,
                                  text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("only cards have a choice of matrix algorithms, and --device=cpu is none", done.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


PROGRAM = ""
if __name__ == "__main__":
    if len(sys.argv) > 1:
        PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
