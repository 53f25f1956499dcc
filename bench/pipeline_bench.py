#!/usr/bin/env python3
"""Step time of a pipeline of real processes against the ideal, and memory against the forecast.

  bench/pipeline_bench.py [--bin build/bin] [--steps 12] [--rounds 3] [--job examples/gpt-text.yaml --data FILE]

Ideal step: (M + K - 1) / M x the busiest stage's compute (forward + recompute + backward of a step).
Both sides come from the same steps, so a noisy machine hits them alike; medians over all steps after
the second. Memory: peak of the stage's allocator beside the plan's forecast, per rematerialization.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import urllib.request

SPEC = {
    "name": "bench", "seed": 1,
    "model": {"gpt": {"layers": 6, "width": 384, "heads": 6, "context": 256, "vocabulary": 256, "dropout": 0.0}},
    "data": {"text": {"path": "input.txt"}},
    "training": {"steps": 12, "batch_size": 32, "micro_batches": 8,
                 "optimizer": {"adamw": {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}},
                 "learning_rate": {"constant": {"peak": 3e-4}}, "gradient_clip_norm": 1.0},
    "pipeline": {"stages": 2, "schedule": "gpipe", "rematerialization": "always", "partition": "auto"},
    "checkpoint": {"every_steps": 0},
}
COMPUTE = ("forward", "recompute", "backward")


def metric(address, name, label):
    """label value -> sample, from a stage's /metrics"""
    text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    values = {}
    for line in text.splitlines():
        if line.startswith(name + "{"):
            labels, value = line[len(name) + 1:].rsplit("} ", 1)
            fields = dict(part.split("=", 1) for part in labels.split(","))
            values[fields[label].strip('"')] = float(value)
    return values


def run(bin_folder, spec, stages, folder):
    """Events of one run, and per stage its phases by step and its memory peak."""
    job = folder / "job.json"
    job.write_text(json.dumps(spec))
    state = folder / f"state-{len(list(folder.iterdir()))}"
    process = subprocess.Popen([bin_folder / "stagecoach", "local", "--stages", str(stages), "--threads-per-stage", "1",
                                "--state-dir", state, "-o", "ndjson", job], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    steps, phases, memory, before = [], {}, {}, None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] != "step":
            continue
        steps.append(event)
        # Counters are read at step ends; the difference over many steps is exact.
        if event["step"] in (2, spec["training"]["steps"] - 1):
            servers = {entry["name"]: entry for entry in json.loads((state / "processes.json").read_text())["processes"]}
            now = {name: metric(entry["http"], "stagecoach_stage_time_seconds_total", "phase")
                   for name, entry in servers.items() if name.startswith("stage-")}
            if before is None:
                before = now
            else:
                phases = {name: {p: now[name][p] - before[name][p] for p in now[name]} for name in now}
                memory = step_peaks(bin_folder, servers["coordinator"]["address"])
    errors = process.stderr.read()
    if process.wait() != 0:
        sys.exit(f"run failed: {errors[-2000:]}")
    return steps, phases, memory


def step_peaks(bin_folder, address):
    """Per stage of the pipeline, the memory peak of its last whole step in bytes by kind, as it reported it."""
    jobs = json.loads(subprocess.run([bin_folder / "stagecoach", "list", "-o", "json", "--address", address],
                                     capture_output=True, text=True, check=True).stdout)["jobs"]
    return [{kind: int(value) for kind, value in stage["memory_peak"].items()} for stage in jobs[0]["stages"]]


SCHEDULES = ("gpipe", "one_forward_one_backward", "zero_bubble", "zero_bubble_2", "interleaved", "breadth_first",
             "zero_bubble_v", "v_min")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=pathlib.Path)
    parser.add_argument("--steps", default=12, type=int)
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--stages", default=2, type=int)
    options = parser.parse_args()
    spec = json.loads(json.dumps(SPEC))
    spec["training"]["steps"] = options.steps
    spec["pipeline"]["stages"] = options.stages
    m, k = spec["training"]["micro_batches"], options.stages
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "input.txt").write_text("Stagecoach measures what it promises; the text does not matter. " * 6000)
        print(f"K = {k}, M = {m}, one thread a stage, {os.cpu_count()} cores")
        print("| schedule | rematerialization | step s | busiest stage s | ideal s | step / ideal | bubble | ideal bubble |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        peaks = {}
        for schedule in SCHEDULES:
            for mode in ("always", "except_first", "never"):
                rows = []
                for _ in range(options.rounds):
                    spec["pipeline"].update(schedule=schedule, rematerialization=mode)
                    steps, phases, memory = run(options.bin, spec, k, folder)
                    peaks[schedule, mode] = memory
                    measured = [s for s in steps if 2 < s["step"] <= options.steps - 1]
                    step = statistics.mean(s["step_seconds"] for s in measured)
                    busiest = max(sum(stage[p] for p in COMPUTE) for stage in phases.values()) / len(measured)
                    ideal = (m + k - 1) / m * busiest
                    rows.append((step / ideal, step, busiest, ideal, statistics.median(s["bubble"] for s in measured)))
                ratio, step, busiest, ideal, bubble = sorted(rows)[len(rows) // 2]
                print(f"| {schedule} | {mode} | {step:.3f} | {busiest:.3f} | {ideal:.3f} | {ratio:.3f} | {bubble:.3f} | "
                      f"{(k - 1) / (m + k - 1):.3f} |", flush=True)
        print("\n| schedule | rematerialization | stage | forecast MiB | measured MiB | measured / forecast |")
        print("| --- | --- | --- | --- | --- | --- |")
        for (schedule, mode), memory in peaks.items():
            spec["pipeline"].update(schedule=schedule, rematerialization=mode)
            (folder / "job.json").write_text(json.dumps(spec))
            text = subprocess.run([options.bin / "stagecoach", "plan", "-o", "json", folder / "job.json"],
                                  capture_output=True, text=True, check=True).stdout
            for index, stage in enumerate(json.loads(text)["stages"]):
                forecast = sum(int(v) for v in stage["memory"].values()) / 2**20
                measured = sum(memory[index].values()) / 2**20
                print(f"| {schedule} | {mode} | {index} | {forecast:.1f} | {measured:.1f} | {measured / forecast:.3f} |")


if __name__ == "__main__":
    main()
