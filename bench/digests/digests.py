#!/usr/bin/env python3
"""Runs jobs by two sets of programs and compares digests and losses; bench/digests.sh calls it."""
import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import jobs
import pairs
import pictures

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
SECONDS = 600  # for a job
AT_ONCE = max(2, os.cpu_count() or 1)  # no number depends on it; a short job mostly waits for its servers


def made_up(count, below):
    state, data = 1, bytearray()
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        data.append((state >> 16) % below)
    return bytes(data)


def idx(extents, content):
    """An IDX file of unsigned bytes; see docs/formats.md."""
    return bytes([0, 0, 8, len(extents)]) + b"".join(extent.to_bytes(4, "big") for extent in extents) + content


def write_data(folder):
    """What the jobs read, the same for both sides: text, bytes below small vocabularies, images of Fashion-MNIST's size."""
    text = (REPOSITORY / "LICENSE").read_text() * 8
    for name in ("text.txt", "LICENSE", "input.txt", "fortunes.txt"):
        (folder / name).write_text(text)
    for vocabulary in sorted({model["vocabulary"] for model in jobs.MODELS.values()}):
        (folder / f"{vocabulary}.bytes").write_bytes(made_up(4000, vocabulary))
    for part, count in (("train", 300), ("t10k", 100)):
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(idx([count, 28, 28], made_up(count * 28 * 28, 256))))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx([count], made_up(count, 10))))
    for part, count in (("trunk", 200), ("trunk-test", 50), ("few", 100), ("few-test", 50)):  # examples/fashion-split.py
        (folder / f"{part}-images").write_bytes(idx([count, 28, 28], made_up(count * 28 * 28, 256)))
        (folder / f"{part}-labels").write_bytes(idx([count], made_up(count, 5)))
    pairs.write_pairs(folder, made_up(1200, 256))
    pictures.write_scenes(REPOSITORY / "examples", folder)
    for part, count in (("train", 256), ("test", 128)):
        pictures.write_tar(folder / "cifar10" / part, made_up(count * 32 * 32 * 3, 256), made_up(count, 10))


# The job whose exported weights a job begins with.
EXPORT = re.compile(r"\bfrom: \S*exports/([a-z0-9-]+)")


def shortened(text):
    """A job file of examples/ with a few steps, and its data in the folder that it lies in.

    The job that it begins with, if there is one, is run there in the folder state-NAME.
    """
    text = EXPORT.sub(r"from: state-\1/exports/\1", text)
    text = re.sub(r"\b(?:steps|epochs): [\d.]+", f"steps: {jobs.STEPS}", text)
    text = re.sub(r"\bevery_(?:steps|epochs): [\d.]+", "every_steps: 2", text)
    text = re.sub(r"\bwarmup_(?:steps|epochs): [\d.]+", "warmup_steps: 2", text)
    text = re.sub(r"\bbatches: \d+", "batches: 1", text)
    return re.sub(r"\b(path|(?:test_)?(?:images|labels)): (?:[^\s,}]*/)?([^\s,}/]+)", r"\1: \2", text)


def write_jobs(folder, examples, only):
    """Job files in the folder: name -> the arguments of `stagecoach local`."""
    listed = {}
    for path in sorted(examples.glob("*.yaml")):
        name = f"examples/{path.name}"
        text = shortened(path.read_text())
        stages = re.search(r"^\s*stages: (\d+)", text, re.MULTILINE)
        (folder / path.name).write_text(text)
        listed[name] = ["--stages", stages.group(1) if stages else "2", folder / path.name]
    for job in jobs.all_jobs():
        path = folder / f"{job.name}.json"
        path.write_text(json.dumps(job.spec))
        listed[job.name] = ["--stages", str(job.stages), *map(str, job.extra), path]
    return {name: arguments for name, arguments in listed.items() if only in name}


