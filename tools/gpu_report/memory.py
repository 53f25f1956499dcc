"""Memory: the forecast beside what the allocator and the driver say; the largest model that trains. And the price of a
pipeline of processes that share one device."""
from .arithmetic import largest, median, parameters
from .budget import Failed, NotRun
from .jobs import GPT2, TINY_SHAPES, TINY_TRANSFORMER, TRANSFORMER, job
from .runs import OutOfMemory, tokens_per_second
from .speed import start_seconds

GOAL_FORECAST = 0.10
GOAL_PIPELINE = 0.95
CONTEXT_BYTES = 1.2e9   # of a card: the driver's own of one process, what the allocator rounds up
TRIAL_BYTES = 60e6      # that the trial on a CPU takes for a card
MOST_LAYERS = 2000
STEPS_OF_A_FIT = 2

COLUMNS = [("layers", "layers", "d"), ("parameters", "parameters", ".3g"), ("forecast", "forecast GB", "GB"),
           ("allocator", "allocator's peak GB", "GB"), ("ratio", "peak / forecast", ".3f"),
           ("driver", "driver, of all processes GB", "GB"), ("step_seconds", "step s", ".3g"),
           ("goal", "within 10 %", "met")]


def compare(values, forecast, peaks, used):
    """Fills in the largest stage's numbers; `used` of the device by the driver, or None."""
    allocator = [sum(peak.values()) for peak in peaks]
    stage = max(range(len(forecast)), key=lambda k: sum(forecast[k].values()))
    expected = sum(forecast[stage].values())
    values.update(forecast=expected, allocator=allocator[stage], driver=used, stages=len(forecast),
                  forecast_by_kind=forecast, allocator_by_kind=peaks, ratio=allocator[stage] / expected,
                  goal=abs(allocator[stage] / expected - 1) <= GOAL_FORECAST)


def measured(place, spec, stages, steps, patience):
    """(memory peaks of the stages, bytes in use by the driver, step times) of a job that is then ended."""
    with place.start(spec, stages) as run:
        times = [run.wait_for_step(1, patience)["step_seconds"]]
        while len(times) < steps:
            times.append(run.wait_for_step(1, patience)["step_seconds"])
        used = place.machine.used_bytes()
        if used is not None and place.machine.idle_bytes is not None:
            used -= place.machine.idle_bytes
        return run.memory_peaks(), used, times


def check_forecast(section, machine, place, precision, stages, rematerialization):
    """One GPT-2 job, forecast and measured."""
    trial = not machine.on_card

    def work(values):
        if precision == "bfloat16":
            machine.need_bfloat16(place.folder)
        shape, context = (TINY_SHAPES["tiny"], 64) if trial else (GPT2["124M"], 1024)
        section.budget.need(start_seconds({**shape, "context": context}, 16) + 5)
        spec = job("memory", shape, context, 16, 4, precision, schedule="gpipe", rematerialization=rematerialization)
        forecast = place.plan(spec, stages)
        peaks, used, times = measured(place, spec, stages, 3, section.budget.most(90))
        values.update(layers=shape["layers"], parameters=parameters({**shape, "context": context}),
                      step_seconds=median(times))
        compare(values, forecast, peaks, used)
    section.row(f"GPT-2 {'tiny' if trial else '124M'}, {precision}, K = {stages}, rematerialization {rematerialization}",
                work)


def transformer(shape, layers, precision, pipelined):
    """Table 1 of the paper: one batch at once and everything kept, or micro-batches of one sequence, recomputed."""
    form = {**shape, "layers": layers}
    return job("largest", form, shape["context"], shape["batch"], shape["batch"] if pipelined else 1, precision,
               schedule="gpipe", rematerialization="always" if pipelined else "never")


def step_guess(shape, layers, precision, card):
    """Seconds of a step, to leave out what cannot end in time: a third of what cards of the kind are sold for."""
    rate = (card or 100.0) * 1e12 * (1 / 3 if precision == "bfloat16" else 1 / 45)
    form = {**shape, "layers": layers}
    return 8 * parameters(form) * shape["batch"] * shape["context"] / rate


