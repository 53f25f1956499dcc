"""What of tools/gpu_check needs no card: time, numbers, what other programs print, tables, error texts."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
sys.dont_write_bytecode = True
from gpu_report import arithmetic, budget, clocks, correctness, graphs, jobs, machine, memory  # noqa: E402
from gpu_report import report, runs, shards  # noqa: E402
from gpu_report import speed, table  # noqa: E402


def load_tool(name):
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def program(folder, name, text):
    """An invented program: a shell script."""
    file = pathlib.Path(folder, name)
    file.write_text("#!/bin/sh\n" + text + "\n")
    file.chmod(0o755)
    return file


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class BudgetTest(unittest.TestCase):
    def test_a_part_ends_with_the_whole(self):
        clock = Clock()
        whole = budget.Budget(60, clock)
        part = whole.part(20)
        clock.now += 15
        self.assertEqual((whole.left(), part.left()), (45, 5))
        self.assertEqual(whole.part(100).left(), 45)
        self.assertEqual(part.most(30), 5)
        clock.now += 10
        self.assertEqual(part.most(30), 1, "a started program gets an answer")

    def test_what_does_not_fit_is_not_run_and_says_the_numbers(self):
        clock = Clock()
        part = budget.Budget(10, clock)
        part.need(10)
        with self.assertRaisesRegex(budget.NotRun, "time: a run needs about 11 s, 10 s are left"):
            part.need(11, "a run")

    def test_sections_share_the_time_and_leave_over_the_rest(self):
        self.assertEqual(budget.shares({"a": 1, "b": 3}, 100), {"a": 25.0, "b": 100.0})


class ArithmeticTest(unittest.TestCase):
    def test_flops_of_a_token_by_hand(self):
        # One block of width 2, context 3: projections 2*4*4 = 32, scores and values 2*2*2*2 = 16, MLP 2*2*2*8 = 64;
        # the head 2*2*5 = 20.
        shape = {"layers": 1, "width": 2, "heads": 1, "context": 3, "vocabulary": 5}
        self.assertEqual(arithmetic.flops_per_token(shape), 3 * (32 + 16 + 64 + 20))
        self.assertEqual(arithmetic.flops_per_token(shape, full_attention=True), 3 * (32 + 24 + 64 + 20))

    def test_parameters_of_the_published_shapes(self):
        sizes = {name: arithmetic.parameters({**jobs.GPT2[name], "context": 1024}) for name in jobs.GPT2}
        # Our head is a matrix of its own: vocabulary x width on top of the published sizes.
        self.assertAlmostEqual((sizes["124M"] - 50257 * 768) / 124.4e6, 1, places=3)
        self.assertAlmostEqual((sizes["1.5B"] - 50257 * 1600) / 1557.6e6, 1, places=3)
        for layers, published in ((3, 282.2e6), (13, 785.8e6)):
            shape = {**jobs.TRANSFORMER, "layers": layers}
            self.assertAlmostEqual(arithmetic.parameters(shape) / published, 1, places=1)

    def test_shares(self):
        shape = {"layers": 1, "width": 2, "heads": 1, "context": 3, "vocabulary": 5}
        self.assertAlmostEqual(arithmetic.share(1e9, shape, 1.0), 0.396)
        self.assertIsNone(arithmetic.share(1e9, shape, None))

    def test_medians(self):
        self.assertEqual(arithmetic.median([3, 1, 2]), 2)
        self.assertEqual(arithmetic.median([4, 1, 2, 3]), 2.5)
        with self.assertRaises(ValueError):
            arithmetic.median([])

    def test_the_largest_is_found_with_few_questions(self):
        for limit in (0, 1, 2, 3, 7, 8, 100, 1999, 2000, 5000):
            asked = []

            def fits(n):
                asked.append(n)
                return n <= limit
            self.assertEqual(arithmetic.largest(fits, 1, 2000), min(limit, 2000))
            self.assertLessEqual(len(asked), 24)
            self.assertLessEqual(max(asked), 2000)

    def test_cards_of_the_data_sheets(self):
        self.assertEqual(arithmetic.datasheet_tflops("NVIDIA H200"), 989.5)
        self.assertEqual(arithmetic.datasheet_tflops("NVIDIA H100 PCIe"), 756.5)
        self.assertEqual(arithmetic.datasheet_tflops("NVIDIA A100-SXM4-80GB"), 312.0)
        self.assertEqual(arithmetic.datasheet_tflops("NVIDIA L4"), 121.0)
        self.assertEqual(arithmetic.datasheet_tflops("NVIDIA L40S"), 362.1)
        self.assertIsNone(arithmetic.datasheet_tflops("Another Card 4"))


class MachineTest(unittest.TestCase):
    def test_nvidia_smi(self):
        self.assertEqual(machine.parse_smi("NVIDIA H200, 580.1, 143771, 4\n"),
                         {"name": "NVIDIA H200", "driver": "580.1", "total_bytes": 143771 * 2**20, "used_bytes": 4 * 2**20})
        self.assertIsNone(machine.parse_smi("GB10, 580.1, [N/A], [N/A]")["total_bytes"])

    def test_cards_that_are_hidden_are_not_counted(self):
        self.assertEqual(machine.smi_name(1, {}), "1")
        self.assertEqual(machine.smi_name(1, {"CUDA_VISIBLE_DEVICES": "GPU-a1, 3"}), "3")
        self.assertEqual(machine.smi_name(0, {"CUDA_VISIBLE_DEVICES": "GPU-a1,3"}), "GPU-a1")

    def test_cudnn_is_taken_where_it_is(self):
        with tempfile.TemporaryDirectory() as name:
            pathlib.Path(name, "libofboth.so.13").touch()
            bundle = {"from_target": ["libofboth.so.13"], "from_target_if_there": ["libofnobody.so.9"]}
            pathlib.Path(name, "bundle.json").write_text(json.dumps(bundle))
            pathlib.Path(name, "COMMIT").write_text("abc123\n")
            here, values = machine.Machine(os.path.join(name, "bin"), "cuda:0", home=name), {}
            here.env["LD_LIBRARY_PATH"] = name
            here.find_libraries(values)
            self.assertEqual(values["found"], "libofboth.so.13; not here: libofnobody.so.9")
            self.assertEqual((here.env["LD_LIBRARY_PATH"], here.commit()), (name, "abc123"))

    def test_where_the_driver_is_found_through_the_variable_only_the_children_still_find_it(self):
        # Every child said "no NVIDIA driver": the variable that led to libcuda was replaced by CUDA's folders.
        with tempfile.TemporaryDirectory() as name:
            driver, toolkit = os.path.join(name, "driver"), os.path.join(name, "toolkit")
            for folder, library in ((driver, "libcuda.so.1"), (toolkit, "libofcuda.so.13")):
                os.makedirs(folder)
                pathlib.Path(folder, library).touch()
            pathlib.Path(name, "bundle.json").write_text(json.dumps({"from_target": ["libcuda.so.1", "libofcuda.so.13"]}))
            here = machine.Machine(os.path.join(name, "bin"), "cuda:0", home=name)
            here.env["LD_LIBRARY_PATH"] = f"{driver}:{toolkit}"
            here.find_libraries({})
            self.assertEqual(here.env["LD_LIBRARY_PATH"].split(":"), [toolkit, driver])

    def test_conditions_of_a_row(self):
        with tempfile.TemporaryDirectory() as name:
            program(name, "gpu-matmul-bench", "echo '{\"fingerprint\": \"cuda, A card (sm_90), CUDA 13.0\"}'; "
                                              "echo x >> " + os.path.join(name, "asked"))
            os.makedirs(os.path.join(name, "lib"))
            pathlib.Path(name, "lib", "libofcuda.so.13.1.2").touch()
            os.symlink("libofcuda.so.13.1.2", os.path.join(name, "lib", "libofcuda.so.13"))
            pathlib.Path(name, "bundle.json").write_text(json.dumps({"from_target": ["libofcuda.so.13"]}))
            here = machine.Machine(name, "cuda:0", home=name)
            here.env["LD_LIBRARY_PATH"] = os.path.join(name, "lib")
            nothing = clocks.Clocks(None, "0")
            self.assertIsNone(here.conditions(nothing, 0)["fingerprint"], "the libraries were not found yet")
            here.find_libraries({})
            for _ in range(2):
                seen = here.conditions(nothing, 0)
            self.assertEqual((seen["fingerprint"], seen["libraries"], seen["clocks"]),
                             ("cuda, A card (sm_90), CUDA 13.0", {"libofcuda.so.13": "libofcuda.so.13.1.2"}, {}))
            self.assertEqual(pathlib.Path(name, "asked").read_text(), "x\n", "asked once")
            program(name, "gpu-matmul-bench", "echo 'no NVIDIA driver' >&2; exit 1")
            other = machine.Machine(name, "cpu", home=name)
            self.assertEqual(other.fingerprint(), "unknown: no NVIDIA driver")

    def test_clocks_while_a_row_ran(self):
        lines = ["1980, 2619, 40, 300.5, 0x0000000000000000", "1755, 2619, 60, [N/A], 0x0000000000000004"]
        self.assertEqual(clocks.parse(lines[1]), ({"sm_mhz": 1755, "memory_mhz": 2619, "celsius": 60}, 4))
        with tempfile.TemporaryDirectory() as name:
            smi = program(name, "nvidia-smi", "".join(f"echo '{line}'; " for line in lines))
            with clocks.Clocks(smi, "0", clock=lambda: 10.0) as watch:
                watch._thread.join()
                self.assertEqual(watch.since(9.0), {"sm_mhz": [1755, 1867.5, 1980], "memory_mhz": [2619, 2619, 2619],
                                                    "celsius": [40, 50, 60], "watts": [300.5, 300.5, 300.5],
                                                    "throttle_reasons": "0x4"})
                self.assertEqual(watch.since(11.0)["sm_mhz"], [1755, 1755, 1755], "the last one before")
            with clocks.Clocks("/nowhere/nvidia-smi", "0") as watch:
                self.assertEqual(watch.since(0), {})

    def test_libraries_of_a_toolkit_come_before_wheels(self):
        with tempfile.TemporaryDirectory() as name:
            toolkit, wheel = os.path.join(name, "toolkit"), os.path.join(name, "site", "nvidia", "cu13", "lib")
            for folder, library in ((toolkit, "libofboth.so.13"), (wheel, "libofboth.so.13"), (wheel, "libofawheel.so.9")):
                os.makedirs(folder, exist_ok=True)
                pathlib.Path(folder, library).touch()
            folders = list(machine.library_folders({"LD_LIBRARY_PATH": toolkit}, [os.path.join(name, "site")]))
            found = machine.find_libraries(["libcuda.so.1", "libofboth.so.13", "libofawheel.so.9"], folders)
            self.assertEqual(found, {"libofboth.so.13": toolkit, "libofawheel.so.9": wheel})
            with self.assertRaisesRegex(budget.NotRun, "libcufft.so.11 is neither"):
                machine.find_libraries(["libcufft.so.11"], folders)

    def test_the_sanitizer_of_a_toolkit(self):
        with tempfile.TemporaryDirectory() as name:
            program = pathlib.Path(name, "compute-sanitizer", "compute-sanitizer")
            program.parent.mkdir()
            program.touch()
            environment = {"PATH": "/nowhere", "CUDA_HOME": name}
            if not os.path.exists("/usr/local/cuda"):
                with self.assertRaises(budget.NotRun):
                    machine.find_sanitizer(environment, [])  # not executable
            program.chmod(0o755)
            self.assertEqual(machine.find_sanitizer(environment, []), str(program))

    def test_a_program_that_hangs_and_one_that_is_missing(self):
        with self.assertRaisesRegex(budget.Late, "sleep: not finished within 0 s"):
            machine.call(["sleep", "30"], 0.05)
        with self.assertRaisesRegex(budget.NotRun, "No such file"):
            machine.call(["/nowhere/program"], 5)


LIST = "Running main() from gtest_main.cc\nCudaContext.\n  CopiesThereAndBack\nCuda/CudaConformance.\n  Agrees/0  # GetParam() = x\n"


class OtherProgramsTest(unittest.TestCase):
    def test_googletest(self):
        self.assertEqual(correctness.gtest_names(LIST),
                         ["CudaContext.CopiesThereAndBack", "Cuda/CudaConformance.Agrees/0"])

    def test_compute_sanitizer(self):
        self.assertEqual(correctness.sanitizer_errors("========= ERROR SUMMARY: 0 errors"), 0)
        self.assertEqual(correctness.sanitizer_errors("ERROR SUMMARY: 2 errors\nERROR SUMMARY: 1 error\n"), 3)
        self.assertEqual(correctness.sanitizer_errors("RACECHECK SUMMARY: 4 hazards displayed (4 errors, 0 warnings)"), 4)
        self.assertIsNone(correctness.sanitizer_errors("========= Error: Device not supported."))
        with self.assertRaisesRegex(budget.NotRun, "does not work here: ========= Error: Device not supported"):
            correctness.sanitized(["echo", "========= Error: Device not supported."], 10, None)
        with self.assertRaisesRegex(budget.Failed, "came to no sum, exit 0: crashed"):
            correctness.sanitized(["echo", "crashed"], 10, None)

    def test_every_stage_must_have_its_sum(self):
        with tempfile.TemporaryDirectory() as name:
            logs = pathlib.Path(name)
            (logs / "11.log").write_text("ERROR SUMMARY: 1 error")
            (logs / "12.log").write_text("ERROR SUMMARY: 0 errors")
            self.assertEqual(correctness.stage_errors(logs, {"stage-0": 11, "stage-1": 12}), 1)
            with self.assertRaisesRegex(budget.NotRun, "no sum for stage-1: no log"):
                correctness.stage_errors(logs, {"stage-0": 11, "stage-1": 13})

    def test_the_dead_hold_nothing(self):
        self.assertTrue(runs.alive(os.getpid()))
        child = os.posix_spawn("/bin/true", ["true"], {})
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # ended, not reaped: a zombie
        self.assertFalse(runs.alive(child))
        os.waitpid(child, 0)
        self.assertFalse(runs.alive(child))

    def test_metrics(self):
        text = "# HELP a_total x\na_total{job_id=\"j\"} 1.5e3\na_total_other 7\nb 2\n"
        self.assertEqual(runs.metric_values(text, "a_total"), [1500.0])
        self.assertEqual(runs.metric_values(text, "b"), [2.0])

    def test_plans(self):
        plan = {"stages": [{"memory": {"parameters": "10", "activations": "5"}}, {"memory": {"parameters": "7"}}]}
        self.assertEqual(runs.plan_memory(plan), [{"parameters": 10, "activations": 5}, {"parameters": 7}])

    def test_losses_repeated_by_a_recovery_must_be_the_same(self):
        steps = [{"event": "step", "step": 1, "loss": 2.5}, {"event": "recovery", "step": 1},
                 {"event": "step", "step": 1, "loss": 2.5}]
        self.assertEqual(runs.losses(steps), {1: 2.5})
        steps.append({"event": "step", "step": 1, "loss": 2.25})
        with self.assertRaisesRegex(budget.Failed, "step 1 was repeated with loss 2.25, it had 2.5"):
            runs.losses(steps)

    def test_words_for_too_little_memory(self):
        for text in ("RESOURCE_EXHAUSTED: forward of layer 3", "memory for activations: 512 bytes asked, ...",
                     "CUDA out of memory. Tried to allocate"):
            self.assertTrue(runs.OUT_OF_MEMORY.search(text), text)
        self.assertFalse(runs.OUT_OF_MEMORY.search("UNAVAILABLE: stage-1 was lost"))

    def test_pytorchs_lines_the_last_of_a_mode_counts(self):
        text = ('warning\n{"mode": "eager", "tokens_per_second": 1.0}\n{"mode": "compile", "error": "x"}\n'
                '{"mode": "eager", "tokens_per_second": 2.0}\n{"mode": "eag')
        self.assertEqual(speed.torch_results(text), {"eager": {"mode": "eager", "tokens_per_second": 2.0},
                                                     "compile": {"mode": "compile", "error": "x"}})
        self.assertEqual(speed.last_json('{"a": 1}\n{"a": 2}\nbye\n'), {"a": 2})
        self.assertIsNone(speed.last_json("nothing"))


# A test program as googletest writes, of ten tests. What a test does is in the file of its name beside the program.
GTEST = r"""#!/usr/bin/env python3
import os, pathlib, sys
here = pathlib.Path(sys.argv[0]).parent
if sys.argv[1] == "--gtest_list_tests":
    print("Card.\n" + "\n".join(f"  T{n}" for n in range(10)))
    sys.exit()
