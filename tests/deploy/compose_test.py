"""The composition for real: image built, cluster run, stages killed, same bits, metrics and alerts seen.

Needs an engine that runs, or root with docker.io, docker-compose and debootstrap; otherwise exit code 77 and the
reason. Images hold the programs of build/bin (target `prebuilt`): compiling inside would take minutes. Grafana's
image cannot be had without a registry; monitoring_test.py checks what it is given.
"""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from engine import BASE_IMAGE, Engine, NoEngine, find
from server_process import free_port
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "bin").resolve()
PROGRAMS = ("stagecoach", "stagecoach-coordinator", "stagecoach-stage", "stagecoach-train-tokenizer")
JOB = {
    "name": "composed", "seed": 7,
    "model": {"gpt": {"layers": 2, "width": 64, "heads": 4, "context": 64, "vocabulary": 256, "dropout": 0.1}},
    "data": {"on_stages": "/data", "text": {"path": "input.txt"}},
    "training": {"steps": 500, "batch_size": 16, "micro_batches": 4, "optimizer": {"adamw": {}},
                 "learning_rate": {"cosine": {"peak": 3e-3, "warmup_steps": 10, "final": 3e-4}}},
    "pipeline": {"stages": 2, "schedule": "gpipe", "rematerialization": "always", "partition": "uniform",
                 "replacement_timeout_seconds": 300},
    "checkpoint": {"every_steps": 50, "keep": 3},
}


