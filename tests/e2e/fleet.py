"""A coordinator and stages as processes of their own, which outlive a job."""
import json
import os
import subprocess
import urllib.error
import urllib.request

import harness
import server_process


def fetch(http, path):
    """Status and body; JSON is parsed. A coordinator that is kept by the journal's disk says so, and is asked again."""
    def answer():
        try:
            with urllib.request.urlopen(f"http://{http}{path}", timeout=60 * harness.TIME_FACTOR) as response:
                status, body = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read().decode()
        body = json.loads(body) if path.startswith("/api/") else body
        busy = status == 503 and isinstance(body, dict) and body["error"]["code"] == "UNAVAILABLE"
        return None if busy else (status, body)
    return harness.wait_until(f"an answer to {path}", answer, 60)


def own_mounts():
    """Words that run a command in a mount namespace of its own, or None where that is not allowed."""
    words = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    try:
        allowed = subprocess.run([*words, "true"], capture_output=True, timeout=20).returncode == 0
    except FileNotFoundError:
        return None
    return words if allowed else None


class FleetTest(harness.EndToEndTest):
    coordinator_arguments = ()

    def setUp(self):
        super().setUp()
        self.processes = {}
        self.addCleanup(self.kill_all)
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()
        self.address, self.http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir",
                                              self.folder / "state", "--checkpoint-dir", self.checkpoints,
                                              *self.coordinator_arguments)

    def kill_all(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def launch(self, title, program, *arguments, before=()):
        server = server_process.Server(harness.BIN / program, self.folder, title, *arguments, before=before)
        server.spawn()
        self.processes[title] = server.process
        harness.wait_until(f"{title} serves", server.serves)
        return server.address, server.http_address

    def launch_stage(self, name, title=None, before=(), arguments=()):
        return self.launch(title or name, "stagecoach-stage", "--name", name, "--coordinator", self.address,
                           "--threads", 1, *arguments, before=before)

    def own_disk(self, *paths):
        """Words that run a command on a machine that has empty disks of its own in the place of these folders."""
        words = own_mounts()
        if words is None:
            self.skipTest("no mount namespaces here: unshare --mount is not allowed")
        script = 'while [ "$1" != -- ]; do mount -t tmpfs none "$1"; shift; done; shift; exec "$@"'
        return [*words, "sh", "-ec", script, "sh", *map(str, paths), "--"]

    def submit(self, job_id="job", **changes):
        submitted = self.cli("submit", self.job_file(**changes), "--id", job_id, "--detach", "--address", self.address)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)

    def job(self, job_id="job"):
        return fetch(self.http, f"/api/v1/jobs/{job_id}")[1]

    def ended(self, job_id, seconds=60):
        """The job, once it has ended."""
        states = ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED")
        harness.wait_until(f"{job_id} has ended", lambda: self.job(job_id)["state"] in states, seconds)
        return self.job(job_id)

    def log(self, title):
        return (self.folder / f"{title}.log").read_text(errors="replace")
