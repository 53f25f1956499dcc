"""TensorBoard's own library (PyPI) reads a job's event files. Skipped, with 77, where PyPI is not reached."""
import json
import struct
import subprocess
import sys

import harness

STEPS = 60
INSTALL_SECONDS = 200
VENV = harness.BIN.parent / "venv-tensorboard"
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value, e.wall_time] for e in events.Scalars(tag)]
                  for tag in events.Tags()["scalars"]}))
from tensorboard.plugins.hparams import metadata
content = events.PluginTagToContent(metadata.PLUGIN_NAME)[metadata.SESSION_START_INFO_TAG]
start = metadata.parse_session_start_info_plugin_data(content)
print(json.dumps({"group": start.group_name, "parameters": {
    name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}}))
"""


def tensorboard_python():
    """Of a venv with the package; None, after saying why, where it cannot be had."""
    python = VENV / "bin" / "python"
    def works():
        return python.exists() and subprocess.run(
            [python, "-c", "import tensorboard.backend.event_processing.event_accumulator"],
            capture_output=True).returncode == 0
    if works():
        return python
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode == 0:
        # setuptools: tensorboard of some versions still imports pkg_resources.
        try:
            made = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                   "--timeout", "15", "--retries", "1", "tensorboard", "setuptools<81"],
                                  capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired as late:  # a mirror that is slow is as good as none
            print(f"skipped, it needs PyPI's tensorboard: {late}", file=sys.stderr)
            return None
    if made.returncode == 0 and works():
        return python
    print(f"skipped, it needs PyPI's tensorboard: {(made.stdout + made.stderr).strip()[-300:]}", file=sys.stderr)
    return None


def float32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


class TensorBoard(harness.EndToEndTest):
    def test_every_tag_is_read_back(self):
        # Not through before the writer has come once: what it knows only of a step that is new is drawn too.
        cluster = self.run_job(self.job_file(training={"steps": STEPS}))
        read = subprocess.run([PYTHON, "-c", READER, cluster.state_dir / "jobs" / "tiny"],
                              capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        lines = read.stdout.splitlines()
        tags = json.loads(lines[0])
        self.assertEqual({step: value for step, value, _ in tags["train/loss"]},
                         {step: float32(loss) for step, loss in cluster.losses().items()})
        self.assertEqual([step for step, _, _ in tags["eval/loss"]], list(range(3, STEPS + 1, 3)))
        for tag in ("train/lr", "train/grad_norm", "perf/tokens_per_second", "perf/bubble_ratio"):
            self.assertEqual([step for step, _, _ in tags[tag]], list(range(1, STEPS + 1)), tag)
        for tag in ("time/stage_0/forward", "time/stage_1/bubble", "memory/stage_1/peak"):
            self.assertIn(tag, tags)
        self.assertGreater(tags["memory/stage_1/peak"][-1][1], 0)
        # The HPARAMS tab was empty: two runs that differ in their learning rate looked the same.
        session = json.loads(lines[1])
        self.assertEqual(session["group"], "tiny")
        training = harness.TINY["training"]
        self.assertEqual(session["parameters"]["model"], "gpt")
        for name, value in (*((name, training[name]) for name in ("batch_size", "micro_batches")), ("steps", STEPS)):
            self.assertEqual(session["parameters"][name], value, name)
        self.assertIn(session["parameters"]["optimizer"], training["optimizer"])
        self.assertGreater(session["parameters"]["learning_rate"], 0)


if __name__ == "__main__":
    PYTHON = tensorboard_python()
    if PYTHON is None:
        sys.exit(77)
    harness.main()