def open_files():
    """What the composition asks for, or as much as an engine without more rights than ours may give."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return 65536 if most == resource.RLIM_INFINITY else min(65536, most)


def too_long(*_):
    raise AssertionError("not done within nineteen minutes")


class Composition(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stagecoach-compose-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.compose_program = find("docker-compose")
        if self.compose_program is None:
            self.skipTest("no docker-compose: apt-get install docker-compose")
        try:
            self.engine = Engine(BIN.parent / "deploy").__enter__()
        except NoEngine as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.engine.__exit__)
        self.project = f"stagecoach-test-{os.getpid()}"
        self.ports = {name: free_port() for name in ("STAGECOACH_HTTP_PORT", "STAGECOACH_GRPC_PORT", "PROMETHEUS_PORT")}
        self.environment = dict(
            self.engine.environment, STAGECOACH_IMAGE=f"{self.project}:programs",
            PROMETHEUS_IMAGE=f"{self.project}:prometheus", STAGECOACH_CERTS=str(self.folder / "certs"),
            STAGECOACH_DATA=str(self.folder / "data"), STAGECOACH_JOBS=str(self.folder / "jobs"),
            COMPOSE_PROFILES="stages-2", STAGECOACH_OPEN_FILES=str(open_files()), **{name: str(port) for name, port in self.ports.items()})
        self.build_images()
        self.write_inputs()

    def build_images(self):
        started = time.monotonic()
        context = self.folder / "context"
        (context / "build" / "bin").mkdir(parents=True)
        (context / "deploy").mkdir()
        for name in PROGRAMS:
            # As the image's own build does.
            subprocess.run(["strip", "-o", str(context / "build" / "bin" / name), str(BIN / name)], check=True)
        shutil.copy(ROOT / "deploy" / "Dockerfile", context / "deploy" / "Dockerfile")
        self.addCleanup(lambda: self.engine.run("image", "rm", "-f", f"{self.project}:programs",
                                                f"{self.project}:prometheus", check=False))
        self.engine.build(context, context / "deploy" / "Dockerfile", f"{self.project}:programs", "prebuilt",
                          BASE_IMAGE=BASE_IMAGE)
        # Debian's Prometheus under the paths of the upstream image.
        image = self.folder / "prometheus"
        image.mkdir()
        for name in ("prometheus", "promtool"):
            shutil.copy(shutil.which(name), image / name)
        (image / "Dockerfile").write_text(
            f"FROM {BASE_IMAGE}\nCOPY prometheus promtool /bin/\nRUN install -d -o 65534 -g 65534 /prometheus\n"
            'ENTRYPOINT ["/bin/prometheus"]\n')
        self.engine.build(image, image / "Dockerfile", f"{self.project}:prometheus")
        megabytes = int(self.engine.run("image", "inspect", "-f", "{{.Size}}", f"{self.project}:programs").stdout) / 1e6
        base = int(self.engine.run("image", "inspect", "-f", "{{.Size}}", BASE_IMAGE).stdout) / 1e6
        print(f"image: {megabytes:.0f} MB, of which {base:.0f} MB Debian; built in {time.monotonic() - started:.0f} s")
        self.assertLess(megabytes - base, 165, "the image grew")  # 36 MB are ICU's tables

    def write_inputs(self):
        for name in ("data", "jobs"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "data" / "input.txt").write_text("A coach that loses a wheel arrives all the same. " * 400)
        (self.folder / "jobs" / "job.json").write_text(json.dumps(JOB))
        subprocess.run([str(BIN / "stagecoach"), "certs", "--owner", "65532", str(self.folder / "certs"),
                        "coordinator", "client", *(f"stage-{i}" for i in range(8))], check=True, capture_output=True)

    def compose(self, *arguments, check=True, timeout=180):
        result = subprocess.run([self.compose_program, "-p", self.project, *arguments], cwd=ROOT, env=self.environment,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
        if check and result.returncode != 0:
            raise AssertionError(f"compose {' '.join(arguments)}: {result.stdout[-2000:]}{result.stderr[-4000:]}"
                                 f"{self.logs()}")
        return result

    def logs(self):
        result = subprocess.run([self.compose_program, "-p", self.project, "logs", "--no-color", "--tail=15"], cwd=ROOT,
                                env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return "\n" + result.stdout[-6000:]

    def container(self, service):
        """Of this service, running or not."""
        return self.compose("ps", "-q", service).stdout.split()[0]

    def inspect(self, service, template):
        return self.engine.run("inspect", "-f", template, self.container(service)).stdout.strip()

    def submit(self, job_id):
        """The job followed by a client in a container of its own."""
        return subprocess.Popen(
            [self.compose_program, "-p", self.project, "run", "--rm", "-T", "client", "-o", "ndjson", "submit", "--id",
             job_id, "/jobs/job.json"], cwd=ROOT, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def query(self, expression):
        url = f"http://127.0.0.1:{self.ports['PROMETHEUS_PORT']}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=60) as reply:
            return json.load(reply)["data"]["result"]

    def start(self):
        self.addCleanup(lambda: self.compose("down", "-v", "--remove-orphans", "-t", "5", check=False))
        self.compose("up", "-d", "--no-build", "coordinator", "stage-0", "stage-1", "prometheus")
        for service in ("coordinator", "stage-0", "stage-1", "prometheus"):
            wait_until(f"{service} healthy{self.logs()}",
                       lambda: self.inspect(service, "{{.State.Health.Status}}") == "healthy", 180)
        wait_until("three targets up", lambda: len(self.query('up{job=~"stagecoach-.+"} == 1')) == 3, 120)

    def run_calm(self):
        client = self.submit("calm")
        out, errors = client.communicate(timeout=300)
        self.assertEqual(client.returncode, 0, errors + self.logs())
        return json.loads(out.splitlines()[-1])["weights_digest"]

    def run_disturbed(self):
        """stage-1's container is killed and stays away until the alert fires; stage-0's process dies in its own."""
        crash_stage_0, stage_1 = self.prepare_crash("stage-0"), self.container("stage-1")
        client = self.submit("disturbed")
        self.addCleanup(client.kill)
        errors = []
        drain = threading.Thread(target=lambda: errors.extend(client.stderr))
        drain.start()
        events, phase = [], "before"
        for line in client.stdout:
            event = json.loads(line)
            events.append(event["event"])
            step = event.get("step", 0)
            if phase == "before" and event["event"] == "step" and step >= 60:
                phase = "stage-1 killed"
                self.engine.run("kill", stage_1)
                wait_until("the alert about stage-1", lambda: self.query(
                    'ALERTS{alertname="StagecoachStageLost",stage="stage-1",alertstate="firing"}'), 180)
                wait_until("the job counted as running", lambda: self.query("stagecoach_jobs{state='RUNNING'} == 1"), 60)
                self.compose("start", "stage-1")
            elif phase == "stage-1 killed" and event["event"] == "step" and step >= 250:
                phase = "stage-0 crashed"
                # As a crash: the engine sees a process of its own end, and the restart policy applies.
                crash_stage_0()
        drain.join()
        client.stdout.close()
        client.stderr.close()
        self.assertEqual((client.wait(timeout=30), phase), (0, "stage-0 crashed"), "".join(errors)[-2000:] + self.logs())
        self.assertGreaterEqual(events.count("recovery"), 2)
        self.assertGreaterEqual(int(self.inspect("stage-0", "{{.RestartCount}}")), 1)
        return event["weights_digest"]

    def prepare_crash(self, service):
        """What kills the service's process at once: on a busy machine an exec takes longer than the rest of the job."""
        script = ('echo ready; read -r _; for p in /proc/[0-9]*; do read -r c < $p/comm;'
                  ' [ "$c" = stagecoach-stag ] && kill -9 ${p#/proc/}; done')
        process = self.engine.start("exec", "-i", self.container(service), "sh", "-c", script)
        self.addCleanup(lambda: (process.stdin.close(), process.stdout.close(), process.kill(), process.wait()))
        self.assertEqual(process.stdout.readline(), "ready\n")

        def crash():
            process.stdin.write("now\n")
            process.stdin.flush()
        return crash

    def check_hardening(self):
        for service in ("coordinator", "stage-0"):
            self.assertEqual(self.engine.run("exec", self.container(service), "id", "-u").stdout.strip(), "65532")
            refused = self.engine.run("exec", self.container(service), "touch", "/opt/stagecoach/x", check=False)
            self.assertIn("Read-only file system", refused.stderr)
        self.assertEqual(self.inspect("stage-0", "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}"),
                         f"{4 << 30} 512")
        stranger = self.engine.run("run", "--rm", "--network", f"{self.project}_cluster", f"{self.project}:programs",
                                   "stagecoach", "--address", "coordinator:8001", "list", check=False)
        self.assertEqual(stranger.returncode, 4)
        self.assertIn("speaks TLS only", stranger.stderr)

    def check_metrics(self):
        wait_until("the recorded utilisation", lambda: self.query("stage:stagecoach_stage_utilization:ratio_rate1m"), 60)
        wait_until("both jobs counted", lambda: self.query("stagecoach_jobs_finished_total{state='SUCCEEDED'} == 2"), 60)
        # A stage has none from the scrape that it was down for to the next.
        wait_until("build_info of all three", lambda: {r["metric"]["instance"] for r in self.query("stagecoach_build_info")} ==
                   {"coordinator:8002", "stage-0:8102", "stage-1:8102"}, 60)
        page = f"http://127.0.0.1:{self.ports['STAGECOACH_HTTP_PORT']}"
        with urllib.request.urlopen(f"{page}/api/v1/jobs", timeout=60) as reply:
            self.assertEqual(len(json.load(reply)["jobs"]), 2)
        with self.assertRaises(urllib.error.HTTPError, msg="metrics have a port of their own") as refused:
            urllib.request.urlopen(f"{page}/metrics", timeout=60)
        refused.exception.close()
        self.assertEqual(refused.exception.code, 404)

    def test_composition(self):
        started = time.monotonic()
        self.start()
        print(f"healthy after {time.monotonic() - started:.0f} s")
        calm = self.run_calm()
        self.assertEqual(self.run_disturbed(), calm)
        print(f"digest {calm} both times")
        self.check_metrics()
        self.check_hardening()
        self.compose("stop", "-t", "60")
        for service in ("coordinator", "stage-0", "stage-1"):
            self.assertEqual(self.inspect(service, "{{.State.ExitCode}}"), "0", f"{service} after SIGTERM")
        print(f"composition: {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    # Before ctest's own limit, which would leave no time to clean up.
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(1140)
    outcome = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    for _, reason in outcome.skipped:
        print(f"skipped: {reason}")
    sys.exit(77 if outcome.skipped else 0 if outcome.wasSuccessful() else 1)
