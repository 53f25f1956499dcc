"""A cluster with mutual TLS whose roles have certificates of their own, a job that trains on it, and calls by any of them.

The calls need python3-grpcio and python3-protobuf (Debian's packages); the messages are made by protoc from proto/.
"""
import hashlib
import json
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import server_process  # noqa: E402
import waiting  # noqa: E402

HELD = "held"
SPEC = {
    "name": HELD, "seed": 1,
    "model": {"gpt": {"layers": 4, "width": 64, "heads": 4, "context": 64, "vocabulary": 256, "dropout": 0.0}},
    "data": {"text": {"path": "input.txt"}},
    "training": {"steps": 1000000, "batch_size": 8, "micro_batches": 4, "optimizer": {"adamw": {}},
                 "learning_rate": {"constant": {"peak": 3e-4}}},
    "pipeline": {"stages": 2}, "checkpoint": {"every_steps": 0},
}
ROLES = {"coordinator": "coordinator", "stage": "stage-0", "user": "ann", "other user": "bob", "operator": "client"}


def messages(folder):
    """The generated modules by name: job, stage, fleet, link, model."""
    sources = sorted((ROOT / "proto" / "stagecoach" / "v1").glob("*.proto"))
    subprocess.run(["protoc", "-I", ROOT / "proto", "--python_out", folder, *sources], check=True)
    sys.path.insert(0, str(folder))
    import importlib
    return {source.stem: importlib.import_module(f"stagecoach.v1.{source.stem}_pb2") for source in sources}


