#!/usr/bin/env python3
"""One training step beside PyTorch's, one thread each, float32: the job of examples/gpt-text.yaml.

    bench/torch_bench.py [--rounds 7] [--python /usr/bin/python3]

Every round runs build/bin/step-bench (rematerialization never: PyTorch keeps its activations too) and then
tools/gpu_report/torch_gpt.py on the CPU: the same shapes, 8 micro-batches of 4 sequences, clipping and AdamW. Both are
CPU seconds of a step, so that other programs count little; the ratio is the median of the rounds' own.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPE = {"layers": 6, "width": 384, "heads": 6, "vocabulary": 256, "context": 256, "micro-batch": 4, "micro-batches": 8}


def ours():
    report = subprocess.run([ROOT / "build" / "bin" / "step-bench", "1", "--only=never"], check=True, text=True,
                            capture_output=True).stdout
    return float(re.search(r"\| never \| ([0-9.]+) \|", report).group(1)), float(re.search(r"peak ([0-9.]+) G", report).group(1))


def torch_gpt(python, *arguments):
    """the last line of JSON that torch_gpt.py prints, computed by one thread"""
    command = [python, ROOT / "tools" / "gpu_report" / "torch_gpt.py", "--device", "cpu", "--precision", "float32", *arguments]
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    report = subprocess.run(command, check=True, text=True, capture_output=True, env=os.environ | one_thread).stdout
    return json.loads(report.splitlines()[-1])


def theirs(python):
    shape = [text for name, value in SHAPE.items() for text in (f"--{name}", str(value))]
    return torch_gpt(python, *shape, "--seconds", "2")["cpu_seconds"]


def refuse_slow_blas(python, peak):
    gflops = 1000 * torch_gpt(python, "--product", "512")["tflops_best"]
    if gflops < peak / 4:
        sys.exit(f"PyTorch multiplies matrices at {gflops:.1f} GFLOP/s: by the reference BLAS? Install libopenblas0-pthread; "
                 "a comparison without it says nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", default="/usr/bin/python3")
    options = parser.parse_args()
    version = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], check=True, text=True,
                             capture_output=True).stdout.strip()
    stagecoach, torch, peaks = [], [], []
    for number in range(options.rounds):
        seconds, peak = ours()
        if number == 0:
            refuse_slow_blas(options.python, peak)
        stagecoach.append(seconds)
        peaks.append(peak)
        torch.append(theirs(options.python))
        print(f"round {number + 1}: {stagecoach[-1]:.3f} s, PyTorch {torch[-1]:.3f} s", flush=True)
    tokens = SHAPE["micro-batch"] * SHAPE["micro-batches"] * SHAPE["context"]
    print(f"\none thread, float32, multiply-add peak {median(peaks):.1f} GFLOP/s, {options.rounds} rounds\n\n"
          "| | step s | tokens/s | times PyTorch |\n| --- | --- | --- | --- |")
    ratio = median([b / a for a, b in zip(stagecoach, torch)])
    print(f"| Stagecoach | {median(stagecoach):.3f} | {tokens / median(stagecoach):.0f} | {ratio:.2f} |")
    print(f"| PyTorch {version}, eager | {median(torch):.3f} | {tokens / median(torch):.0f} | 1 |")


if __name__ == "__main__":
    main()
