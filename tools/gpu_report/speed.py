"""Speed of training one GPT on one device, ours beside PyTorch's, and the device's ceiling."""
import argparse
import json
import pathlib
import subprocess

from .arithmetic import flops_per_token, largest, median, parameters, share
from .budget import Failed, Late, NotRun
from .card_model import model_mfu
from .jobs import GPT2, SPEED_ROWS, TINY_SHAPES, TINY_SPEED_ROWS, job, micro_batch_choices
from .machine import call
from .runs import OutOfMemory, end_of, tokens_per_second

GOAL_MFU, GOAL_MFU_FROM = 0.55, 1e9  # of shapes with so many parameters and more
GOAL_BESIDE_COMPILE = 1.10
TORCH_GPT = pathlib.Path(__file__).resolve().parent / "torch_gpt.py"
SHAPES = {**GPT2, **TINY_SHAPES}
FILL = 0.80  # of a card's memory, forecast; PyTorch's own needs are higher
TRIAL_BYTES = 40e6  # that the trial on a CPU takes for a card
STRETCHED = ("6.7B-shaped", "tiny, as many layers as fit")


def last_json(text):
    """The last line that is an object, None without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


def torch_results(text):
    """{mode: what the driver printed last of it} from its lines."""
    results = {}
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # killed within a line
            results[entry["mode"]] = entry
    return results


def run_torch(machine, arguments, seconds):
    """The driver's results so far, also when the time is over."""
    command = [machine.python, TORCH_GPT, "--device", machine.device, "--seconds-left", f"{seconds - 5:.0f}", *arguments]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate(timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        late = True
    results = torch_results(out)
    if not results and not late:
        raise Failed(f"PyTorch's driver, exit {process.returncode}: {end_of(errors)}")
    return results, late


def measure_ceiling(section, machine, trial, with_torch=True):
    """Large products: the best of both programs is the ceiling that shares are of."""
    section.columns = COLUMNS
    found = {}

    def ours(values):
        section.budget.need(8)
        precision = "float32" if trial else "bfloat16"
        done = call([machine.program("gpu-matmul-bench"), "--device", machine.device, "--precision", precision, "--size",
                     512 if trial else 8192, "--seconds", 1 if trial else 2], section.budget.most(60), machine.env)
        if done.returncode != 0:
            raise Failed(end_of(done.stderr))
        found["ours"] = values["tflops"] = last_json(done.stdout)["tflops_median"]
        values["precision"] = precision

    def torch(values):
        machine.torch()
        section.budget.need(8)
        results, _ = run_torch(machine, ["--product", 512 if trial else 8192, "--precision",
                                         "float32" if trial else "bfloat16"], section.budget.most(90))
        found["torch"] = values["tflops"] = results["product"]["tflops_median"]
        values["precision"] = "float32" if trial else "bfloat16"
    section.row("a large product, our back end", ours)
    if with_torch:
        section.row("a large product, torch.matmul", torch)
    return max(found.values(), default=None)


COLUMNS = [("precision", "precision", ""), ("layers", "layers", "d"), ("batch", "batch", ""),
           ("tflops", "TFLOP/s", ".3g"), ("tokens_per_second", "tokens/s", ".0f"), ("eager", "PyTorch eager", ".0f"),
           ("compile", "torch.compile", ".0f"), ("beside_compile", "ours / compile", ".3f"),
           ("mfu", "MFU", "%"), ("model", "model", "%"), ("mfu_compile", "MFU compile", "%"), ("of_ceiling", "of ceiling", "%"),
           ("goal", "goals", "met"), ("remarks", "remarks", "")]


class Work:
    """A shape with its context and how its mini-batch is cut."""

    def __init__(self, shape, context, precision, micro_batch):
        self.shape, self.precision, self.micro_batch = {**shape, "context": context}, precision, micro_batch
        self.context = context
        self.micro_batches = max(1, shape["step_tokens"] // (micro_batch * context))
        self.batch = micro_batch * self.micro_batches

    def job(self):
        return job("speed", self.shape, self.context, self.batch, self.micro_batches, self.precision)


def stretched(place, shape, context, precision, room):
    """The shape with as many layers as fit with one sequence a micro-batch."""
    def fits(layers):
        return place.forecast(Work({**shape, "layers": layers}, context, precision, 1).job()) <= room
    layers = largest(fits, 1, shape["layers"])
    if layers == 0:
        raise NotRun(f"memory: not one layer fits into {room / 1e9:.1f} GB")
    return {**shape, "layers": layers}


def fitting(place, shape, context, precision, room):
    """(work, forecast bytes) from the largest micro-batch that fits on; NotRun if not one sequence does."""
    found = []
    for size in micro_batch_choices(context, shape["micro_tokens"]):
        work = Work(shape, context, precision, size)
        forecast = place.forecast(work.job())
        if forecast <= room:
            found.append((work, forecast))
    if not found:
        raise NotRun(f"memory: one sequence needs {forecast / 1e9:.1f} GB by forecast, {room / 1e9:.1f} GB are to be used")
    return found


def start_seconds(shape, cores):
    """About, from the program's start to its first step: initial weights are made by the host's cores."""
    return 6 + parameters(shape) * (1e-7 / max(1, cores) + 1e-9)


class SpeedRow:
    """One shape and context: ours, PyTorch, ours again where there is time."""

    def __init__(self, section, machine, place, options, ceiling, alone=False):
        self.alone = alone  # without PyTorch
        self.machine, self.place, self.options, self.ceiling = machine, place, options, ceiling
        self.budget, self.trial = section.budget, not machine.on_card
        self.remarks = []

    def ours(self, work, patience):
        with self.place.start(work.job()) as run:
            times = run.seconds_of_steps(self.options.measure_seconds, self.budget.most(patience))
            counted, own = run.flops_per_token(), flops_per_token(work.shape)
        if counted is not None and abs(counted / own - 1) > 1e-9:
            raise Failed(f"model FLOPs per token: the coordinator counts {counted}, this report {own}")
        return times

    def torch(self, work):
        """{mode: numbers, or {"error": why}} of eager and compile."""
        known = self.machine.torch()
        modes = ["eager"] + (["compile"] if known["compile"] else [])
        arguments = [f"--{key}={work.shape[key]}" for key in ("layers", "width", "heads", "vocabulary", "context")]
        arguments += [f"--micro-batch={work.micro_batch}", f"--micro-batches={work.micro_batches}",
                      f"--precision={work.precision}", f"--modes={','.join(modes)}",
                      f"--compile={self.options.compile}", f"--seconds={self.options.measure_seconds}"]
        results, late = run_torch(self.machine, arguments, self.budget.most(self.options.torch_seconds))
        for mode in ("eager", "compile"):
            if mode not in modes:
                results[mode] = {"error": f"PyTorch {known['version']} has no torch.compile"}
            elif mode not in results:
                results[mode] = {"error": "time: not through its warm-up" if late else "time"}
        return results

    def work(self, values, name, context):
        precision = "float32" if self.trial else "bfloat16"
        if precision == "bfloat16":
            self.machine.need_bfloat16(self.place.folder)
        room = TRIAL_BYTES if self.trial else FILL * (self.machine.total_bytes or 16e9)
        shape = SHAPES[name]
        if name in STRETCHED:
            shape = stretched(self.place, shape, context, precision, room)
        for work, forecast in fitting(self.place, shape, context, precision, room)[:2]:
            starting = start_seconds(work.shape, self.options.cores)
            self.budget.need(starting + 2 * self.options.measure_seconds, "ours")
            values.update(precision=precision, layers=shape["layers"], batch=f"{work.micro_batches} x {work.micro_batch}",
                          forecast_bytes=forecast, parameters=parameters(work.shape))
            try:
                times = self.ours(work, 60 + 2 * starting)
                break
            except OutOfMemory as why:
                self.remarks.append(f"micro-batches of {work.micro_batch} were forecast {forecast / 1e9:.1f} GB: {why}")
                values["remarks"] = "; ".join(self.remarks)
        else:
            raise Failed("the device's memory did not do, by forecast it does; see remarks")
        self.fill_in(values, work, times)
        if not self.alone:
            self.beside(values, work, starting, times)
        values["remarks"] = "; ".join(self.remarks)

    def beside(self, values, work, starting, times):
        """PyTorch, then ours once more: whoever comes later must not win or lose by it."""
        try:
            self.budget.need(20, "PyTorch")
            results = self.torch(work)
        except (NotRun, Failed) as why:
            results = {mode: {"error": str(why)} for mode in ("eager", "compile")}
        for mode, result in results.items():
            values[f"{mode}_details"] = result
            if "error" in result:
                values[mode] = "not run"
                self.remarks.append(f"{mode}: {result['error']}")
            else:
                values[mode] = result["tokens_per_second"]
        if self.budget.left() > starting + 1.5 * self.options.measure_seconds + 5:
            try:
                second = self.ours(work, 30 + 2 * starting)
                rounds = [tokens_per_second(t, work.batch, work.context) for t in (times, second)]
                values["tokens_per_second_rounds"], times = rounds, times + second
            except Late as why:
                self.remarks.append(f"ours, again: {why}")
        self.fill_in(values, work, times)

    def fill_in(self, values, work, times):
        speed = tokens_per_second(times, work.batch, work.context)
        sheet = self.machine.datasheet() if self.machine.on_card else None
        values.update(tokens_per_second=speed, step_seconds=median(times), steps=len(times),
                      flops_per_token=flops_per_token(work.shape), mfu=share(speed, work.shape, sheet),
                      mfu_full_attention=share(speed, work.shape, sheet, True),
                      of_ceiling=share(speed, work.shape, self.ceiling))
        for mode in ("eager", "compile"):
            if isinstance(values.get(mode), float):
                values[f"mfu_{mode}"] = share(values[mode], work.shape, sheet)
                values[f"beside_{mode}"] = speed / values[mode]
        card = self.machine.card_name if self.machine.on_card else None
        values["model"] = model_mfu(card, work.precision, work.shape, work.micro_batch, work.micro_batches)
        values["goal"] = goal_met(values, parameters(work.shape))


def goal_met(values, size):
    """True or False of the goals that can be told, None if none can."""
    goals = []
    if values.get("beside_compile") is not None:
        goals.append(values["beside_compile"] >= GOAL_BESIDE_COMPILE)
    if values.get("mfu") is not None and size >= GOAL_MFU_FROM:
        goals.append(values["mfu"] >= GOAL_MFU)
    return all(goals) if goals else None


FIRST_SECONDS = 20  # of training, without PyTorch beside it


def check_first_run(section, machine, place, options):
    """What a machine that is gone after two minutes must have told: a product, and a real training."""
    trial = not machine.on_card
    ceiling = measure_ceiling(section, machine, trial, with_torch=False)
    name, context = TINY_SPEED_ROWS[0] if trial else ("124M", 1024)
    seconds = options.measure_seconds if trial else FIRST_SECONDS
    alone = argparse.Namespace(**{**vars(options), "measure_seconds": seconds})
    row = SpeedRow(section, machine, place, alone, ceiling, alone=True)
    section.row(f"GPT-2 {name}, context {context}, {seconds:.0f} s",
                lambda values: row.work(values, name, context))


def check_speed(section, machine, place, options):
    trial = not machine.on_card
    ceiling = measure_ceiling(section, machine, trial)
    rows = TINY_SPEED_ROWS if trial else SPEED_ROWS
    wanted = options.rows or [f"{name}/{context}" for name, context in rows]
    for name, context in rows:
        if f"{name}/{context}" not in wanted:
            section.skip(f"GPT-2 {name}, context {context}", "left out by --rows")
            continue
        row = SpeedRow(section, machine, place, options, ceiling)
        section.row(f"GPT-2 {name}, context {context}",
                    lambda values, row=row, name=name, context=context: row.work(values, name, context))
