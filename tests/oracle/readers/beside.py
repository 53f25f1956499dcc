"""Our readers beside those of others: asks the program `stagecoach-readers` and compares what both yield of a file."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import pypi  # noqa: E402

# One environment for all. torchvision's list of pictures needs no PyTorch, so dependencies are those named here.
PACKAGES = [
    "safetensors==0.8.0",
    "webdataset==1.0.2",
    "torchvision==0.29.2",
    "braceexpand==0.1.7",
    "numpy",
    "pillow",
    "pyyaml",
]


def enter_packages():
    """Goes on where the packages are."""
    pypi.enter(sys.argv[2], "readers", PACKAGES, with_system_packages=True, dependencies=False)


class Refused(Exception):
    """What the other reader does not take."""


class Comparison:
    """Of one reader of ours with one of others. Files are made in a temporary folder, from one seed."""

    def __init__(self, reader, program):
        self.reader, self.random = reader, random.Random(20)
        self.same, self.both, self.alone, self.failures = 0, 0, 0, 0
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)

    def write(self, content, name="file"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def ours(self, path):
        self.process.stdin.write(f"{self.reader}\t{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"{self.process.args}: ended with {self.process.wait()} at {path}"
        return json.loads(answer)

    def fail(self, what, why):
        self.failures += 1
        print(f"FAILED {what}: {why}")

    def equal(self, what, theirs, ours):
        """Both take it, and yield the same."""
        if isinstance(theirs, Refused):
            self.fail(what, f"the other reader refuses it: {theirs}")
        elif theirs != ours:
            self.fail(what, f"theirs {str(theirs)[:300]}, ours {str(ours)[:300]}")
        else:
            self.same += 1

    def refused(self, what, theirs, refusals, *words):
        """One of our refusals has all these words, whether the other reader takes it or not."""
        if not any(all(word in refusal for word in words) for refusal in refusals):
            self.fail(what, f"no refusal with {words} in {refusals}; theirs {str(theirs)[:300]}")
        elif isinstance(theirs, Refused):
            self.both += 1
        else:
            self.alone += 1

    def finish(self, versions):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.temporary.cleanup()
        print(
            f"{versions}: {self.same} the same, {self.both} refused by both, {self.alone} refused here alone, by name; "
            f"{self.failures} failures"
        )
        sys.exit(1 if self.failures else 0)


def attempt(read, *errors):
    """What `read` yields, or Refused."""
    try:
        return read()
    except errors as error:
        return Refused(f"{type(error).__name__}: {error}")
