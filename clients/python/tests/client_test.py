"""The client against a live cluster: every example of a docstring, broken streams, failures, progress."""
import contextlib
import doctest
import inspect
import io
import json
import os
import re
import socket
import sys
import time
import types
import unittest
import unittest.mock

import support
from stagecoach import _connection, _follow, _weights

import stagecoach

sys.path.insert(0, str(support.ROOT / "tests" / "e2e"))
import server_process  # noqa: E402


def public_things():
    """(name, docstring) of the package, its public classes, and their public members."""
    yield "stagecoach", stagecoach.__doc__
    for name in stagecoach.__all__:
        thing = getattr(stagecoach, name)
        yield name, thing.__doc__
        for member, value in vars(thing).items():
            is_own = inspect.isfunction(value) or isinstance(value, (property, classmethod))
            if not member.startswith("_") and is_own and (name, member) not in {(one, "of") for one in stagecoach.__all__}:
                yield f"{name}.{member}", (value.fget if isinstance(value, property) else value).__doc__


class Clients(support.ClusterTest):
    restarts = 0

    def test_every_docstring_holds(self):
        (self.folder / "job.yaml").write_text(json.dumps(self.job()))
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        job = self.client.submit("job.yaml")
        job.wait()
        examples = 0
        parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        with unittest.mock.patch.dict(os.environ, {"STAGECOACH_ADDRESS": self.coordinator}):
            for name, text in public_things():
                self.assertTrue(text and text.strip(), f"{name} has a docstring")
                names = {"stagecoach": stagecoach, "client": self.client, "job": job, "os": os}
                test = parser.get_doctest(text, names, name, None, 0)
                out = io.StringIO()
                runner.run(test, out=out.write)
                self.assertEqual(runner.failures, 0, out.getvalue())
                examples += len(test.examples)
        self.assertGreater(examples, 50)

    def test_the_page_about_clients_holds(self):
        (self.folder / "job.yaml").write_text(json.dumps(self.job()))
        page = (support.ROOT / "docs" / "clients.md").read_text()
        example = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
        names, out, before = {}, io.StringIO(), os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        with unittest.mock.patch.dict(os.environ, {"STAGECOACH_ADDRESS": self.coordinator}), contextlib.redirect_stdout(out):
            exec(example, names)
        self.assertRegex(out.getvalue(), r"^3 \d\.\d+\n6 \d\.\d+\n$")
        self.assertEqual(len(names["rows"]), 6)
        calls = set(re.findall(r"`(client|job)\.(\w+)\(", page)) | set(re.findall(r", `(client|job)\.(\w+)\(", page))
        for owner, name in calls:
            self.assertTrue(hasattr({"client": stagecoach.Client, "job": stagecoach.Job}[owner], name), name)
        self.assertGreater(len(calls), 12)

    def test_methods_have_examples(self):
        for name, text in public_things():
            if "." in name and not name.startswith("Progress."):
                self.assertIn(">>>", text, name)

    def struck(self, run, was_struck):
        """What a run gives that was struck on its way. A job does not wait for its test: one that was through is run again."""
        for _ in range(support.servers.harness.STRIKES):
            self.restarts = 0
            result = run()
            if was_struck(result):
                return result
        self.fail(f"{support.servers.harness.STRIKES} jobs were through before they were struck")

    def followed_over_a_kill(self):
        job = self.client.submit(self.job(training={"steps": 400}, checkpoint={"every_steps": 50}))
        numbers = []
        for event in job.follow(progress=False):
            if event.kind == "loading":
                continue
            numbers.append(event.number)
            if event.kind == "step" and event.step == 3 and self.restarts == 0:
                self.restart()
        self.assertEqual((event.kind, event["state"], event.step), ("finished", "SUCCEEDED", 400))
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), "none twice, and none is missing")
        self.assertEqual(self.restarts, 1)
        return job

    def test_a_coordinator_that_is_killed_is_followed_on(self):
        job = self.struck(self.followed_over_a_kill, lambda job: job.describe()["generation"] > 1)
        self.assertEqual([row["step"] for row in job.metrics()], list(range(1, 401)))

    def test_logs_go_on_over_a_killed_coordinator(self):
        job = self.client.submit(self.job(training={"steps": 400}, checkpoint={"every_steps": 50}))
        lines = []
        for line in job.logs(follow=True, tail=1):
            lines.append(line)
            if self.restarts == 0:
                self.restart()
        self.assertEqual(job.refresh().state, "SUCCEEDED")
        self.assertEqual(len(set(lines)), len(lines), "none twice")
        self.assertGreater(len(lines), 10)

    def held_after_a_kill(self):
        """The job, the last event before the kill, and how the job stands behind it: held, or through."""
        job = self.client.submit(self.job(training={"steps": 400}))
        for event in job.follow():
            if event.kind == "checkpoint":
                self.restart("--hold-jobs")
                break
        return job, event, support.servers.harness.wait_until("the job is held", self.is_held_or_through(job))

    def test_a_held_job_is_resumed_and_followed_from_there(self):
        job, event, held = self.struck(self.held_after_a_kill, lambda run: run[2]["state"] != "SUCCEEDED")
        self.assertEqual((held["state"], held["detail"]), ("PENDING", "held"))
        events = [event for event in job.resume(stages=1).follow() if event.kind != "loading"]
        self.assertGreater(events[0].number, event.number)
        self.assertEqual(events[-1]["state"], "SUCCEEDED")
        self.assertEqual(len(job.describe()["stages"]), 1)

    def restart(self, *flags):
        """Kills the coordinator, and starts another one at its address."""
        process = [program for name, program, _ in self.programs if name in ("coordinator", "again")][-1]
        process.kill()
        process.wait()
        self.restarts += 1
        self.launch("stagecoach-coordinator", "again", *self.coordinator_flags, *flags, listen=self.coordinator)

    def is_held_or_through(self, job):
        def held():
            try:
                described = job.describe()
            except stagecoach.Unavailable:
                return None
            return described if described["detail"] == "held" or described["state"] == "SUCCEEDED" else None
        return held

    def test_metrics_are_the_records_and_come_before_the_end(self):
        job = self.client.submit(self.job(training={"steps": 100000}, checkpoint=None))
        for event in job.follow(progress=False):
            if event.kind == "evaluation":
                break
        began = time.monotonic()
        rows = job.metrics()
        self.assertLess(time.monotonic() - began, 8, "does not wait for the end, nor for its deadline")
        self.assertEqual([row["step"] for row in rows], list(range(1, len(rows) + 1)))
        self.assertGreaterEqual(len(rows), event.step)
        row = rows[event.step - 1]
        self.assertEqual(row["evaluation_loss"], event["loss"])
        for name in ("loss", "learning_rate", "gradient_norm", "tokens_per_second", "step_seconds", "bubble", "unix_seconds"):
            self.assertGreaterEqual(row[name], 0, name)
        with self.assertRaisesRegex(stagecoach.JobCancelled, f"{self.coordinator}: job {job.id} CANCELLED at step"):
            job.cancel()
            job.wait()
        self.assertEqual(job.refresh().state, "CANCELLED")
        with self.assertRaises(stagecoach.JobCancelled) as caught:
            list(job.follow())
        self.assertEqual(caught.exception.result.state, "CANCELLED")
        again = self.client.submit(self.job(resume=None))
        self.assertEqual(again.wait().state, "SUCCEEDED")

    def test_a_job_that_fails_raises_its_reason(self):
        job = self.client.submit(self.job(data={"on_stages": str(self.folder), "text": {"path": "none.txt"}}))
        with self.assertRaisesRegex(stagecoach.JobFailed, f"job {job.id} FAILED at step 0: .*none.txt"):
            list(job.follow())
        self.assertRegex(self.client.job(job.id).message, "none.txt")

    def test_a_new_job_goes_on_from_a_checkpoint_with_the_same_bits(self):
        whole = self.client.submit(self.job())
        digest = whole.wait().weights_digest
        spec = whole.spec()
        self.assertEqual(self.client.submit({**spec, "resume": {"job": whole.id, "step": 4}}).wait().weights_digest, digest)
        self.assertEqual(whole.export().weights_digest, digest)

    def test_weights_are_those_of_the_command(self):
        job = self.client.submit(self.job())
        job.wait()
        done = self.cli("--address", self.coordinator, "export", job.id, "--to", self.folder / "by-command")
        self.assertEqual(done.returncode, 0, done.stderr)
        export = job.export(str(self.folder / "here"))
        for name in os.listdir(export.folder):
            self.assertEqual((self.folder / "here" / name).read_bytes(), (self.folder / "by-command" / name).read_bytes(), name)
        with self.assertRaisesRegex(stagecoach.ConfigurationError, "here: is there already"):
            job.export(export.folder)
        weights = job.weights()
        file = self.folder / "here" / "model.safetensors"
        data = file.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = {name: entry for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
        self.assertEqual(set(weights), set(header))
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            self.assertEqual(weights[name].tobytes(), data[8 + size + begin:8 + size + end], name)
            self.assertEqual(list(weights[name].shape), entry["shape"])
        self.assertNotEqual(job.weights(step=2)["model/0000/token.weight"].tobytes(),
                            weights["model/0000/token.weight"].tobytes())
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with self.assertRaisesRegex(stagecoach.DataLoss, "model.safetensors: its digest is sha256:"):
            _weights.check_weights(export.folder, export.weights_digest)

    def test_records_are_those_of_the_command(self):
        job = self.client.submit(self.job())
        job.wait()
        done = self.cli("--address", self.coordinator, "records", job.id, "--to", self.folder / "by-command")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = job.records_to(str(self.folder / "here"))
        self.assertEqual(sorted(names), sorted(os.listdir(self.folder / "by-command")))
        self.assertEqual(sorted(names), sorted(os.listdir(self.folder / "here")))
        for name in names:
            self.assertEqual((self.folder / "here" / name).read_bytes(), (self.folder / "by-command" / name).read_bytes(), name)
        records = [json.loads(line) for line in (self.folder / "here" / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual({record["step"] for record in records if "step" in record} & set(range(1, 7)), set(range(1, 7)))
        with self.assertRaisesRegex(stagecoach.ConfigurationError, "here: is there already"):
            job.records_to(str(self.folder / "here"))

    def test_texts_are_those_of_the_command(self):
        job = self.client.submit(self.job())
        job.wait()
        prompts = [f"The stage coach {i}" for i in range(20)]
        (self.folder / "prompts.txt").write_text("\n".join(prompts) + "\n")
        told = self.cli("--address", self.coordinator, "-o", "ndjson", "generate", job.id, "--prompts",
                        self.folder / "prompts.txt", "--stages", 2, "--seed", 5, "--tokens", 10)
        self.assertEqual(told.returncode, 0, told.stderr)
        texts = self.client.generate(job, prompts, tokens=10, seed=5, stages=2)
        self.assertEqual(texts, [json.loads(line)["text"] for line in told.stdout.splitlines()])
        self.assertEqual(self.client.generate(job.id, prompts, tokens=10, seed=5), texts, "on one stage")
        with self.assertRaisesRegex(stagecoach.InvalidJob, "at least one prompt"):
            self.client.generate(job, [])

    def test_the_timeline_has_every_stage_on_one_clock(self):
        job = self.client.submit(self.job())
        job.wait()
        rows = job.timeline()
        self.assertEqual({(row["stage"], row["name"]) for row in rows}, {(0, "stage-0"), (1, "stage-1")})
        self.assertEqual({row["step"] for row in rows} & set(range(1, 7)), set(range(1, 7)))
        self.assertEqual(rows[0]["start"], 0)
        self.assertTrue(all(row["start"] <= row["end"] < 60 for row in rows))
        forwards = [row for row in rows if row["what"] == "forward" and row["step"] == 2]
        self.assertEqual(sorted((row["stage"], row["micro_batch"]) for row in forwards),
                         [(stage, i) for stage in range(2) for i in range(4)])
        self.assertEqual({row["track"] for row in rows}, {"compute", "send", "receive"})

    def test_logs_go_on_until_the_end(self):
        job = self.client.submit(self.job())
        lines = list(job.logs(follow=True))
        self.assertEqual(job.refresh().state, "SUCCEEDED", "they end with the job")
        self.assertIn(job.id, {line.job for line in lines})
        self.assertIn("coordinator", {line.source for line in lines})
        self.assertRegex(str(lines[0]), r"^\d\d:\d\d:\d\d \w+ [\w-]+: .")
        self.assertEqual({line.source for line in job.logs(stage=1)}, {"stage-1"})

    def test_an_id_makes_submitting_safe(self):
        job = self.client.submit(self.job(), id="mine")
        self.assertEqual(self.client.submit(self.job(), id="mine").id, job.id)
        with self.assertRaisesRegex(stagecoach.AlreadyExists, f"^{self.coordinator}: .*mine"):
            self.client.submit(self.job(seed=8), id="mine")
        self.assertRegex(self.client.submit(self.job()).id, "^tiny-[0-9a-f]{8}$")
        self.assertEqual(len(self.client.jobs()), 2)

    def test_errors_are_the_servers_words(self):
        with self.assertRaisesRegex(stagecoach.NotFound, f"^{self.coordinator}: .*nobody"):
            self.client.job("nobody")
        with self.assertRaisesRegex(stagecoach.InvalidJob, f"^{self.coordinator}: training.steps") as caught:
            self.client.submit(self.job(training={"steps": -1}))
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        with self.assertRaisesRegex(stagecoach.InvalidJob, "data"):
            self.client.plan({"name": "a", "model": self.job()["model"]})
        with self.assertRaisesRegex(stagecoach.ConfigurationError, "want host:port of a gRPC port"):
            stagecoach.Client("http://127.0.0.1:8000")


class Connections(support.servers.ServersTest):
    def test_nobody_listens(self):
        address = f"127.0.0.1:{server_process.free_port()}"
        with stagecoach.Client(address) as client:
            with self.assertRaisesRegex(stagecoach.Unavailable, f"^{address}: Connection refused"):
                client.jobs()

    def test_a_server_that_does_not_answer_meets_the_deadline(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            with stagecoach.Client(address, timeout=0.5) as client, unittest.mock.patch.object(
                    _connection, "_PROBE_SECONDS", 0.2):
                with self.assertRaisesRegex((stagecoach.DeadlineExceeded, stagecoach.Unavailable), f"^{address}: "):
                    client.jobs()

    def test_a_job_is_submitted_again_until_the_coordinator_is_there(self):
        address = f"127.0.0.1:{server_process.free_port()}"
        job = {**support.servers.harness.TINY, "data": {"on_stages": "/", "text": {"path": "input.txt"}}}
        with stagecoach.Client(address) as client:
            with self.assertRaises(stagecoach.Unavailable):
                client.jobs()
            self.launch("stagecoach-coordinator", "late", "--state-dir", self.folder / "state", listen=address)
            self.assertEqual(client.submit(job, id="late").id, "late")

    def test_a_coordinator_that_is_there_again_answers_the_next_call(self):
        """Symptom: gRPC repeated the old error for seconds, as it connects only while something waits for it."""
        address = f"127.0.0.1:{server_process.free_port()}"
        with stagecoach.Client(address) as client:
            with self.assertRaises(stagecoach.Unavailable):
                client.jobs()
            self.launch("stagecoach-coordinator", "again", "--state-dir", self.folder / "state", listen=address)
            self.address("again")
            self.assertEqual(client.jobs(), [])

    def test_following_ends_if_nobody_answers_for_long(self):
        self.launch("stagecoach-coordinator", "brief", "--state-dir", self.folder / "state")
        with stagecoach.Client(self.address("brief")) as client:
            job = client.submit({**support.servers.harness.TINY, "data": {"on_stages": "/", "text": {"path": "input.txt"}}})
            events = _follow.follow(client._connection, job.id, 0, self.notes.append, patience=0.3)
            self.assertEqual(next(events).kind, "state")
            process = self.programs[0][1]
            process.kill()
            process.wait()
            with self.assertRaisesRegex(stagecoach.Unavailable, f"{client.address}: job {job.id}: no answer for 0.3 s, given up"):
                list(events)
            self.assertEqual(len(self.notes), 1, "an outage is noted once")

    def setUp(self):
        super().setUp()
        self.notes = []


def event(kind, step, **values):
    return stagecoach.Event(step, kind, step, 0.0, {"detail": "", "message": "", **values})


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressLines(unittest.TestCase):
    EVENTS = (event("state", 0, state="PENDING", detail="loading"), event("step", 2, loss=1.5, step_seconds=60.0),
              event("finished", 4, state="SUCCEEDED"))

    def test_a_terminal_shows_a_line(self):
        terminal = Terminal()
        progress = stagecoach.Progress(4, stream=terminal)
        for one in self.EVENTS[:2]:
            progress.draw(one)
        self.assertEqual(progress.text(), "[============>           ] 2/4  loss 1.5000  2 min 00 s left")
        progress.draw(self.EVENTS[2])
        progress.close()
        lines = terminal.getvalue().split("\r")
        self.assertIn("[>                       ] 0/4  loading", lines[1])
        self.assertTrue(lines[-1].rstrip(" \n").endswith("4/4  SUCCEEDED"), lines)
        self.assertTrue(terminal.getvalue().endswith("\n"))

    def test_a_file_shows_nothing(self):
        for show in (None, False):
            stream = io.StringIO() if show is None else Terminal()
            progress = stagecoach.Progress(4, show=show, stream=stream)
            for one in self.EVENTS:
                progress.draw(one)
            progress.close()
            self.assertEqual(stream.getvalue(), "")

    def test_a_notebook_shows_one_output_that_changes(self):
        shown = []
        handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

        def display(data, raw, display_id):
            shown.append(data["text/plain"])
            return handle
        ipython = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1),
                                        display=types.SimpleNamespace(display=display))
        terminal = Terminal()
        with unittest.mock.patch.dict(sys.modules, {"IPython": ipython}):
            progress = stagecoach.Progress(4, stream=terminal)
            for one in self.EVENTS:
                progress.draw(one)
            progress.close()
        self.assertEqual([text.split("  ")[-1] for text in shown][0::len(shown) - 1], ["loading", "SUCCEEDED"])
        self.assertEqual(terminal.getvalue(), "")


if __name__ == "__main__":
    support.main()
