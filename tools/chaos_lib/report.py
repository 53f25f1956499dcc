"""What a run under faults cost, as numbers, as a table and as one JSON value."""
import dataclasses
import os
import platform

from . import history


def percentile(values, share):
    """Nearest rank; None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)] if ordered else None


def recovery_seconds(began, step_times, recovery_times):
    """From a fault to the next finished step, or to the second one if the job recovers between the two: then the first was
    over when the fault came. None: no step followed."""
    later = sorted(at for at in step_times if at > began)
    if not later:
        return None
    if len(later) > 1 and any(later[0] < at < later[1] for at in recovery_times):
        return later[1] - began
    return later[0] - began


def useful_share(reference, rounds, disturbed):
    """How much of the time went into what an undisturbed run does too: the seconds of each step that counts, once, and what
    the reference took beside its steps. So it holds where the machine's speed changes from one run to the other."""
    if not disturbed:
        return None
    steps = sum(each.seconds_in_steps for each in rounds)
    beside = reference["seconds"] - reference.get("seconds_in_steps", reference["seconds"])
    return (steps + beside * len(rounds)) / disturbed


def spread(values):
    known = [value for value in values if value is not None]
    return {"count": len(known), "p50": percentile(known, 0.5), "p90": percentile(known, 0.9),
            "p99": percentile(known, 0.99), "max": max(known, default=None)}


def machine():
    name = ""
    try:
        with open("/proc/cpuinfo") as file:
            name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        pass
    return f"{os.cpu_count()} cores {name or platform.machine()}, {platform.system()} {platform.release()}"


def summarize(reference, rounds, struck):
    """rounds: histories; struck: faults as they happened."""
    steps = [at for each in rounds for at in each.step_times]
    recoveries = [at for each in rounds for at in each.recovery_times]
    faults = [{**dataclasses.asdict(each.fault), "began_unix_seconds": each.began, "hit": each.hit,
               "recovery_seconds": recovery_seconds(each.began, steps, recoveries) if each.hit else None} for each in struck]
    disturbed = sum(each.seconds for each in rounds)
    differ = [f"round {number}: {text}" for number, each in enumerate(rounds, 1)
              for text in history.differences(reference, each.result()) + each.faults_found]
    return {
        "equal": bool(rounds) and not differ,
        "differences": differ,
        "weights_digest": reference["weights_digest"],
        "undisturbed_seconds": reference["seconds"],
        "rounds": [{"seconds": each.seconds, "steps": len(each.losses), "repeated_steps": each.repeated,
                    "generations": 1 + each.recoveries, "weights_digest": each.result()["weights_digest"]} for each in rounds],
        "disturbed_seconds": disturbed,
        "useful_share": useful_share(reference, rounds, disturbed),
        "generations": sum(1 + each.recoveries for each in rounds),
        "repeated_steps": sum(each.repeated for each in rounds),
        "recovery_seconds": spread([fault["recovery_seconds"] for fault in faults]),
        "by_kind": {kind: {"faults": len(of), "hit": sum(fault["hit"] for fault in of),
                           **spread([fault["recovery_seconds"] for fault in of])}
                    for kind in sorted({fault["kind"] for fault in faults})
                    for of in [[fault for fault in faults if fault["kind"] == kind]]},
        "faults": faults,
    }


def nothing_struck(hits):
    """Why a run whose faults, or whose trials, hit this is no proof; empty: it is one."""
    return "" if any(hits) else f"nothing was struck: none of {len(hits)} met something to kill, stop or spoil, so this shows nothing"


def number(value):
    return "–" if value is None else f"{value:.2f}"


def table(summary):
    """Markdown; seconds from a fault to the next finished step."""
    lines = ["| fault | drawn | hit | p50 s | p90 s | p99 s | max s |", "| --- | --- | --- | --- | --- | --- | --- |"]
    rows = [*summary["by_kind"].items(),
            ("all", {"faults": len(summary["faults"]), "hit": sum(fault["hit"] for fault in summary["faults"]),
                     **summary["recovery_seconds"]})]
    for kind, row in rows:
        spreads = " | ".join(number(row[name]) for name in ("p50", "p90", "p99", "max"))
        lines.append(f"| {kind} | {row['faults']} | {row['hit']} | {spreads} |")
    return "\n".join(lines)


def totals(summary):
    rounds = summary["rounds"]
    return (f"{len(rounds)} runs of the job, {summary['disturbed_seconds']:.1f} s; undisturbed one takes "
            f"{summary['undisturbed_seconds']:.2f} s: {100 * (summary['useful_share'] or 0):.1f} % of the time was useful. "
            f"{summary['generations']} generations, {summary['repeated_steps']} steps repeated.")


def matrix_table(results):
    """Markdown: of each moment the trials, how many struck something, and the seconds as above."""
    lines = ["| moment | trials | struck | equal | p50 s | max s |", "| --- | --- | --- | --- | --- | --- |"]
    by_moment = {}
    for result in results:
        by_moment.setdefault(result["name"].split("/")[0], []).append(result)
    for name, of in by_moment.items():
        seconds = spread([result["recovery_seconds"] for result in of])
        lines.append(f"| {name} | {len(of)} | {sum(bool(result['hit']) for result in of)} | "
                     f"{sum(result['equal'] for result in of)} | {number(seconds['p50'])} | {number(seconds['max'])} |")
    return "\n".join(lines)
