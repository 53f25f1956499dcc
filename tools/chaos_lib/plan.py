"""The plan of faults: drawn from a seed alone, written as JSON lines, read back for a replay.

A fault is {"at", "kind", "target", "seconds", ...}: at how many seconds after the job was submitted, and for how long. Paths
are those of the proxy: "control/stage-0" (the coordinator's calls to a stage), "link/stage-1" (what the stage before it
sends to stage-1), "lease/stage-0" (its registration and heartbeats).
"""
import dataclasses
import json
import random

KINDS = ("kill", "stop", "reset", "blackhole", "delay", "flip", "cut")


class PlanError(ValueError):
    pass


@dataclasses.dataclass
class Fault:
    at: float
    kind: str
    target: str  # a process' name, or a path
    seconds: float  # until it is over: restarted, continued, passing again; 0 of a reset
    way: str = "both"  # "up", "down" or "both"
    delay: float = 0.0
    jitter: float = 0.0
    after_bytes: int = 0  # of flip and cut
    bit: int = 0

    def line(self):
        words = [f"{self.at:8.3f} s  {self.kind:9}  {self.target}"]
        if self.kind in ("blackhole", "delay", "flip", "cut"):
            words.append(self.way)
        if self.kind == "delay":
            words.append(f"{self.delay * 1e3:.0f} ms + {self.jitter * 1e3:.0f} ms")
        if self.kind in ("flip", "cut"):
            words.append(f"after {self.after_bytes} bytes" + (f", bit {self.bit}" if self.kind == "flip" else ""))
        if self.seconds:
            words.append(f"for {self.seconds:.3f} s")
        return "  ".join(words)


def paths(stages):
    names = [f"stage-{i}" for i in range(stages)]
    return ([f"control/{name}" for name in names] + [f"link/{name}" for name in names[1:]] +
            [f"lease/{name}" for name in names])


def draw(seed, seconds, every, kinds, stages):
    """Faults over so many seconds, `every` apart on average. The same arguments give the same plan, on every machine."""
    rng = random.Random(f"chaos {seed}")
    faults, at = [], 0.0
    while True:
        at += every * (0.5 + rng.random())
        if at >= seconds:
            return faults
        faults.append(_fault(rng, round(at, 3), rng.choice(sorted(kinds, key=KINDS.index)), stages))


def _fault(rng, at, kind, stages):
    if kind in ("kill", "stop"):
        # The coordinator as often as any stage. A stop is shorter or longer than a lease (1.5 s).
        target = rng.choice(["coordinator"] + [f"stage-{i}" for i in range(stages)])
        seconds = rng.uniform(0.05, 1.0) if kind == "kill" else rng.choice([rng.uniform(0.1, 1.0), rng.uniform(1.5, 4.0)])
        return Fault(at, kind, target, round(seconds, 3))
    path = rng.choice(paths(stages))
    fault = Fault(at, kind, path, 0.0)
    if kind != "reset":
        fault.seconds = round(rng.uniform(0.3, 4.0), 3)
    if kind == "blackhole":
        fault.way = rng.choice(["up", "down", "both"])
    if kind == "delay":
        fault.delay, fault.jitter = round(rng.uniform(0.002, 0.05), 4), round(rng.uniform(0.0, 0.05), 4)
    if kind in ("flip", "cut"):
        # From the next message to a few of the large ones: as likely among 10 bytes as among 100,000.
        fault.way = rng.choice(["up", "down"])
        fault.after_bytes = int(10 ** rng.uniform(0.0, 5.3))
        fault.bit = rng.randrange(8)
    return fault


def write(path, plan, stages):
    with open(path, "w") as file:
        print(json.dumps({"stages": stages}), file=file)
        for fault in plan:
            print(json.dumps(dataclasses.asdict(fault)), file=file)


def read(path):
    """(faults, stages). PlanError names the line."""
    faults, stages = [], None
    with open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                fields = json.loads(line)
                if stages is None:
                    stages = int(fields["stages"])
                    continue
                fault = Fault(**fields)
            except (ValueError, KeyError, TypeError) as error:
                raise PlanError(f"{path}:{number}: no line of a plan ({error}); a plan is what --out has as plan.jsonl")
            processes = ["coordinator"] + [f"stage-{i}" for i in range(stages)]
            if fault.kind not in KINDS or fault.target not in processes + paths(stages):
                raise PlanError(f"{path}:{number}: unknown kind {fault.kind!r} or target {fault.target!r} of {stages} stages")
            faults.append(fault)
    if stages is None:
        raise PlanError(f"{path}: empty; a plan is what --out has as plan.jsonl")
    return sorted(faults, key=lambda fault: fault.at), stages
