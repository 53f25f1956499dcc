"""A googletest program in several processes side by side: what one of them does to the card, to its own context or to
itself ends that process alone, and what each has found is on disk after every test."""
import json
import os
import re
import select
import signal
import subprocess
import threading
import time

from .runs import end_of

MOST_SECONDS_OF_A_TEST = 90
# After one of these every call of the process fails: what comes behind it says nothing.
POISONED = re.compile(r"cudaError(IllegalAddress|LaunchFailure|LaunchTimeout|HardwareStackError|IllegalInstruction|"
                      r"MisalignedAddress|InvalidAddressSpace|InvalidPc|Assert|ECCUncorrectable|Unknown)\b|"
                      r"CUDNN_STATUS_EXECUTION_FAILED")
RUNS = re.compile(r"\[ RUN      \] (\S+)")
ENDS = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)")
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


class Shard:
    """Some tests of a program. `found`: {test: {"outcome", "seconds", "text"}}; a test that was not reached is not in
    it. A process that ends before its last test, or whose context is poisoned, is followed by a new one behind it."""

    def __init__(self, program, names, file, env, stop):
        self.program, self.names, self.file, self.env = program, list(names), file, env
        self.found, self.processes, self.trouble = {}, 0, ""
        self._stop = stop

    def left(self):
        return [name for name in self.names if name not in self.found]

    def run(self, deadline, clock=time.monotonic):
        try:
            while self.left() and not self._stop.is_set() and clock() < deadline and not self.trouble:
                self._run_process(deadline, clock)
        except OSError as error:
            self.trouble = f"{self.program}: {error.strerror}"
        self._save()

    def _run_process(self, deadline, clock):
        before, self.processes = len(self.found), self.processes + 1
        process = subprocess.Popen([str(self.program), "--gtest_filter=" + ":".join(self.left())], env=self.env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        test, text, began, why, ended = None, "", clock(), "", False
        try:
            for line in lines_of(process):
                if line is None:
                    if self._stop.is_set() or clock() >= deadline:
                        return
                    if clock() - began > MOST_SECONDS_OF_A_TEST:
                        why = f"not finished within {MOST_SECONDS_OF_A_TEST} s"
                        break
                    continue
                starts, ends = RUNS.match(line), ENDS.search(line)
                if starts:
                    test, text, began = starts.group(1), "", clock()
                elif ends and ends.group(2) == test:
                    outcome = OUTCOMES[ends.group(1).strip()]
                    self._note(test, outcome, clock() - began, text if outcome == "failed" else "")
                    test = None
                    if outcome == "failed" and POISONED.search(text):
                        return
                else:
                    text += line + "\n"
            else:
                ended = True
        finally:
            code = end(process, 20 if ended else 0)
        if test is not None:
            self._note(test, "failed", clock() - began, f"{why or f'ended its process, exit {code}'}: {end_of(text)}")
        elif len(self.found) == before:
            self.trouble = f"ran no test, exit {code}: {end_of(text)}"

    def _note(self, test, outcome, seconds, text):
        self.found[test] = {"outcome": outcome, "seconds": round(seconds, 2), "text": end_of(text, 2000)}
        self._save()

    def _save(self):
        """Whole at any moment."""
        text = json.dumps({"program": self.program.name, "tests": self.found, "not_reached": self.left(),
                           "processes": self.processes, "trouble": self.trouble}, indent=1)
        draft = self.file.with_suffix(".draft")
        draft.write_text(text + "\n")
        os.replace(draft, self.file)


def lines_of(process):
    """Lines as they come; None about ten times a second while none does."""
    buffer, pipe = b"", process.stdout.fileno()
    while True:
        if not select.select([pipe], [], [], 0.1)[0]:
            yield None
            continue
        data = os.read(pipe, 65536)
        if not data:
            break
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if buffer:
        yield buffer.decode(errors="replace")


def end(process, patience):
    """Ends the process and all that it started, if it goes on for so many seconds; its exit code."""
    try:
        process.wait(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    return process.wait()


def run_sharded(program, names, count, folder, seconds, env=None, shards=None, clock=time.monotonic):
    """The shards, ended: test n is in shard n % count. Whatever ends this call ends their processes too; `shards` is
    filled at once, for who wants to see what was found by then."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{program.name}-*.json"):  # of an earlier call with more shards
        old.unlink()
    stop, deadline = threading.Event(), clock() + seconds
    shards = [] if shards is None else shards
    shards += [Shard(program, names[n::count], folder / f"{program.name}-{n:02}.json", env, stop)
               for n in range(min(count, len(names)))]
    threads = [threading.Thread(target=shard.run, args=(deadline, clock)) for shard in shards]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # in between a signal is heard
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return shards
