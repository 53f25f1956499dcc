"""Machines that share neither a folder nor a network interface, by the README's "Several machines": mutual TLS, a machine that
dies with its disk, an empty one in its place, data from the laptop and the weights on it. Each machine is a network and a mount
namespace."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import harness

ADDRESSES = {"coordinator": "10.0.0.1", "stage-0": "10.0.0.10", "stage-1": "10.0.0.11", "stage-2": "10.0.0.12",
             "laptop": "10.0.0.20"}
# Nothing of the test's folders but the machine's own disk.
ON_ITS_DISK = 'mount -t tmpfs none "$1"; mkdir "$1/disk"; mount --bind "$2" "$1/disk"; mount -t tmpfs none "${2%/*}"; cd "$1/disk"; ' \
              "shift 2; exec \"$@\""
TLS = {"STAGECOACH_TLS": "true", "STAGECOACH_TLS_CA": "ca.pem", "STAGECOACH_TLS_CERT": "tls.crt", "STAGECOACH_TLS_KEY": "tls.key"}


class Network:
    """A switch, and a network namespace a machine. Nothing of it is in the network of this machine."""

    def __init__(self):
        self.prefix = f"sc{os.getpid()}"
        self.made = []
        self.switch = self.add("switch")
        self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.switch, "link", "set", "bridge", "up")

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=20)

    def add(self, name):
        namespace = f"{self.prefix}-{name}"
        self.ip("netns", "add", namespace)
        self.made.append(namespace)
        return namespace

    def machine(self, name, address):
        namespace = self.add(name)
        self.ip("-n", self.switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        self.ip("-n", self.switch, "link", "set", name, "master", "bridge", "up")
        self.ip("-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            self.ip("-n", namespace, "link", "set", device, "up")
        return namespace

    def remove(self):
        for namespace in self.made:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, timeout=20)


class Machines(harness.EndToEndTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or shutil.which("ip") is None:
            self.skipTest("network namespaces need root and the program ip")
        self.disks = pathlib.Path(tempfile.mkdtemp(prefix="stagecoach-disks-"))
        self.addCleanup(shutil.rmtree, self.disks, ignore_errors=True)
        self.processes = {}
        try:
            self.network = Network()
            self.addCleanup(self.network.remove)
            self.namespaces = {name: self.network.machine(name, address) for name, address in ADDRESSES.items()}
            for name in ADDRESSES:
                (self.disks / name).mkdir()
            self.run_on("laptop", "true")
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no network namespaces here: {error.stderr}")
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def words(self, name, *command):
        return ["ip", "netns", "exec", self.namespaces[name], "unshare", "--mount", "sh", "-ec", ON_ITS_DISK, "sh",
                str(self.folder), str(self.disks / name), *map(str, command)]

    def run_on(self, name, *command):
        """What it prints, of a command that succeeds."""
        environment = os.environ | {"STAGECOACH_CONFIG": "config.yaml"}
        done = subprocess.run(self.words(name, *command), capture_output=True, text=True, env=environment,
                              timeout=120 * harness.TIME_FACTOR)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    def serve(self, name, program, *arguments):
        """Starts a server with the certificate of its machine, which somebody has copied there."""
        for file in (self.disks / "laptop" / "certs" / name).iterdir():
            shutil.copy(file, self.disks / name)
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(self.words(name, harness.BIN / program, *arguments), stdout=log, stderr=log,
                                                    env=os.environ | TLS)

    def stage(self, name):
        self.serve(name, "stagecoach-stage", "--listen", f"{ADDRESSES[name]}:8101", "--coordinator", "10.0.0.1:8001", "--name",
                   name, "--threads", 1)

    def stagecoach(self, *arguments):
        return self.run_on("laptop", harness.CLI, *arguments)

    def test_a_machine_dies_with_its_disk_and_the_weights_come_to_the_laptop(self):
        self.stagecoach("certs", "certs", "coordinator=10.0.0.1", "stage-0=10.0.0.10", "stage-1=10.0.0.11", "user:ann")
        self.serve("coordinator", "stagecoach-coordinator", "--listen", "10.0.0.1:8001")
        self.stage("stage-0")
        self.stage("stage-1")
        self.stagecoach("config", "set", "lab", "--coordinator", "10.0.0.1:8001", "--certs", "certs/ann")
        job = self.job_file(training={"steps": 400}, checkpoint={"every_steps": 10, "keep": 2})
        shutil.copy(job, self.disks / "laptop" / "job.yaml")
        (self.disks / "laptop" / "input.txt").write_text(harness.TEXT)
        job_id = self.struck()
        self.stagecoach("wait", job_id)
        self.assertGreaterEqual(int(json.loads(self.stagecoach("-o", "json", "describe", job_id)).get("recoveries", 0)), 1)
        told = json.loads(self.stagecoach("-o", "json", "export", job_id, "--to", "weights"))
        files = {file.name for file in (self.disks / "laptop" / "weights").iterdir()}
        self.assertEqual(files, {"model.safetensors", "stagecoach.json"})

        alone = self.run_job(self.job_file("alone.json", training={"steps": 400}, checkpoint={"every_steps": 10, "keep": 2}),
                             2, "alone")
        self.assertEqual(told["weights_digest"], alone.digest())

    def struck(self):
        """The id of a job whose second machine died after a checkpoint. One that was through before is run again."""
        stage, other = "stage-1", "stage-2"
        for run in range(harness.STRIKES):
            job_id = f"run{run}"
            harness.wait_until("the job is taken", lambda: self.submits(job_id))
            saved = self.disks / "coordinator" / "stagecoach-state" / "checkpoints" / job_id
            harness.wait_until("a checkpoint", lambda: list(saved.glob("step-*/MANIFEST.json")), 60)
            self.processes[stage].kill()
            self.processes[stage].wait()
            ended = json.loads(self.stagecoach("-o", "json", "describe", job_id))["state"].endswith("SUCCEEDED")
            shutil.rmtree(self.disks / stage)
            (self.disks / stage).mkdir()
            self.stagecoach("certs", "certs", f"{other}={ADDRESSES[other]}")
            self.stage(other)
            if not ended:
                return job_id
            stage, other = other, stage
        self.fail(f"{harness.STRIKES} jobs were through before a machine died")

    def submits(self, job_id):
        try:
            self.stagecoach("submit", "job.yaml", "--id", job_id, "--detach")
            return True
        except subprocess.CalledProcessError as error:
            if error.returncode == 4:  # the coordinator does not serve yet
                return False
            self.fail(error.stderr)


if __name__ == "__main__":
    harness.main()
