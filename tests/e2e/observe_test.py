"""Looking at a running cluster: metrics, health, the other commands of the client."""
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.request

import harness


PRINTED = 1e-5  # what printing a number of seconds may round


def fetch(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as reply:
        return reply.read().decode()


def coordinator_metrics(address):
    """A scrape that has jobs and stages: one that the journal's disk keeps waiting for a second leaves them out."""
    def whole():
        text = fetch(address, "/metrics")
        return text if samples(text, "stagecoach_jobs") and samples(text, "stagecoach_stages") else None
    return harness.wait_until("jobs and stages in the coordinator's metrics", whole, 60)


def samples(text, name):
    """label text -> value"""
    result = {}
    for line in text.splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            labels, value = line[len(name):].rsplit(" ", 1)
            result[labels] = float(value)
    return result


def documented(program):
    """name -> type of what docs/metrics.md says that `program` (C or S) exports without a card and without TLS"""
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| `")]
    rows = [row for row in rows if not any(need in row[5] for need in ("with NVML only", "with TLS only"))]
    return {row[0].strip("`"): row[1] for row in rows if program in row[4].split()}


def exported(text):
    """name -> type of an exposition"""
    return dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))


class Observe(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        # An objective that is named measures accuracy, so that there is a measure to be seen.
        self.start_cluster("state", model={"objective": {"cross_entropy": {"mean_iou": True, "per_class": True}}})
        self.cluster.wait_for_step(3)

    def start_cluster(self, state, *extra, **changes):
        job = self.job_file(training={"steps": 100000}, name="watched", **changes)
        self.cluster = self.start(job, 2, state, "--id", "watched", *extra)
        self.cluster.wait_for_step(1)
        self.processes = self.cluster.processes()
        self.address = self.processes["coordinator"]["address"]

    def metrics(self, name):
        http = self.processes[name]["http"]
        return coordinator_metrics(http) if name == "coordinator" else fetch(http, "/metrics")

    def client(self, *arguments):
        return self.cli(*arguments, "--address", self.address)

    def test_every_second_of_a_stage_is_in_one_phase(self):
        for name in ("stage-0", "stage-1"):
            http = self.processes[name]["http"]

            def read():
                """(a moment before, the seconds of all phases, a moment after); the stage read its clock in between"""
                before = time.monotonic()
                text = fetch(http, "/metrics")
                return before, sum(samples(text, "stagecoach_stage_time_seconds_total").values()), time.monotonic()
            earliest, first, begun = read()

            def much_later():
                """What has passed at least, what the phases have of it, and what has passed at most, within 2 %."""
                end, last, latest = read()
                passed = end - begun, last - first, latest - earliest
                return passed if passed[2] < 1.02 * passed[0] else None
            least, counted, most = harness.wait_until("a time that is long beside a request", much_later, 60)
            self.assertGreaterEqual(counted, least - PRINTED, name)
            self.assertLessEqual(counted, most + PRINTED, name)

    def test_one_thread_of_a_stage_polls_for_grpc(self):
        # Callback services, health among them, would bring pollers of their own ("nexting_thread"), and every
        # message of a link would change threads: 2.5 GB/s instead of 3.7.
        for name in ("stage-0", "stage-1"):
            pid, threads = self.cluster.pid(name), []

            def settled():
                """A thread that begins has the name of the one that began it until it gives itself another."""
                threads.clear()
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                        threads.append((task / "comm").read_text().strip())
                return threads.count("rpc") == 1 and not any(thread.startswith("nexting") for thread in threads)
            try:
                harness.wait_until("one thread that polls", settled)
            except AssertionError:
                self.fail(f"{name} has these threads: {threads}")

    def test_metrics_are_clean(self):
        promtool = shutil.which("promtool")
        for name in self.processes:
            text = self.metrics(name)
            self.assertIn("stagecoach_build_info", text)
            if promtool:
                check = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
                self.assertEqual(check.stdout + check.stderr, "", name)
        text = self.metrics("coordinator")
        self.assertEqual(list(samples(text, "stagecoach_pipeline_ideal_bubble_ratio").values()), [0.2])

    def test_every_documented_metric_is_exported_and_no_other(self):
        # After a checkpoint and an evaluation nothing of a running job is unknown any more.
        self.cluster.wait_for_step(7)
        for name in self.processes:
            program = "C" if name == "coordinator" else "S"
            self.assertEqual(exported(self.metrics(name)), documented(program), name)

    def test_classes_stand_in_the_records_and_are_no_series(self):
        evaluation = self.cluster.wait_for("an evaluation", lambda event: event["event"] == "evaluation")
        shares = [evaluation[key] for key in evaluation if key.startswith("iou/")]
        self.assertAlmostEqual(evaluation["mean_iou"], sum(shares) / len(shares), delta=1e-9)
        self.assertTrue(any(key.startswith("accuracy/") for key in evaluation), evaluation)
        text = self.metrics("coordinator")
        measures = {f'{{job_id="watched",split="{split}",measure="{name}"}}' for split in ("train", "eval") for name in ("accuracy", "mean_iou")}
        self.assertEqual(set(samples(text, "stagecoach_train_measure")), measures)

    def test_counters_of_a_job_do_not_wait_for_the_first_scrape(self):
        text = self.metrics("coordinator")
        steps = samples(text, "stagecoach_train_steps_total")
        self.assertGreaterEqual(steps['{job_id="watched",result="applied"}'], 3)
        self.assertEqual(steps['{job_id="watched",result="replayed"}'], 0)
        sequences = samples(text, "stagecoach_train_examples_total")['{job_id="watched"}']
        tokens = samples(text, "stagecoach_train_tokens_total")['{job_id="watched"}']
        self.assertEqual(tokens, sequences * harness.TINY["model"]["gpt"]["context"])
        self.assertGreater(samples(text, "stagecoach_train_model_flops_total")['{job_id="watched"}'], tokens)
        self.assertEqual(list(samples(text, "stagecoach_jobs_submitted_total").values()), [1])
        self.assertGreaterEqual(samples(text, "stagecoach_train_step_duration_seconds_count")[""], 3)
        # Known values of labels are there from the start.
        recoveries = samples(text, "stagecoach_stage_recoveries_total")
        self.assertEqual(len(recoveries), 8, recoveries)
        self.assertEqual(set(recoveries.values()), {0})
        durations = samples(text, "stagecoach_checkpoint_duration_seconds_count")
        self.assertEqual(set(durations), {'{op="load"}', '{op="save"}'})
        self.assertGreaterEqual(durations['{op="load"}'], 1)

    def test_a_lost_stage_is_counted(self):
        self.cluster.signal("stage-1", signal.SIGKILL)
        self.cluster.wait_for("a recovery", lambda event: event["event"] == "recovery")
        recoveries = samples(self.metrics("coordinator"), "stagecoach_stage_recoveries_total")
        self.assertGreaterEqual(sum(recoveries.values()), 1, recoveries)

    def test_an_ended_job_leaves_no_series(self):
        # No stage is free for it, so it waits until it is cancelled.
        other = self.job_file("other.json", training={"steps": 100001}, name="other")
        submitted = self.client("submit", "--detach", "--id", "other", other)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        text = self.metrics("coordinator")
        self.assertEqual(samples(text, "stagecoach_train_steps_total")['{job_id="other",result="applied"}'], 0)
        self.assertEqual(list(samples(text, "stagecoach_jobs_submitted_total").values()), [2])
        self.assertEqual(self.client("cancel", "other").returncode, 0)
        self.assertNotIn('job_id="other"', self.metrics("coordinator"))
        harness.wait_until("the end in the counter", lambda: samples(
            self.metrics("coordinator"), "stagecoach_jobs_finished_total")['{state="CANCELLED"}'] == 1)

    def test_a_trace_shows_every_stage_and_an_arrow_for_every_message(self):
        # Steps of half a second: of short ones the last three of the stage that answers first may be over at the other.
        self.cluster.kill()
        self.start_cluster("slow", "--device", "simulated:0.05", checkpoint={"every_steps": 0}, evaluation=None)
        self.cluster.wait_for_step(4)
        path = self.folder / "trace.json"
        traced = self.client("trace", "watched", "--steps", "3", "-o", path)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        trace = json.loads(path.read_text())
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertEqual({event["pid"] for event in spans}, {0, 1})
        self.assertEqual(len({event["args"]["step"] for event in spans}), 3)
        for name in ("F0", "F3", "B0", "B3", ">a3", "<a3", ">g0", "<g0"):
            self.assertIn(name, {event["name"] for event in spans})
        starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
        ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
        self.assertEqual(starts.keys(), ends.keys())
        error = 2e-3 * max(stage["clock_error_nanos"] for stage in trace["otherData"]["stages"])
        for number, start in starts.items():
            self.assertLess(start["ts"], ends[number]["ts"] + error)
        # Of a running step the last message may be on its way.
        sends = [event for event in spans if event["cat"] == "send" and event["tid"] % 10 == 1]
        self.assertGreaterEqual(len(starts), len(sends) * 2 / 3 - 1)
        self.assertEqual(json.loads(self.client("trace", "watched", "-o", "-").stdout)["otherData"]["job"], "watched")
        self.assertEqual(self.client("trace", "nobody", "-o", path).returncode, 3)

    def test_logs_of_the_coordinator_and_the_stages(self):
        lines = [json.loads(line) for line in self.client("logs", "watched", "--format", "json").stdout.splitlines()]
        self.assertLessEqual({"coordinator", "stage-0", "stage-1"}, {line["source"] for line in lines})
        only = self.client("logs", "watched", "--stage", "1", "--tail", "1", "-o", "ndjson").stdout.splitlines()
        self.assertEqual([json.loads(line)["source"] for line in only], ["stage-1"])
        self.assertIn(" stage-1 ", self.client("logs", "watched", "--stage", "1").stdout)
        self.assertEqual(self.client("logs", "nobody").returncode, 3)

    def test_health_and_the_other_commands(self):
        for name in ("coordinator", "stage-0", "stage-1"):
            self.assertEqual(self.cli("health", self.processes[name]["address"]).returncode, 0, name)
            fetch(self.processes[name]["http"], "/livez")
            fetch(self.processes[name]["http"], "/readyz")
        jobs = json.loads(self.client("list", "-o", "json").stdout)
        self.assertEqual([job["id"] for job in jobs["jobs"]], ["watched"])
        described = json.loads(self.client("describe", "watched", "-o", "json").stdout)
        self.assertIn("RUNNING", json.dumps(described))
        self.assertEqual(self.client("describe", "nobody").returncode, 3)
        self.assertEqual(self.cli("list", "--address", "127.0.0.1:1").returncode, 4)
        plan = self.client("plan", self.folder / "job.json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn("bubble", plan.stdout)
        checkpoints = self.client("checkpoints", "list", "watched")
        self.assertEqual(checkpoints.returncode, 0, checkpoints.stderr)
        self.assertEqual(self.client("cancel", "watched").returncode, 0)
        self.assertEqual(self.cluster.finish(), 5)


if __name__ == "__main__":
    harness.main()
