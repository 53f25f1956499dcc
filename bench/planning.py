"""What the benchmarks of planning share: jobs of AmoebaNets, `stagecoach plan` and `local`, tables."""
import json
import pathlib
import random
import subprocess
import sys

MIB, GIB = 2**20, 2**30
RECORD = 3073  # of CIFAR-10's binary files: a label, 32 x 32 pixels in three colours


def amoebanet(layers, filters, image, classes, stem="imagenet", variant="torchgpipe"):
    return {"amoebanet_d": {"image": image, "classes": classes, "layers": layers, "filters": filters, "stem": stem,
                            "variant": variant}}


def job(model, data, batch, micro_batches, stages, rematerialization="always", optimizer=None, partition="auto",
        steps=2, precision="float32", schedule="gpipe"):
    return {"name": "planned", "seed": 1, "precision": precision, "model": model, "data": data,
            "training": {"steps": steps, "batch_size": batch, "micro_batches": micro_batches,
                         "optimizer": optimizer or {"rmsprop": {}}, "learning_rate": {"constant": {"peak": 1e-3}}},
            "pipeline": {"stages": stages, "schedule": schedule, "rematerialization": rematerialization,
                         "partition": partition},
            "checkpoint": {"every_steps": 0}}


def write_pictures(folder, count=256):
    """Files as CIFAR-10 has them, of noise."""
    noise = random.Random(1)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        records = (bytes([noise.randrange(10)]) + noise.randbytes(RECORD - 1) for _ in range(count))
        (folder / name).write_bytes(b"".join(records))


class Plans:
    """`stagecoach plan` of jobs, in a folder of its own."""

    def __init__(self, bin_folder, folder):
        self.program, self.folder = pathlib.Path(bin_folder) / "stagecoach", pathlib.Path(folder)

    def write(self, spec):
        path = self.folder / "job.json"
        path.write_text(json.dumps(spec))
        return path

    def plan(self, spec, memory=0, gflops=0):
        """The plan, or None where a stage has too little memory; then `why` says what is missing."""
        limit = ["--memory-per-stage", str(memory)] if memory else []
        limit += ["--gflops", str(gflops)] if gflops else []
        run = subprocess.run([self.program, "plan", "-o", "json", *limit, self.write(spec)], capture_output=True, text=True)
        if run.returncode == 0:
            return json.loads(run.stdout)
        self.why = run.stderr.strip().splitlines()[-1]
        if "a stage has" not in self.why:
            sys.exit(f"plan failed: {run.stderr[-2000:]}")
        return None

    def largest(self, spec_of, sizes, memory):
        """The last of `sizes` whose job fits, with its plan, and the one behind it. Larger ones take more."""
        low, high = -1, len(sizes)
        plans = {}
        while high - low > 1:
            middle = (low + high) // 2
            plans[middle] = self.plan(spec_of(sizes[middle]), memory)
            low, high = (middle, high) if plans[middle] else (low, middle)
        if low < 0 or high == len(sizes):
            sys.exit(f"the largest that fits is not between {sizes[0]} and {sizes[-1]}")
        return sizes[low], plans[low], sizes[high]


def stage_bytes(stage):
    return sum(int(value) for value in stage["memory"].values())


def fullest(plan):
    return max(stage_bytes(stage) for stage in plan["stages"])


def parameters(plan):
    return sum(int(stage["parameters"]) for stage in plan["stages"])


def model_bytes(plan):
    """Parameters, gradients and the optimizer's, of all stages."""
    return sum(int(value) for stage in plan["stages"] for kind, value in stage["memory"].items() if kind != "activations")


def activation_bytes(plan):
    return sum(int(stage["memory"]["activations"]) for stage in plan["stages"])


def balance(plan):
    return [int(stage["last_layer"]) - int(stage["first_layer"]) for stage in plan["stages"]]


def cuts_of(balances):
    return {"cuts": [sum(balances[:k]) for k in range(1, len(balances))]}


def count(number):
    return f"{number / 1e9:.2f}B" if number >= 1e9 else f"{number / 1e6:.1f}M" if number >= 1e6 else f"{number / 1e3:.0f}k"


def steps_of(state):
    """The steps of the one job of a folder of `stagecoach local`, from its metrics.jsonl."""
    [file] = pathlib.Path(state).glob("jobs/*/metrics.jsonl")
    events = (json.loads(line) for line in file.read_text().splitlines())
    return [event for event in events if event["event"] == "step"]


def print_table(header, rows):
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
