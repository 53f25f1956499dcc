"""Every operation at the shapes of real networks, and who computes attention of which shape: gpu-operations' own lines."""
import json
import re
import subprocess
import time

from .budget import Failed, NotRun
from .report import Stopped, stops_held
from .runs import end_of
from .shards import end, lines_of

COLUMNS = [("network", "network", ""), ("times", "times", "d"), ("us", "µs", ".1f"), ("tflops", "TFLOP/s", ".3g"),
           ("gbs", "GB/s", ".3g"), ("of_ceiling", "of ceiling", "%"), ("way", "computed by", "")]
LEAST_SECONDS = 12  # below, the ceilings would be all of it
TRIAL = ["--networks", "tiny_gpt,tiny_resnet", "--precision", "float32", "--row-seconds", "0.01", "--product", "256",
         "--copy-bytes", "4000000", "--parameters", "100000"]
LEFT_FOR_REPORT = 3
USUAL = re.compile(r"(dilation_height|dilation_width|stride_height|stride_width|groups)=1")  # not worth naming


def name_of(line):
    """Of a row; equal for equal calls, so that an earlier report's row is found."""
    if line["row"] == "ceilings":
        return f"ceilings: product of side {line['product_side']}, copy of {line['copy_bytes'] / 1e6:.0f} MB"
    if line["row"] == "attention":
        return (f"attention, {line['network']}, context {line['context']}, {line['sequences']} sequences, "
                f"{line['heads']} heads of {line['head_width']}")
    if line["row"] == "update":
        return f"{line['operation']} of {line['parameters'] / 1e6:.3g} million parameters"
    parts = [line["operation"], *(part for part in line["attributes"].split() if not USUAL.fullmatch(part)), line["inputs"]]
    return f"{line['network']}: " + " ".join(part for part in parts if part) + f", n = {line['samples']}"


def take(line, values):
    """A line into a row's values. NotRun, Failed: what the line says."""
    if line["row"] == "attention" and "error" in line:
        raise Failed(line["error"])
    values.update(line)
    values.pop("row")
    if line["row"] == "attention" and line.get("why"):
        values["way"] = f"{line['way']}: {line['why']}"
    if "not_run" in line:
        raise NotRun(line["not_run"])


def check_operations(section, machine):
    section.columns = COLUMNS
    try:
        program = machine.program("gpu-operations")
        section.budget.need(LEAST_SECONDS)
    except NotRun as why:
        section.skip("all", str(why))
        return
    seconds = section.budget.left() - LEFT_FOR_REPORT
    command = [str(program), "--device", machine.device, "--seconds", f"{max(1.0, min(110.0, seconds - 8)):.0f}",
               *([] if machine.on_card else TRIAL)]
    with stops_held():
        process = subprocess.Popen(command, env=machine.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    rest, ended = [], False
    try:
        ended = read_rows(section, process, time.monotonic() + seconds, rest)
    except Stopped as why:  # between two rows
        end(process, 0)
        section.skip("the rest", str(why))
        raise
    finally:
        code = end(process, 10 if ended else 0)
    if code != 0 or rest or not section.rows:
        def failed(_):
            raise Failed(f"gpu-operations, {f'exit {code}' if ended else 'hangs'}: {end_of(' '.join(rest)) or 'no row'}")
        section.row("gpu-operations", failed)


def read_rows(section, process, deadline, rest):
    """A row of the section for each line that is one, the others into `rest`. False: it went on beyond its time."""
    for text in lines_of(process):
        if text is None:
            if time.monotonic() > deadline:
                return False
            continue
        try:
            line = json.loads(text)
            name = name_of(line)
        except (ValueError, KeyError, TypeError, AttributeError):  # no line of ours, or cut short
            rest.append(text)
            continue
        section.row(name, lambda values, line=line: take(line, values))
    return True