class Cluster:
    """`with Cluster(programs) as cluster`: everything of it ends and goes with the block."""

    def __init__(self, programs, limits=None, stages=2, roots=True, tokens=False):
        self.programs, self.limits, self.roots = programs, limits, roots
        self._temporary = tempfile.TemporaryDirectory(prefix="stagecoach-attacks-")
        self.folder = pathlib.Path(self._temporary.name)
        self.data = self.folder / "data"
        self.data.mkdir()
        (self.data / "input.txt").write_text("To be held, or not to be held. " * 4000)
        self.certs = self.folder / "certs"
        names = ["coordinator", *(f"stage-{i}" for i in range(stages)), "user:ann", "user:bob", "client"]
        subprocess.run([programs / "stagecoach", "certs", self.certs, *names], check=True, capture_output=True)
        token_file = self.folder / "tokens"
        token_file.write_text(f"cat {hashlib.sha256(b'a token').hexdigest()}\n")
        token_file.chmod(0o600)
        self.coordinator = self.server("stagecoach-coordinator", "coordinator", "--state-dir", self.folder / "state",
                                       *(["--token-file", token_file] if tokens else []))
        self.stages, self._channels, self._count = [], [], stages

    def restart_coordinator(self):
        """On its port, as stages and clients know it."""
        address = self.coordinator.address
        self.coordinator.kill()
        self.coordinator.serve_on(address)

    def __enter__(self):
        self.coordinator.start()
        for number in range(self._count):
            self.add_stage(f"stage-{number}")
        return self

    def __exit__(self, *_):
        for channel in self._channels:
            channel.close()
        for server in [*self.stages, self.coordinator]:
            server.kill()
        self._temporary.cleanup()

    def tls(self, name):
        return ["--grpc-use-ssl", "--grpc-server-cert", self.certs / name / "tls.crt", "--grpc-server-key",
                self.certs / name / "tls.key", "--grpc-root-cert", self.certs / name / "ca.pem"]

    def server(self, program, name, *arguments):
        before = ["prlimit", f"--nofile={self.limits}:{self.limits}"] if self.limits else []
        return server_process.Server(self.programs / program, self.folder, name, *self.tls(name), *arguments, before=before)

    def add_stage(self, name, *arguments):
        roots = ["--data-root", self.data] if self.roots else []
        stage = self.server("stagecoach-stage", name, "--name", name, "--coordinator", self.coordinator.address, "--threads",
                            "1", *roots, *arguments)
        self.stages.append(stage)
        stage.start()
        waiting.wait_until(f"{name} registers", lambda: f"registered as {name}" in stage.log(), 30)
        return stage

    def cli(self, role, *arguments, timeout=60, **more):
        """`stagecoach` as somebody of the role."""
        return subprocess.run([self.programs / "stagecoach", *self.tls(ROLES[role]), "--address", self.coordinator.address,
                               "--timeout", str(timeout), *map(str, arguments)], capture_output=True, text=True,
                              timeout=2 * timeout, **more)

    def submit(self, role="user", job_id=HELD, change=lambda spec: None, wait=False):
        spec = json.loads(json.dumps(SPEC))
        spec["name"] = job_id
        spec["data"]["text"]["path"] = str(self.data / "input.txt")
        change(spec)
        detach = [] if wait else ["--detach"]
        return self.cli(role, "-o", "ndjson", "submit", *detach, "--id", job_id, "-", input=json.dumps(spec))

    def train(self):
        submitted = self.submit()
        if submitted.returncode != 0:
            raise AssertionError(submitted.stderr)
        self.steps_more(5)
        return self

    def fetch(self, path, timeout=10, server=None):
        address = (server or self.coordinator).http_address
        with urllib.request.urlopen(f"http://{address}{path}", timeout=timeout) as answer:
            return answer.read()

    def job(self, job_id=HELD):
        try:
            return json.loads(self.fetch(f"/api/v1/jobs/{job_id}"))
        except (urllib.error.URLError, OSError):
            return {}

    def step(self):
        return int(self.job().get("step", 0))

    def steps_more(self, steps, seconds=60):
        """Waits until the job has done so many more."""
        first = self.step()
        waiting.wait_until(f"{steps} more steps of the job", lambda: self.step() >= first + steps, seconds)

    def untouched(self):
        """Whether the job trains on and never had to recover, and these two in words."""
        try:
            self.steps_more(5, 30)
            trains = True
        except AssertionError:
            trains = False
        job = self.job()
        recoveries = int(job.get("recoveries", -1))
        words = f"the job {'trains on' if trains else 'stands'}, {recoveries} recoveries"
        if recoveries != 0:
            words += "".join(f" ({reason[:200]})" for reason in self.recovery_reasons())
        return trains and recoveries == 0, words

    def recovery_reasons(self):
        records, after = [], 0
        while True:
            page = json.loads(self.fetch(f"/api/v1/jobs/{HELD}/records?after={after}"))
            records += page.get("records", [])
            if page.get("complete", True) or not page.get("records"):
                return [str(record["recovery"]) for record in records if "recovery" in record]
            after = int(records[-1]["number"])

    def channel(self, role, address=None):
        import grpc
        folder = self.certs / ROLES.get(role, role)
        credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes(), (folder / "tls.key").read_bytes(),
                                                   (folder / "tls.crt").read_bytes())
        channel = grpc.secure_channel(address or self.coordinator.address, credentials,
                                      options=[("grpc.use_local_subchannel_pool", 1)])
        self._channels.append(channel)
        return channel

    def raw(self, server):
        host, port = server.address.split(":")
        return socket.create_connection((host, int(port)), timeout=20)


def call(channel, service, method, request=b"", timeout=20):
    """The answer's bytes; grpc.RpcError otherwise. The request may be bytes or a message."""
    data = request if isinstance(request, bytes) else request.SerializeToString()
    return channel.unary_unary(f"/stagecoach.v1.{service}/{method}", request_serializer=lambda _: data,
                               response_deserializer=bytes)(None, timeout=timeout)


def code_of(channel, service, method, request=b"", timeout=20):
    """The code's name and the text, ("OK", "") without an error."""
    import grpc
    try:
        call(channel, service, method, request, timeout)
        return "OK", ""
    except grpc.RpcError as error:
        return error.code().name, error.details()


def crc32c(data):
    """Castagnoli's, as the checksum fields of messages have it."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def checked(message):
    """The message with its checksum."""
    message.ClearField("checksum")
    message.checksum = crc32c(message.SerializeToString(deterministic=True))
    return message


def resident(server, peak=False):
    """MiB."""
    key = "VmHWM" if peak else "VmRSS"
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith(key)).split()[1]) / 1024


def raise_descriptors():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
