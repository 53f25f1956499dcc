"""The card's clocks while a row runs, sampled by one nvidia-smi beside everything."""
import contextlib
import subprocess
import threading
import time

from .arithmetic import median

FIELDS = {"clocks.sm": "sm_mhz", "clocks.mem": "memory_mhz", "temperature.gpu": "celsius", "power.draw": "watts"}
REASONS = "clocks_throttle_reasons.active"  # a mask in hexadecimal; bit 0: idle
PERIOD_MS = 500


def parse(line):
    """One line of the loop below: ({name: number}, mask). Fields that say [N/A] are left out."""
    *numbers, reasons = [part.strip() for part in line.split(",")]
    values = {}
    for name, text in zip(FIELDS.values(), numbers):
        with contextlib.suppress(ValueError):
            values[name] = float(text)
    with contextlib.suppress(ValueError):
        return values, int(reasons, 16)
    return values, 0


def summary(samples):
    """{name: [least, median, greatest], "throttle_reasons": mask of all}; {} without samples."""
    found = {}
    for name in FIELDS.values():
        numbers = [values[name] for values, _ in samples if name in values]
        if numbers:
            found[name] = [min(numbers), median(numbers), max(numbers)]
    if samples:
        reasons = 0
        for _, mask in samples:
            reasons |= mask
        found["throttle_reasons"] = f"{reasons:#x}"
    return found


class Clocks:
    """Samples from its making until its end; `program` is nvidia-smi, None where it is not."""

    def __init__(self, program, card, clock=time.monotonic):
        self._clock, self._samples, self._lock, self._process = clock, [], threading.Lock(), None
        if program is None:
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [program, f"--id={card}", f"--query-gpu={','.join(FIELDS)},{REASONS}", "--format=csv,noheader,nounits",
                 f"--loop-ms={PERIOD_MS}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, errors="replace")
            self._thread = threading.Thread(target=self._read)
            self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._thread.join()
            self._process.stdout.close()

    def _read(self):
        for line in self._process.stdout:
            with self._lock:
                self._samples.append((self._clock(), parse(line)))

    def since(self, began):
        """Of the time since then, or the last sample where none came in it."""
        with self._lock:
            samples = [sample for when, sample in self._samples if when >= began]
            return summary(samples or [sample for _, sample in self._samples[-1:]])
