"""The jobs of bench/digests.sh beside those of examples/: small, for every way that numbers can go.

How a result does not depend on K, schedule, rematerialization and threads is the tests' matter
(tests/transparency, tests/e2e/same_bits_test.py); here these go through their values from job to job.
"""
import itertools

SCHEDULES = ("gpipe", "one_forward_one_backward")
MODES = ("always", "except_first", "never")
STEPS = 4


class Job:
    """A job's spec, and the command line that it is run by."""

    def __init__(self, name, spec, stages, *extra):
        self.name, self.stages, self.extra = name, stages, extra
        self.spec = {"name": name, "seed": 5, **spec}


def training(batch_size, micro_batches, optimizer, clip_norm):
    return {"steps": STEPS, "batch_size": batch_size, "micro_batches": micro_batches, "optimizer": optimizer,
            "learning_rate": {"cosine": {"peak": 1e-2, "warmup_steps": 2, "final": 1e-3}},
            "gradient_clip_norm": clip_norm}


def gpts():
    """Every precision, schedule and rematerialization on two and three stages. M divides N nowhere."""
    jobs = []
    for i, (precision, schedule) in enumerate(itertools.product(("float32", "bfloat16"), SCHEDULES)):
        for j, dropout in enumerate((0.0, 0.1)):
            number = 2 * i + j
            mode = MODES[number % 3]
            optimizer = {"sgd": {"momentum": 0.9}} if number in (2, 5) else {"adamw": {"weight_decay": 0.1}}
            spec = {
                "precision": precision,
                "model": {"gpt": {"layers": 3, "width": 96, "heads": 4, "context": 48, "vocabulary": 128,
                                  "dropout": dropout}},
                "data": {"text": {"path": "text.txt"}},
                "training": training(10, 4 if schedule == "gpipe" else 3, optimizer, 1.0),
                "pipeline": {"stages": 2 + j, "schedule": schedule, "rematerialization": mode,
                             "partition": "uniform"},
                "checkpoint": {"every_steps": 2}, "evaluation": {"every_steps": 2, "batches": 2},
            }
            short = {"gpipe": "gpipe", "one_forward_one_backward": "1f1b"}[schedule]
            name = f"gpt-{precision}-{short}-{mode.replace('_', '-')}" + ("-dropout" if dropout else "")
            jobs.append(Job(name, spec, 2 + j))
    return jobs


# Of tests/transparency: models and (N, M). The data's bytes are below the vocabularies.
MODELS = {
    "reference": {"layers": 2, "width": 4, "heads": 2, "context": 3, "vocabulary": 7},
    "cpu": {"layers": 2, "width": 36, "heads": 3, "context": 19, "vocabulary": 67},
}
BATCHES = ((3, 1), (4, 2), (3, 3), (5, 3), (7, 5))


def transparency():
    jobs = []
    cases = itertools.product(MODELS, ("float32", "bfloat16"), BATCHES, (0.0, 0.3))
    for number, (device, precision, (n, m), dropout) in enumerate(cases):
        stages = 1 + (number // 2 + number % 2) % 4
        spec = {
            "precision": precision,
            "model": {"gpt": {**MODELS[device], "dropout": dropout}},
            "data": {"text": {"path": f"{MODELS[device]['vocabulary']}.bytes", "bytes": True}},
            "training": training(n, m, {"adamw": {}}, 0.5 if dropout else 0.0),
            "pipeline": {"stages": stages, "schedule": SCHEDULES[number // 2 % 2],
                         "rematerialization": MODES[number % 3], "partition": "uniform"},
        }
        name = f"{device}-{precision}-n{n}-m{m}" + ("-dropout" if dropout else "")
        jobs.append(Job(name, spec, stages, "--device", device, "--threads-per-stage",
                        1 + number // 4 % 2))
    return jobs


def all_jobs():
    return gpts() + transparency()
