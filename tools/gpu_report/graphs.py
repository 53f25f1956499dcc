"""CUDA graphs: a training that is bound by launches, with and without them."""
from .arithmetic import median
from .budget import Failed, NotRun
from .jobs import job, merged
from .runs import WARM_UP_STEPS, tokens_per_second

# Narrow, deep and one short sequence at a time: a micro-batch is hundreds of launches of a few microseconds each.
SHAPE = {"layers": 12, "width": 256, "heads": 4, "vocabulary": 512}
CONTEXT, BATCH, STEPS = 128, 8, 40
SECONDS_OF_A_RUN = 6  # with the start of its processes
VARIABLE = "STAGECOACH_CUDA_GRAPHS"
SAID = r"CUDA graphs: (\d+) captured, launched for (\d+) lists of calls; (\d+) lists call by call, (\d+) refused"


def launch_bound_job(precision):
    """Ends, so that the weights can be compared; without dropout, which cuts lists into short ones."""
    spec = job("graphs", SHAPE, CONTEXT, BATCH, BATCH, precision, STEPS)
    return merged(spec, {"training": {"learning_rate": {"constant": {"peak": 1e-3}}}})


def step_times(events):
    return [event["step_seconds"] for event in events if event["event"] == "step" and event["step"] > WARM_UP_STEPS]


def count_lists(found):
    """Sums over the stages of what each said when its cell went, or the stage."""
    names = ("captured", "by_graph", "call_by_call", "refused")
    return {name: sum(int(numbers[i]) for numbers in found) for i, name in enumerate(names)}


def compare(values, without, with_graphs):
    """Fills in the row; Failed if the bits differ, or if nothing was launched as a graph. Each: (digest, events)."""
    for name, (_, events) in (("without", without), ("with", with_graphs)):
        values[name] = tokens_per_second(step_times(events), BATCH, CONTEXT)
    values.update(digest=without[0].removeprefix("sha256:")[:12], gain=values["with"] / values["without"])
    if without[0] != with_graphs[0]:
        raise Failed(f"the weights differ: {without[0][7:19]} without graphs, {with_graphs[0][7:19]} with them")
    if not values.get("by_graph"):
        raise Failed("no list of calls became a graph; the stage's log says why")


def check_graphs(section, machine, place):
    section.columns = [("without", "tokens/s", ".0f"), ("with", "with graphs", ".0f"), ("gain", "with / without", ".2f"),
                       ("captured", "captured", "d"), ("by_graph", "lists by graph", "d"),
                       ("call_by_call", "call by call", "d"), ("refused", "refused", "d"),
                       ("digest", "weights, first digits", "")]

    def train(spec, stages, variables):
        section.budget.need(SECONDS_OF_A_RUN)
        with place.start(spec, stages, variables=variables) as run:
            run.finish(section.budget.most(60))
            return run.digest(), run.events, run.said(SAID)

    def work(values, stages, precision):
        if not machine.on_card:
            raise NotRun("only cards have graphs of launches")
        if precision == "bfloat16":
            machine.need_bfloat16(place.folder)
        spec = launch_bound_job(precision)
        digest, events, _ = train(spec, stages, {VARIABLE: "0"})
        digest_with, events_with, said = train(spec, stages, {VARIABLE: "1"})
        values.update(count_lists(said), step_seconds=median(step_times(events_with)))
        compare(values, (digest, events), (digest_with, events_with))
    for stages, precision in ((1, "bfloat16"), (2, "bfloat16"), (1, "float32")):
        section.row(f"a narrow GPT, micro-batches of one sequence, K = {stages}, {precision}",
                    lambda values, k=stages, precision=precision: work(values, k, precision))
