"""What the client's tests share: an environment with the oldest packages that it takes, its wheel, and live servers.

Import this first: it goes on in that environment, or ends with 77 where PyPI is not reached.
"""
import atexit
import os
import pathlib
import shutil
import sys
import tempfile

import environment

environment.enter()
from environment import OLDEST, ROOT  # noqa: E402, F401

CLIENT = ROOT / "clients" / "python"
sys.path[:0] = [str(ROOT / "tests" / "deploy"), str(CLIENT)]

# A developer's own coordinator is none of the tests'.
for name in [name for name in os.environ if name.startswith("STAGECOACH_")]:
    del os.environ[name]
os.environ["STAGECOACH_CONFIG"] = "/dev/null"

import build_wheel  # noqa: E402

_folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecoach-wheel-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
WHEEL = _folder / build_wheel.build_wheel(str(_folder))
shutil.unpack_archive(WHEEL, _folder / "unpacked", "zip")
sys.path.insert(0, str(_folder / "unpacked"))

import servers  # noqa: E402
import stagecoach  # noqa: E402


class ClusterTest(servers.ServersTest):
    """A coordinator and two stages on loopback. `self.client` calls them."""

    def setUp(self):
        super().setUp()
        self.coordinator_flags = ["--state-dir", self.folder / "state"]
        self.launch("stagecoach-coordinator", "coordinator", *self.coordinator_flags)
        self.coordinator = self.address("coordinator")
        for name in ("stage-0", "stage-1"):
            self.launch("stagecoach-stage", name, "--name", name, "--coordinator", self.coordinator, "--threads", "1")
        self.client = stagecoach.Client(self.coordinator)
        self.addCleanup(self.client.close)
        servers.harness.wait_until("two stages", lambda: len(self.client.stages()) == 2)

    def job(self, **changes):
        """harness.TINY with changes, and its text."""
        job = servers.harness.merged(servers.harness.TINY, changes)
        job["data"] = changes.get("data") or {"text": {"path": str(self.folder / "input.txt")}}
        return job


main = servers.harness.main
