"""docs/clients.md holds: reflection from Python, and its JSON job, against a live cluster. clients/python has its own tests."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import pypi  # noqa: E402

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "bin").resolve()
pypi.enter(BIN.parent, "clients", ["grpcio==1.62.3", "grpcio-reflection==1.62.3"])

import servers  # noqa: E402

EXAMPLES = ROOT / "examples" / "python"


class Clients(servers.ServersTest):
    def setUp(self):
        super().setUp()
        self.launch("stagecoach-coordinator", "coordinator", "--state-dir", self.folder / "state")
        self.coordinator = self.address("coordinator")
        for name in ("stage-0", "stage-1"):
            self.launch("stagecoach-stage", name, "--name", name, "--coordinator", self.coordinator, "--threads", "1")
        self.text = self.folder / "input.txt"

    def example(self, name, *arguments):
        return subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, arguments)], capture_output=True, text=True,
                              timeout=120)

    def test_reflection(self):
        listed = self.example("reflect.py", self.coordinator)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for line in ("grpc.health.v1.Health", "stagecoach.v1.JobService", "  SubmitJob(SubmitJobRequest) returns (SubmitJobResponse)",
                     "  WatchJob(WatchJobRequest) returns (stream WatchJobResponse)"):
            self.assertIn(line + "\n", listed.stdout)
        text = (ROOT / "docs" / "clients.md").read_text()
        request = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1))
        request["spec"]["data"]["text"]["path"] = str(self.text)
        submitted = self.example("reflect.py", self.coordinator, "stagecoach.v1.JobService/SubmitJob", json.dumps(request))
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.assertEqual(json.loads(submitted.stdout)["job"]["id"], "from-json")
        watched = self.example("reflect.py", self.coordinator, "stagecoach.v1.JobService/WatchJob", '{"id": "from-json"}')
        self.assertEqual(watched.returncode, 0, watched.stderr)
        self.assertIn("JOB_STATE_SUCCEEDED", watched.stdout)
        missing = self.example("reflect.py", self.coordinator, "stagecoach.v1.JobService/GetJob", '{"id": "nobody"}')
        self.assertIn("NOT_FOUND", missing.stderr)

    def test_an_example_without_a_connection_says_why(self):
        """Symptom: without certificates a call waited 10 s for a bare DEADLINE_EXCEEDED; reflect.py knew no TLS."""
        certs = self.folder / "certs"
        subprocess.run([str(BIN / "stagecoach"), "certs", str(certs), "coordinator", "client"], check=True, capture_output=True)
        own = certs / "coordinator"
        self.launch("stagecoach-coordinator", "secured", "--state-dir", self.folder / "secured-state", "--grpc-use-ssl",
                    "--grpc-server-cert", own / "tls.crt", "--grpc-server-key", own / "tls.key", "--grpc-root-cert",
                    own / "ca.pem")
        secured = self.address("secured").replace("127.0.0.1", "localhost")
        self.refused(self.example("reflect.py", secured), "speaks TLS; give --certs FOLDER")
        self.refused(self.example("reflect.py", self.coordinator, "--certs", certs / "client"), "speaks no TLS; leave --certs")
        self.refused(self.example("reflect.py", secured, "--certs", self.folder), "wants a folder with ca.pem")
        self.refused(self.example("reflect.py", "127.0.0.1:1"), "Connection refused")
        self.refused(self.example("reflect.py", "http://127.0.0.1:8000"), "want host:port of a gRPC port")
        listed = self.example("reflect.py", "--certs", certs / "client", secured)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("stagecoach.v1.JobService\n", listed.stdout)
        self.refused(self.example("reflect.py", self.coordinator, "stagecoach.v1.JobService/GetJbo"), "no such method")
        self.refused(self.example("reflect.py", self.coordinator, "stagecoach.v1.JobService/GetJob", "{"), "the request is no")

    def refused(self, result, pattern):
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(pattern, result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    def test_reflection_and_health_of_a_stage(self):
        stage = self.address("stage-0")
        listed = self.example("reflect.py", stage)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for line in ("grpc.health.v1.Health", "stagecoach.v1.LinkService", "stagecoach.v1.StageService",
                     "  GetStatus(GetStatusRequest) returns (GetStatusResponse)"):
            self.assertIn(line + "\n", listed.stdout)
        checked = self.example("reflect.py", stage, "grpc.health.v1.Health/Check", '{"service": "readiness"}')
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(json.loads(checked.stdout), {"status": "SERVING"})


if __name__ == "__main__":
    servers.harness.main()
