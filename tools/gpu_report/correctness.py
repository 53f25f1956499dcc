"""Sections that find mistakes: conformance, bits, compute-sanitizer, end to end."""
import collections
import re

from .budget import Failed, NotRun
from .jobs import tiny_job
from .machine import call, find_sanitizer
from .runs import end_of, losses
from .shards import run_sharded

TEST_PROGRAMS = ["backend_device_tests", "backend_cuda_tests", "backend_cudnn_tests"]
# Processes of a test program side by side: most of a test's time is the reference's, on the CPU.
SHARDS = 10
# Lists of tests are run in so many parts, each with every n-th test, until the time is over.
SANITIZER_PARTS = 12


def gtest_names(text):
    """Full names from --gtest_list_tests."""
    names, suite = [], ""
    for line in text.splitlines():
        name = line.split("#")[0].rstrip()
        if name and not name.startswith(" "):
            suite = name if name.endswith(".") else ""
        elif name and suite:
            names.append(suite + name.strip())
    return names


def check_tests(section, machine, folder):
    """Each program in SHARDS processes, whose findings lie in `folder`."""
    section.columns = [("passed", "tests passed", "d"), ("failed", "failed", "d"), ("skipped", "skipped", "d"),
                       ("tests", "of", "d"), ("processes", "processes", "d")]
    for program in TEST_PROGRAMS:
        def work(values, program=program):
            if not machine.on_card:
                raise NotRun("conformance of a card; the CPU's is tested by tools/test")
            section.budget.need(5)
            run_tests(values, machine.program(program), machine.env, folder, section.budget)
        section.row(program, work)


def run_tests(values, program, env, folder, budget):
    listed = call([program, "--gtest_list_tests"], 30, env)
    names = gtest_names(listed.stdout)
    if not names:
        raise Failed(f"{program.name} lists no tests, exit {listed.returncode}: {end_of(listed.stdout + listed.stderr)}")
    shards = []
    try:
        shards = run_sharded(program, names, SHARDS, folder, budget.most(240), env, shards)
    finally:  # whatever happens, what was found stays
        found = {name: result for shard in shards for name, result in shard.found.items()}
        counts = collections.Counter(result["outcome"] for result in found.values())
        values.update({key: counts[key] for key in ("passed", "failed", "skipped")}, tests=len(names),
                      processes=sum(shard.processes for shard in shards))
    failures = [f"{name}: {result['text']}" for name, result in found.items() if result["outcome"] == "failed"]
    failures += [shard.trouble for shard in shards if shard.trouble]
    if failures:
        raise Failed(f"{len(failures)} failed: " + " | ".join(end_of(text, 300) for text in failures[:8]))
    if len(found) < len(names):
        raise NotRun(f"time: {len(names) - len(found)} of {len(names)} tests were not reached")
    if not counts["passed"]:
        raise NotRun("every test was skipped")


def check_bits(section, machine, place):
    """Run to run, and K = 1, 2, 4, in both precisions."""
    section.columns = [("digest", "weights, first digits", ""), ("first_loss", "first loss", ".5f"),
                       ("last_loss", "last loss", ".5f"), ("runs", "runs", "d")]
    for precision in ("float32", "bfloat16"):
        def work(values, precision=precision):
            if precision == "bfloat16":
                machine.need_bfloat16(place.folder)
            digests, first = {}, None
            for run, stages in enumerate((1, 1, 2, 4)):
                section.budget.need(3, f"K = {stages}")
                digest, found, _ = place.train(tiny_job(precision, trial=not machine.on_card), stages, section.budget.most(90))
                digests[f"K = {stages}" + (", again" if run == 1 else "")] = digest
                first = first or found
                values.update(runs=run + 1)
            values.update(digest=digest.removeprefix("sha256:")[:12], first_loss=first[1], last_loss=first[max(first)])
            if len(set(digests.values())) > 1:
                raise Failed("the weights differ: " + ", ".join(f"{k}: {d[7:19]}" for k, d in digests.items()))
            if not first[max(first)] < first[1]:
                raise Failed(f"the loss does not fall: {first[1]} to {first[max(first)]}")
        section.row(f"a GPT trains to the same bits with K = 1, 1, 2, 4, {precision}", work)