print("Note: Google Test filter = x", flush=True)
for name in sys.argv[1].removeprefix("--gtest_filter=").split(":"):
    print(f"[ RUN      ] {name}", flush=True)
    does = here / name
    outcome = "      OK"
    if does.exists():
        exec(does.read_text())
    print(f"[ {outcome} ] {name} (3 ms)", flush=True)
print("[  FAILED  ] 1 test, listed below:")
"""
POISONS = "poisoned = True; outcome = ' FAILED '; print('INTERNAL: device cuda:0, Gelu: cudaErrorIllegalAddress', flush=True)"


class ShardsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.program = self.folder / "backend_x_tests"
        self.program.write_text(GTEST)
        self.program.chmod(0o755)

    def does(self, name, text):
        (self.folder / name).write_text(text)

    def run_tests(self, seconds=60):
        """(values, why) of the row; why is the error."""
        values = {}
        try:
            correctness.run_tests(values, self.program, None, self.folder / "shards", budget.Budget(seconds))
        except (budget.NotRun, budget.Failed) as why:
            return values, why
        return values, None

    def files(self):
        return [json.loads(file.read_text()) for file in sorted((self.folder / "shards").glob("*.json"))]

    def test_every_test_runs_once_in_one_of_eight_to_twelve_processes(self):
        self.does("Card.T3", "outcome = ' SKIPPED'")
        values, why = self.run_tests()
        self.assertIsNone(why)
        self.assertEqual(values, {"passed": 9, "failed": 0, "skipped": 1, "tests": 10, "processes": 10})
        self.assertIn(correctness.SHARDS, range(8, 13))
        names = [name for file in self.files() for name in file["tests"]]
        self.assertEqual(sorted(names), [f"Card.T{n}" for n in range(10)])
        self.assertEqual([(file["program"], file["not_reached"]) for file in self.files()], [("backend_x_tests", [])] * 10)

    def sharded(self, count, **more):
        names = [f"Card.T{n}" for n in range(10)]
        return shards.run_sharded(self.program, names, count, self.folder / "shards", 60, **more)

    def outcomes(self, shard):
        return {name: result["outcome"] for name, result in shard.found.items()}

    def test_a_poisoned_context_hides_no_other_row(self):
        # One illegal address made every later test of the process fail, and the report held none of them.
        self.does("Card.T2", POISONS)
        self.does("Card.T4", "outcome = ' FAILED ' if 'poisoned' in globals() else '      OK'")
        first, second = self.sharded(2)
        self.assertEqual(self.outcomes(first), {"Card.T0": "passed", "Card.T2": "failed", "Card.T4": "passed",
                                                "Card.T6": "passed", "Card.T8": "passed"})
        self.assertIn("cudaErrorIllegalAddress", first.found["Card.T2"]["text"])
        self.assertEqual((first.processes, second.processes, set(self.outcomes(second).values())), (2, 1, {"passed"}))

    def test_a_test_that_ends_its_process_is_the_one_that_failed(self):
        self.does("Card.T5", "print('Check failed: OK', flush=True); os.abort()")
        values, why = self.run_tests()
        self.assertEqual((values["passed"], values["failed"]), (9, 1))
        self.assertRegex(str(why), r"1 failed: Card.T5: ended its process, exit -6: Check failed: OK")

    def test_what_was_found_stays_when_the_time_is_over(self):
        self.does("Card.T1", "import time; time.sleep(1000)")
        done = self.folder / "shards" / "backend_x_tests-00.json"
        # Behind the minute that sharded gives, and not so late that the one at hand could be too long for a test.
        over = (60 + shards.MOST_SECONDS_OF_A_TEST) / 2
        first, second = self.sharded(2, clock=lambda: over if done.exists() and len(json.loads(done.read_text())["tests"]) == 5
                                     else 0)
        self.assertEqual(len(first.found), 5)
        self.assertEqual(second.left(), [f"Card.T{n}" for n in (1, 3, 5, 7, 9)])
        self.assertEqual([len(file["not_reached"]) for file in self.files()], [0, 5])

    def test_a_program_that_cannot_run_says_why(self):
        values, why = {}, None
        self.program.write_text(GTEST.replace('print("Note', 'sys.exit("libcudart.so.13: cannot open"); print("Note'))
        values, why = self.run_tests()
        self.assertRegex(str(why), "ran no test, exit 1: libcudart.so.13: cannot open")
        self.program.write_text("#!/bin/sh\necho broken >&2; exit 3")
        self.assertRegex(str(self.run_tests()[1]), "lists no tests, exit 3: broken")

    def test_stopped_in_the_middle_no_process_goes_on_and_the_rest_is_kept(self):
        self.does("Card.T1", "pathlib.Path(here / 'pid').write_text(str(os.getpid())); import time; time.sleep(1000)")
        with self.assertRaises(report.Stopped):
            original, shards.threading.Thread.join = shards.threading.Thread.join, self.stopping
            self.addCleanup(setattr, shards.threading.Thread, "join", original)
            self.original_join = original
            self.sharded(2)
        self.assertFalse(runs.alive(int((self.folder / "pid").read_text())))
        self.assertEqual(len(self.files()), 2)

    @property
    def stopping(self):
        """Thread.join as a signal ends it, once the test that hangs is there."""
        case = self

        def join(thread, timeout=None):
            if timeout is not None and (case.folder / "pid").exists() and (case.folder / "pid").read_text():
                raise report.Stopped("stopped by SIGTERM")
            case.original_join(thread, timeout)
        return join


class Place:
    """A forecast of so many bytes a layer and sequence."""

    def __init__(self, layer, sequence):
        self.layer, self.sequence = layer, sequence

    def forecast(self, spec, stages=1):
        training = spec["training"]
        return (self.layer * spec["model"]["gpt"]["layers"] +
                self.sequence * training["batch_size"] // training["micro_batches"])


class SpeedTest(unittest.TestCase):
    SHAPE = {"layers": 10, "width": 8, "heads": 2, "vocabulary": 16, "micro_tokens": 4096, "step_tokens": 16384}

    def test_the_mini_batch_is_cut_into_micro_batches_that_fit(self):
        work, forecast = speed.fitting(Place(10, 25), self.SHAPE, 1024, "bfloat16", 150)[0]
        self.assertEqual((work.micro_batch, work.micro_batches, work.batch, forecast), (2, 8, 16, 150))
        self.assertEqual(work.job()["precision"], "bfloat16")
        with self.assertRaisesRegex(budget.NotRun, "one sequence needs"):
            speed.fitting(Place(10, 25), self.SHAPE, 1024, "bfloat16", 100)
        # A sequence longer than a micro-batch should be is one micro-batch all the same.
        self.assertEqual(speed.fitting(Place(1, 1), self.SHAPE, 8192, "float32", 99)[0][0].micro_batch, 1)

    def test_as_many_layers_as_fit(self):
        self.assertEqual(speed.stretched(Place(10, 25), self.SHAPE, 1024, "float32", 79)["layers"], 5)
        self.assertEqual(speed.stretched(Place(1, 1), self.SHAPE, 1024, "float32", 79)["layers"], 10)
        with self.assertRaisesRegex(budget.NotRun, "not one layer"):
            speed.stretched(Place(10, 25), self.SHAPE, 1024, "float32", 20)

    def test_goals(self):
        self.assertIsNone(speed.goal_met({}, 2e9))
        self.assertIsNone(speed.goal_met({"mfu": 0.2}, 1e8))
        self.assertTrue(speed.goal_met({"mfu": 0.56, "beside_compile": 1.1}, 2e9))
        self.assertFalse(speed.goal_met({"mfu": 0.54, "beside_compile": 1.2}, 2e9))
        self.assertFalse(speed.goal_met({"mfu": 0.54, "beside_compile": 1.0}, 1e8))

    def test_every_row_has_a_shape(self):
        for name, _ in jobs.SPEED_ROWS + jobs.TINY_SPEED_ROWS:
            self.assertEqual(speed.SHAPES[name]["width"] % speed.SHAPES[name]["heads"], 0)
        self.assertEqual(len(jobs.SPEED_ROWS), 8)

    def test_micro_batches_and_text(self):
        self.assertEqual(jobs.micro_batch_choices(1024, 8192), [8, 4, 2, 1])
        self.assertEqual(jobs.micro_batch_choices(4096, 2048), [1])
        self.assertEqual(len(jobs.synthetic_text(1000)) // 10, 100)
        self.assertEqual(jobs.synthetic_text(500), jobs.synthetic_text(500))


class MemoryTest(unittest.TestCase):
    def test_the_largest_stage_is_compared(self):
        values = {}
        memory.compare(values, [{"a": 100}, {"a": 200}], [{"a": 90}, {"a": 230}], 1000)
        self.assertEqual((values["forecast"], values["allocator"], values["driver"]), (200, 230, 1000))
        self.assertAlmostEqual(values["ratio"], 1.15)
        self.assertFalse(values["goal"])
        memory.compare(values, [{"a": 200}], [{"a": 219}], None)
        self.assertTrue(values["goal"])

    def test_the_papers_shape(self):
        naive, pipelined = (memory.transformer(jobs.TRANSFORMER, 3, "float32", way) for way in (False, True))
        self.assertEqual((naive["training"]["micro_batches"], naive["pipeline"]["rematerialization"]), (1, "never"))
        self.assertEqual((pipelined["training"]["micro_batches"], pipelined["pipeline"]["rematerialization"]),
                         (32, "always"))


class GraphsTest(unittest.TestCase):
    LINE = ("[2026-01-01] [info] CUDA graphs: {} captured, launched for {} lists of calls; 9 lists call by call, 1 refused\n")

    def run_of(self, digest, seconds):
        return digest, [{"event": "step", "step": step, "step_seconds": seconds} for step in range(1, 9)]

    def test_the_lines_of_all_stages_are_summed(self):
        with tempfile.TemporaryDirectory() as name:
            logs = pathlib.Path(name, "logs")
            logs.mkdir()
            (logs / "stage-0.log").write_text("loaded\n" + self.LINE.format(12, 340))
            (logs / "stage-1.log").write_text(self.LINE.format(8, 60))
            (logs / "coordinator.log").write_text(self.LINE.format(1000, 1000))
            found = runs.Run.said(types.SimpleNamespace(state=pathlib.Path(name)), graphs.SAID)
        self.assertEqual(graphs.count_lists(found), {"captured": 20, "by_graph": 400, "call_by_call": 18, "refused": 2})

    def test_speed_is_compared_where_the_bits_are_equal(self):
        values = {"by_graph": 5}
        graphs.compare(values, self.run_of("sha256:ab", 0.2), self.run_of("sha256:ab", 0.1))
        self.assertEqual(values["gain"], 2)
        self.assertEqual(values["without"], graphs.BATCH * graphs.CONTEXT / 0.2)

    def test_other_bits_and_no_graph_at_all_are_mistakes(self):
        with self.assertRaisesRegex(budget.Failed, "ab without graphs, cd with them"):
            graphs.compare({"by_graph": 5}, self.run_of("sha256:ab", 0.2), self.run_of("sha256:cd", 0.2))
        for by_graph in ({}, {"by_graph": 0}):
            with self.assertRaisesRegex(budget.Failed, "no list of calls became a graph"):
                graphs.compare(by_graph, self.run_of("sha256:ab", 0.2), self.run_of("sha256:ab", 0.2))

    def test_the_job_differs_by_a_variable_alone(self):
        asked = []

        class Run:
            events = self.run_of("", 0.1)[1]

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def finish(self, seconds):
                pass

            def digest(self):
                return "sha256:ab"

            def said(self, pattern):
                return [("4", "100", "2", "0")]

        def start(spec, stages, variables):
            asked.append((json.dumps(spec), stages, variables[graphs.VARIABLE]))
            return Run()
        section = table.Section("graphs", budget=budget.Budget(100), say=lambda line: None)
        place = types.SimpleNamespace(start=start, folder=".")
        card = types.SimpleNamespace(on_card=True, need_bfloat16=lambda folder: None)
        graphs.check_graphs(section, card, place)
        self.assertEqual({row["outcome"] for row in section.rows}, {"passed"})
        self.assertEqual([variable for _, _, variable in asked], ["0", "1"] * 3)
        self.assertEqual(asked[0][:2], asked[1][:2])


class TableTest(unittest.TestCase):
    def section(self):
        section = table.Section("speed", [("tokens", "tokens/s", ".0f"), ("mfu", "MFU", "%"), ("goal", "goal", "met")],
                                budget.Budget(60), say=lambda line: None)
        section.row("a", lambda values: values.update(tokens=1234.5, mfu=0.5512, goal=True))
        return section

    def raising(self, error):
        def work(values):
            values["tokens"] = 7
            raise error
        return work

    def test_a_row_keeps_what_it_measured_whatever_happens(self):
        section = self.section()
        section.row("b", self.raising(budget.Failed("broken | badly")))
        section.row("c", self.raising(budget.NotRun("no card")))
        section.row("d", self.raising(KeyError("weights")))
        self.assertEqual([row["outcome"] for row in section.rows], ["passed", "FAILED", "not run", "FAILED"])
        self.assertEqual([row.get("tokens") for row in section.rows], [1234.5, 7, 7, 7])
        self.assertRegex(section.rows[3]["why"], r"KeyError: 'weights' \(work, line \d+\)")
        text = table.section_table(section)
        self.assertIn("| a | 1234 | 55.1 % | met | passed |", text)
        self.assertIn("| b | 7 | – | – | FAILED: broken \\| badly |", text)
        self.assertIn("| c | 7 | – | – | not run: no card |", text)

    def test_a_wait_cut_short_by_the_time_is_no_failure(self):
        clock = Clock()
        section = table.Section("s", budget=budget.Budget(50, clock), say=lambda line: None)
        section.row("hangs", self.raising(budget.Late("no event within 20 s")))
        clock.now += 49
        section.row("late", self.raising(budget.Late("no event within 1 s")))
        self.assertEqual([row["outcome"] for row in section.rows], ["FAILED", "not run"])
        self.assertEqual(section.rows[1]["why"], "time: no event within 1 s")

    def test_outcomes(self):
        self.assertEqual(table.combined(["passed", "not run"]), "passed")
        self.assertEqual(table.combined(["not run"]), "not run")
        self.assertEqual(table.combined(["passed", "FAILED", "not run"]), "FAILED")
        self.assertEqual(table.combined([]), "not run")
        good = self.section()
        self.assertEqual((good.why(), table.exit_code([good])), ("", 0))
        good.skip("b", "no card")
        self.assertEqual((good.why(), table.exit_code([good])), ("1 of 2 rows: no card", 3))
        good.row("c", self.raising(budget.Failed("x")))
        self.assertEqual((good.why(), table.exit_code([good])), ("1 of 3 rows: x", 1))
        self.assertEqual(table.exit_code([]), 3)

    def test_cells(self):
        self.assertEqual(table.written(None, "%"), "–")
        self.assertEqual(table.written(12.34e9, "GB"), "12.3")
        self.assertEqual(table.written(False, "met"), "missed")
        self.assertEqual(table.written("not run", ".0f"), "not run")
        self.assertLessEqual(len(table.shortened("word " * 1000)), table.MOST_WHY + 10)

    def test_the_report_is_whole_markdown_and_json(self):
        facts = {"device_name": "A card", "device": "cuda:0", "commit": "abc"}
        text = table.markdown(facts, [self.section()], ["a note"])
        self.assertTrue(text.startswith("## A report of gpu_check: A card\n\n* device: cuda:0\n* commit: abc\n"))
        self.assertTrue(text.endswith("* a note\n"))
        for line in text.splitlines():
            if line.startswith("|"):
                self.assertTrue(line.endswith("|"), line)
        self.assertEqual(json.loads(table.to_json(facts, [self.section()]))["sections"][0]["rows"][0]["mfu"], 0.5512)

    def test_an_earlier_report_fills_what_is_not_run(self):
        facts = {"device_name": "A card", "commit": "abc"}
        earlier_section = self.section()
        earlier_section.row("b", lambda values: values.update(tokens=5.0))
        other = table.Section("memory", [("gb", "GB", "")], say=lambda line: None)
        other.row("m", lambda values: values.update(gb=1))
        earlier = json.loads(table.to_json(facts, [earlier_section, other]))
        now = table.Section("speed", [], say=lambda line: None)
        now.row("a", lambda values: values.update(tokens=9.0))
        now.skip("b", "time")
        sections = table.completed([now], facts, earlier)
        self.assertEqual([(s.name, [r.get("tokens") for r in s.rows]) for s in sections],
                         [("speed", [9.0, 5.0]), ("memory", [None])])
        self.assertIn("| b | 5 |", table.section_table(sections[0]))
        with self.assertRaisesRegex(ValueError, "commit is 'abc' there, 'def' here"):
            table.completed([now], {**facts, "commit": "def"}, earlier)


# `local` fails at once in the first row; in the second, which knows its precision, it hangs.
HANGING_CLIENT = """
[ "$1" = validate ] && exit 0
[ "$1" = local ] || exit 1
for last; do :; done
grep -q bfloat16 "$last" && echo > "${0%/*}/began" && exec sleep 1000
echo 'stagecoach: invented' >&2; exit 1
"""


class BundleTest(unittest.TestCase):
    """tools/gpu_bundle before it packs."""

    def setUp(self):
        self.bundle = load_tool("gpu_bundle")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "tools").mkdir()
        (self.folder / "bin").mkdir()
        self.bundle.ROOT = self.folder
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{self.folder}/bin:{before}"
        self.addCleanup(os.environ.__setitem__, "PATH", before)

    def test_a_machine_set_up_by_setup_gets_what_a_bundle_needs(self):
        # It stopped with "patchelf is not installed" behind a build that had installed everything else.
        program(self.folder / "tools", "setup", f"""
            [ "$1" = --with-bundle ] && printf '#!/bin/sh\\n' > {self.folder}/bin/of-a-bundle && chmod +x {self.folder}/bin/of-a-bundle""")
        self.bundle.need_tools(["of-a-bundle", "sh"])
        with self.assertRaisesRegex(SystemExit, "of-nobody is not installed; apt-get install of-nobody"):
            self.bundle.need_tools(["of-nobody"])
        program(self.folder / "tools", "setup", "exit 1")
        self.bundle.need_tools(["of-a-bundle", "sh"])  # nothing to do, so nothing is asked
        self.assertRegex((TOOLS / "setup").read_text(), r'= --with-bundle \] && kinds\+=\(bundle\)')
        self.assertIn("\npatchelf bundle\n", (TOOLS / "packages.txt").read_text())

    def test_programs_without_cudnn_are_packed_only_if_one_says_so(self):
        # Without network the build leaves cuDNN's attention out with a line, and the bundle did not say a word.
        stage = program(self.folder / "bin", "stagecoach-stage", "built without cudnn-frontend")
        with self.assertRaisesRegex(SystemExit, "built without cudnn-frontend.*--without-cudnn"):
            self.bundle.need_cudnn(self.folder)
        stage.write_bytes(b"\0cuDNN 9.19.0 by cudnn-frontend 1.32.0\0")
        self.bundle.need_cudnn(self.folder)


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        self.program = load_tool("gpu_check")

    def parse(self, *words):
        with open(os.devnull, "w") as nothing:
            errors, sys.stderr = sys.stderr, nothing
            try:
                return self.program.parse(words)
            finally:
                sys.stderr = errors

    def test_options(self):
        options = self.parse("--device", "cuda", "--rows", "1.5B/4096, 124M/1024", "--sections", "speed,memory")
        self.assertEqual(options.device, "cuda:0")
        self.assertEqual(options.rows, ["1.5B/4096", "124M/1024"])
        self.assertEqual(options.sections, ["speed", "memory"])
        self.assertLess(self.program.LIMIT_SECONDS, 590)
        for words in (["--device", "tpu"], ["--sections", "spead"], ["--rows", "9B/1"]):
            with self.assertRaises(SystemExit):
                self.parse(*words)

    def test_without_a_card_every_section_says_so_and_the_report_is_whole(self):
        def no_card(self, values):
            raise budget.NotRun("no device: for this test")
        original = machine.Machine.find_card
        machine.Machine.find_card = no_card
        say, self.program.say = self.program.say, lambda line: None
        try:
            with tempfile.TemporaryDirectory() as name:
                options = self.parse("--bin", str(TOOLS), "--python", "/nowhere/python")
                written = report.Report(pathlib.Path(name, "gpu-report.json"), {})
                self.program.check(options, written)
                on_disk = json.loads(pathlib.Path(name, "gpu-report.json").read_text())
        finally:
            machine.Machine.find_card, self.program.say = original, say
        facts, sections = written.facts, written.sections
        self.assertEqual([section["section"] for section in on_disk["sections"]], list(self.program.WEIGHTS))
        self.assertEqual([section.name for section in sections], list(self.program.WEIGHTS))
        self.assertEqual({section.outcome() for section in sections}, {"not run"})
        self.assertEqual({row["why"] for section in sections for row in section.rows}, {"no device: for this test"})
        self.assertEqual(table.exit_code(sections), 3)
        self.assertRegex(facts["PyTorch"], "/nowhere/python")

    def start_in(self, folder):
        """gpu_check on the CPU, with a client whose second job hangs."""
        program(folder, "stagecoach", HANGING_CLIENT)
        program(folder, "gpu-matmul-bench", "echo '{\"fingerprint\": \"invented\"}'")
        command = [sys.executable, str(TOOLS / "gpu_check"), "--device", "cpu", "--bin", str(folder), "--sections",
                   "bits,memory", "--python", "/nowhere", "--report", str(folder / "out" / "r.json")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_machine_that_is_taken_away_leaves_the_rows_that_were_done(self):
        # The report was written at the end only: a card for minutes, taken back early, gave nothing.
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            os.mkfifo(folder / "began")
            check = self.start_in(folder)
            (folder / "began").read_text()  # the first row of bits is done, the second hangs
            before = json.loads((folder / "out" / "r.json").read_text())
            check.terminate()
            out, errors = check.communicate(timeout=60)
            after = json.loads((folder / "out" / "r.json").read_text())
        self.assertEqual(errors, "")
        self.assertIn("stopped by SIGTERM", out)
        self.assertEqual(check.returncode, 1)
        rows = {section["section"]: [(row["outcome"], row["why"]) for row in section["rows"]]
                for section in before["sections"]}
        self.assertEqual(len(rows["bits"]), 1)
        self.assertEqual(rows["bits"][0][0], "FAILED")
        self.assertEqual(before["sections"][1]["rows"][0]["conditions"]["fingerprint"], "invented")
        rows = {section["section"]: [(row["outcome"], row["why"]) for row in section["rows"]]
                for section in after["sections"]}
        self.assertEqual(rows["bits"][1], ("not run", "stopped by SIGTERM"))
        self.assertEqual(rows["memory"], [("not run", "stopped by SIGTERM")])

    def test_killed_at_any_moment_it_leaves_a_report_that_can_be_read(self):
        chance = random.Random(14)
        for attempt in range(6):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                program(folder, "stagecoach", "exit 1")
                program(folder, "gpu-matmul-bench", "echo '{\"fingerprint\": \"invented\", \"tflops_median\": 1}'")
                check = subprocess.Popen(
                    [sys.executable, str(TOOLS / "gpu_check"), "--device", "cpu", "--bin", name, "--python", "/nowhere",
                     "--report", str(folder / "r")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                lines = 0
                last = chance.randrange(1, 9)
                for _ in check.stdout:  # one for each row that is done
                    lines += 1
                    if lines == last:
                        break
                check.kill()
                check.communicate()
                self.assertEqual(lines, last, "it ended by itself")
                found = json.loads((folder / "r.json").read_text())
                markdown = (folder / "r.md").read_text()
            rows = [row for section in found["sections"] for row in section["rows"]]
            self.assertGreaterEqual(len(rows), last - 1, f"attempt {attempt}: all but the one at hand")
            for section in found["sections"]:
                self.assertIn(section["section"], markdown)

    def test_the_three_calls_have_every_section_once(self):
        called = [self.parse("--call", str(number)).sections for number in (1, 2, 3)]
        self.assertEqual({sections[0] for sections in called}, {"machine"})
        behind = [name for sections in called for name in sections[1:]]
        self.assertEqual(sorted(behind), sorted(set(self.program.WEIGHTS) - {"machine"}))
        self.assertEqual(called[2][-1], "sanitizer")
        with self.assertRaises(SystemExit):
            self.parse("--call", "4")
        with self.assertRaises(SystemExit):
            self.parse("--call", "1", "--sections", "speed")

    def test_bfloat16_is_asked_of_the_programs(self):
        with tempfile.TemporaryDirectory() as name:
            program = pathlib.Path(name, "stagecoach")
            program.write_text("#!/bin/sh\nfor file; do :; done; echo \"stagecoach: $file:1:473: precision: unknown field; known: x\" >&2\nexit 2\n")
            program.chmod(0o755)
            here = machine.Machine(name, "cpu")
            with self.assertRaisesRegex(budget.NotRun, r"take precision: bfloat16 \(precision: unknown field\)"):
                here.need_bfloat16(name)
            program.write_text("#!/bin/sh\nexit 0\n")
            machine.Machine(name, "cpu").need_bfloat16(name)


FAKE_LOCAL = """#!/bin/sh
while [ "$1" != --state-dir ]; do shift; done
mkdir -p "$2/logs"; echo 'stage: error: RESOURCE_EXHAUSTED: memory for gradients' > "$2/logs/stage-0.log"
echo '{"processes":[]}' > "$2/processes.json"
echo '{"event":"step","step":1,"loss":2.0,"step_seconds":0.5}'
%s
"""


class RunTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)

    def start(self, rest):
        program = pathlib.Path(self.temporary.name, "stagecoach")
        program.write_text(FAKE_LOCAL % rest)
        program.chmod(0o755)
        here = types.SimpleNamespace(program=lambda name: program, env=None, device="cpu")
        return runs.Workplace(here, self.temporary.name).start({}, 1)

    def test_a_run_that_succeeds(self):
        end = '{"event":"finished","state":"SUCCEEDED","weights_digest":"sha256:ab"}'
        with self.start(f"echo '{end}'") as run:
            run.finish(20)
            self.assertEqual((run.digest(), runs.losses(run.events)), ("sha256:ab", {1: 2.0}))

    def test_too_little_memory_is_told_from_other_ends(self):
        with self.start("echo \"stagecoach: job failed\" >&2; exit 1") as run:
            with self.assertRaisesRegex(runs.OutOfMemory, "K = 1: ended before step 2.*memory for gradients"):
                run.wait_for_step(2, 20)

    def test_a_run_that_hangs_is_late_and_gone_afterwards(self):
        with self.start("exec sleep 1000") as run:
            run.wait_for_step(1, 20)
            with self.assertRaisesRegex(budget.Late, "nothing new within 0 s, the last event was step 1"):
                run.wait_for_step(2, 0.1)
            process = run._process
        self.assertIsNotNone(process.poll())

    def test_step_times_begin_behind_the_warm_up(self):
        steps = "\n".join(f"echo '{{\"event\":\"step\",\"step\":{n},\"loss\":1,\"step_seconds\":{n}}}'" for n in range(2, 9))
        with self.start(steps + "\nexec sleep 1000") as run:
            self.assertEqual(run.seconds_of_steps(1, 20), [4, 5, 6])


if __name__ == "__main__":
    unittest.main(verbosity=1)