class Side:
    def __init__(self, programs, examples, folder, only):
        self.cli = programs.resolve() / "stagecoach"
        self.folder = folder
        folder.mkdir()
        write_data(folder)
        write_jobs(folder, examples, "")  # also those that others begin with
        self.jobs = write_jobs(folder, examples, only)
        self.exporting = threading.Lock()

    def text(self, name):
        """The job file, None without one."""
        return self.jobs[name][-1].read_text() if name in self.jobs else None

    def export_beginning(self, text):
        """Runs the job that this one begins with, once."""
        found = EXPORT.search(text)
        with self.exporting:
            state = self.folder / f"state-{found.group(1)}" if found else None
            if found and not state.exists():
                subprocess.run([self.cli, "local", "--state-dir", state, self.folder / f"{found.group(1)}.yaml"],
                               capture_output=True, timeout=SECONDS)  # what went wrong shows in the job itself

    def run(self, name):
        """None: this side has no such job. Else a result."""
        if name not in self.jobs:
            return None
        *flags, path = self.jobs[name]
        self.export_beginning(path.read_text())
        known = subprocess.run([self.cli, "validate", path], capture_output=True, text=True)
        if known.returncode != 0:
            return Result(known.returncode, "", known.stdout + known.stderr, refused=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as state:
            command = [self.cli, "local", *flags, "--state-dir", state, "-o", "ndjson", path]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
                try:
                    output, errors = process.communicate(timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    process.terminate()  # it ends its servers
                    output, errors = process.communicate()
                    errors += f"not finished within {SECONDS} s"
        return Result(process.returncode, output, errors)


class Result:
    def __init__(self, code, output, errors, refused=False):
        self.refused = refused  # by `validate`
        events = [json.loads(line) for line in output.splitlines()]
        self.numbers = {}  # by what they are, in the order of the run
        for event in events:
            for field in ("loss", "gradient_norm"):
                if event["event"] in ("step", "evaluation") and field in event:
                    self.numbers[f"{event['event']} {event['step']}: {field}"] = event[field]
        finished = events[-1] if events and events[-1]["event"] == "finished" else {}
        self.digest = finished.get("weights_digest") if code == 0 else None
        self.error = "" if self.digest else f"exit code {code}\n{errors[-2000:]}"

    def short(self):
        if self.refused:
            return "refused"
        return self.digest.removeprefix("sha256:")[:16] if self.digest else "failed"


def difference(a, b):
    """What two results do not have in common first, or "" if they are equal."""
    for what in [*a.numbers, *(b.numbers.keys() - a.numbers.keys())]:
        if a.numbers.get(what) != b.numbers.get(what):
            return f"{what}: {a.numbers.get(what)} and {b.numbers.get(what)}"
    return "" if a.digest == b.digest else "weights"


def judge(a, b, one_file):
    """What is said of a job's results, and whether it is as it must be.

    A job that one side has not, or that refuses the file as only the other side has it, is new. A file that both have
    is known to both, or something was broken.
    """
    if a is None or b is None:
        only = a or b
        return f"only in {'B' if a is None else 'A'}", bool(only.digest)
    if a.refused and b.refused:
        return "known to neither", False
    if a.refused or b.refused:
        if one_file:
            return f"REFUSED by {'A' if a.refused else 'B'}, the same file", False
        knows = b if a.refused else a
        return f"only in {'B' if a.refused else 'A'}", bool(knows.digest)
    if not (a.digest and b.digest):
        return "failed", False
    what = difference(a, b)
    return (f"DIFFERS: {what}", False) if what else ("same", True)


def show(name, a, b, one_file):
    """Prints the job's row; True if it is as it must be."""
    missing = "not there"
    verdict, good = judge(a, b, one_file)
    print(f"{name:46}{a.short() if a else missing:18}{b.short() if b else missing:18}{verdict}", flush=True)
    for side, result in zip("AB", (a, b)):
        if result and result.error:
            print(f"{side}: {result.error}", file=sys.stderr)
    return good


def run_all(names, sides):
    """The names of the jobs that are not as they must be."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [(name, [pool.submit(side.run, name) for side in sides]) for name in names]
        try:
            return [name for name, both in runs
                    if not show(name, *(run.result() for run in both), sides[0].text(name) == sides[1].text(name))]
        finally:
            pool.shutdown(cancel_futures=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", nargs=2, type=pathlib.Path, required=True)
    parser.add_argument("--examples", nargs=2, type=pathlib.Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stagecoach-digests-") as folder:
        sides = [Side(programs, examples, pathlib.Path(folder) / side, options.only)
                 for side, programs, examples in zip("AB", options.programs, options.examples)]
        names = list(dict.fromkeys([*sides[0].jobs, *sides[1].jobs]))
        print(f"{'job':46}{'A':18}{'B':18}")
        bad = run_all(names, sides)
    print(f"{len(names)} jobs, {len(names) - len(bad)} as they must be" + "".join(f"\n  not: {name}" for name in bad))
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