def check_largest(section, machine, place, precision, pipelined, cores):
    trial = not machine.on_card
    shape = TINY_TRANSFORMER if trial else TRANSFORMER

    def work(values):
        if precision == "bfloat16":
            machine.need_bfloat16(place.folder)
        if not trial and machine.total_bytes is None:
            raise NotRun("nvidia-smi does not tell the card's memory")
        room = TRIAL_BYTES if trial else machine.total_bytes - (machine.idle_bytes or 0) - CONTEXT_BYTES

        def fits(layers):
            return place.forecast(transformer(shape, layers, precision, pipelined)) <= room
        section.budget.need(5)
        layers = largest(fits, 1, MOST_LAYERS)
        if layers == 0:
            raise NotRun(f"not one layer fits into {room / 1e9:.1f} GB by forecast")
        values.update(by_forecast=layers, room=room)
        starting = start_seconds({**shape, "layers": layers}, cores)
        step = 0 if trial else step_guess(shape, layers, precision, machine.datasheet())
        values.update(layers=layers, parameters=parameters({**shape, "layers": layers}))
        spec = transformer(shape, layers, precision, pipelined)
        forecast = place.plan(spec)
        values.update(forecast=sum(forecast[0].values()))
        section.budget.need(starting + STEPS_OF_A_FIT * step, f"a run of {layers} layers")
        try:
            peaks, used, times = measured(place, spec, 1, STEPS_OF_A_FIT, section.budget.most(60 + 3 * starting + 6 * step))
        except OutOfMemory as why:
            fewer = int(0.95 * layers)
            values.update(too_many=layers, why_too_many=str(why))
            section.budget.need(starting + STEPS_OF_A_FIT * step, f"{layers} layers did not fit; a run of {fewer}")
            layers, spec = fewer, transformer(shape, fewer, precision, pipelined)
            forecast = place.plan(spec)
            peaks, used, times = measured(place, spec, 1, STEPS_OF_A_FIT, section.budget.most(60 + 3 * starting + 6 * step))
            values.update(layers=layers, parameters=parameters({**shape, "layers": layers}))
        values["step_seconds"] = times[-1]
        compare(values, forecast, peaks, used)
    section.row(f"largest Transformer-L, {precision}, {'rematerialized, M = ' + str(shape['batch']) if pipelined else 'naive'}",
                work)


def check_memory(section, machine, place, options):
    section.columns = COLUMNS
    for pipelined in (False, True):
        check_largest(section, machine, place, "bfloat16", pipelined, options.cores)
    check_forecast(section, machine, place, "bfloat16", 1, "never")
    check_forecast(section, machine, place, "float32", 1, "never")
    check_largest(section, machine, place, "float32", False, options.cores)
    check_forecast(section, machine, place, "bfloat16", 2, "always")
    check_forecast(section, machine, place, "float32", 2, "always")
    check_largest(section, machine, place, "float32", True, options.cores)


def check_pipeline(section, machine, place, options):
    """K processes on one device beside one process, the same mini-batch; K = 1 before and behind the others."""
    section.columns = [("tokens_per_second", "tokens/s", ".0f"), ("of_single", "of K = 1", ".3f"), ("goal", "0.95", "met")]
    trial = not machine.on_card
    precision = "float32" if trial else "bfloat16"
    shape, context, size, micro_batches = (TINY_SHAPES["tiny, as many layers as fit"], 64, 2, 8) if trial \
        else (GPT2["350M"], 1024, 4, 16)
    spec = job("pipeline", shape, context, size * micro_batches, micro_batches, precision)
    single = []

    def work(values, stages):
        if precision == "bfloat16":
            machine.need_bfloat16(place.folder)
        section.budget.need(start_seconds({**shape, "context": context}, options.cores) + options.measure_seconds)
        with place.start(spec, stages) as run:
            times = run.seconds_of_steps(options.measure_seconds, section.budget.most(90))
        speed = tokens_per_second(times, size * micro_batches, context)
        values.update(tokens_per_second=speed, step_seconds=median(times), steps=len(times))
        if stages == 1:
            single.append(speed)
    for name, stages in (("K = 1", 1), ("K = 2", 2), ("K = 4", 4), ("K = 1, again", 1)):
        section.row(name, lambda values, k=stages: work(values, k))
    for row in section.rows:
        if single and row.get("tokens_per_second"):
            row["of_single"] = row["tokens_per_second"] / (sum(single) / len(single))
            if row["row"] in ("K = 2", "K = 4") and machine.on_card:
                row["goal"] = row["of_single"] >= GOAL_PIPELINE