def check_end_to_end(section, machine, place):
    section.columns = [("digest", "weights, first digits", ""), ("last_loss", "last loss", ".5f"),
                       ("recoveries", "recoveries", "d")]
    other = "cpu" if machine.on_card else "reference"
    mixed = f"{machine.device},{other}"

    def whole(values, spec, stages, device=None):
        section.budget.need(4)
        digest, found, _ = place.train(spec, stages, section.budget.most(90), device)
        values.update(digest=digest.removeprefix("sha256:")[:12], last_loss=found[max(found)])
        if not found[max(found)] < found[1]:
            raise Failed(f"the loss does not fall: {found[1]} to {found[max(found)]}")
        return digest

    def killed(values, device, victim):
        spec = tiny_job(steps=30, every_steps=6, trial=not machine.on_card)
        undisturbed = whole(values, spec, 2, device)
        section.budget.need(6)
        with place.start(spec, 2, device) as run:
            run.wait_for_step(10, section.budget.most(60))
            run.kill_stage(victim)
            run.finish(section.budget.most(120))
            digest = run.digest()
            losses(run.events)
            values.update(recoveries=sum(event["event"] == "recovery" for event in run.events))
        if not values["recoveries"]:
            raise Failed(f"{victim} was killed and nobody noticed")
        if digest != undisturbed:
            raise Failed(f"recovered to {digest[7:19]}, undisturbed {undisturbed[7:19]}")

    def together(values):
        spec = tiny_job(trial=not machine.on_card)
        first, again = (whole(values, spec, 2, mixed) for _ in range(2))
        if first != again:
            raise Failed(f"run to run: {first[7:19]} and {again[7:19]}")
    section.row(f"{mixed}: two devices in one job, twice", together)
    section.row(f"{machine.device}, K = 2: stage-1 killed", lambda values: killed(values, None, "stage-1"))
    section.row(f"{mixed}: stage-0 killed", lambda values: killed(values, mixed, "stage-0"))


def sanitizer_errors(text):
    """Errors that compute-sanitizer counted, None if it did not come to a sum."""
    found = [int(count) for count in re.findall(r"ERROR SUMMARY: (\d+) error", text)]
    found += [int(count) for count in re.findall(r"RACECHECK SUMMARY: (\d+) hazard", text)]
    return sum(found) if found else None


def sanitized(command, seconds, env):
    """(errors, text, exit code) of a program under compute-sanitizer; NotRun where the tool itself does not work."""
    done = call(command, seconds, env)
    text = done.stdout + done.stderr
    errors = sanitizer_errors(text)
    if errors is None:
        if re.search("not supported|unable to|Error: ", text):
            raise NotRun(f"compute-sanitizer does not work here: {end_of(text, 300)}")
        raise Failed(f"compute-sanitizer came to no sum, exit {done.returncode}: {end_of(text)}")
    return errors, text, done.returncode


def stage_errors(logs, pids):
    """Errors in the stages' logs. NotRun if one came to no sum: the sums of other processes say nothing."""
    total = 0
    for name, pid in pids.items():
        log = logs / f"{pid}.log"
        text = log.read_text(errors="replace") if log.exists() else "no log"
        errors = sanitizer_errors(text)
        if errors is None:
            raise NotRun(f"compute-sanitizer came to no sum for {name}: {end_of(text, 300)}")
        total += errors
    return total


def check_sanitizer(section, machine, place):
    section.columns = [("tests", "tests run", ""), ("errors", "errors", "d")]

    def tests(values, tool):
        if not machine.on_card:
            raise NotRun("checks kernels of a card")
        sanitizer, program = find_sanitizer(machine.env), machine.program("backend_cuda_tests")
        names = gtest_names(call([program, "--gtest_list_tests"], 30, machine.env).stdout)
        done, longest, values["errors"] = 0, 3.0, 0
        share = section.budget.part(section.budget.left() / (3 if tool == "memcheck" else 2))
        for part in range(SANITIZER_PARTS):
            chosen = names[part::SANITIZER_PARTS]
            if not chosen or share.left() < 1.3 * longest:
                break
            before = share.left()
            errors, text, code = sanitized([sanitizer, "--tool", tool, program, "--gtest_brief=1",
                                            "--gtest_filter=" + ":".join(chosen)], share.most(600), machine.env)
            longest = max(longest, before - share.left())
            done += len(chosen)
            values.update(errors=values["errors"] + errors, tests=f"{done} of {len(names)}")
            if errors or code != 0:
                raise Failed(f"exit {code}: {end_of(text)}")
        if not done:
            raise NotRun(f"time: {max(0, share.left()):.0f} s are left")
    for tool in ("memcheck", "racecheck"):
        section.row(f"{tool}, backend_cuda_tests", lambda values, tool=tool: tests(values, tool))

    def training(values):
        if not machine.on_card:
            raise NotRun("checks kernels of a card")
        sanitizer = find_sanitizer(machine.env)
        section.budget.need(20)
        logs = place.folder / "sanitizer"
        logs.mkdir(exist_ok=True)
        prefix = [sanitizer, "--tool", "memcheck", "--target-processes", "all", "--log-file", logs / "%p.log"]
        with place.start(tiny_job(steps=3), 2, prefix=prefix) as run:
            run.wait_for_step(1, section.budget.most(90))
            stages = {name: entry["pid"] for name, entry in run.processes().items() if name.startswith("stage-")}
            run.finish(section.budget.most(120))
            run.digest()
        values.update(errors=stage_errors(logs, stages), tests="3 steps, K = 2")
        if values["errors"]:
            raise Failed(end_of(" ".join(log.read_text(errors="replace") for log in sorted(logs.glob("*.log")))))
    section.row("memcheck, a short job", training)
