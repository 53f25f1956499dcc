"""Data travels from the client to the cluster: stages that may read no file of their machines train on it."""
import json
import os
import signal
import subprocess

import fleet
import harness

LARGE = 192 << 20


class DataSets(fleet.FleetTest):
    def stages(self, *arguments):
        """On machines of their own, which have neither the client's files nor the coordinator's."""
        for name in ("stage-0", "stage-1"):
            cache = self.folder / f"cache-{name}"
            cache.mkdir()
            self.launch_stage(name, arguments=("--cache-dir", cache, "--data-root", self.folder / "empty", *arguments))

    def setUp(self):
        super().setUp()
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "client-cache")
        (self.folder / "empty").mkdir()
        (self.folder / "client").mkdir()
        (self.folder / "client" / "input.txt").write_text(harness.TEXT)

    def client_job(self, file="job.json", **changes):
        """A job file in the client's folder."""
        return self.job_file(f"client/{file}", **changes)

    def data(self, *arguments):
        done = self.cli("data", *arguments, "--address", self.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def submit_file(self, path, job_id):
        return self.cli("submit", path, "--id", job_id, "--detach", "--address", self.address, timeout=120)

    def trained(self, path, job_id):
        """The digest of a job that trained, and what its client said."""
        submitted = self.submit_file(path, job_id)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        ended = self.ended(job_id)
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended)
        return ended["weights_digest"], submitted.stderr

    def sets(self):
        return json.loads(self.data("list", "-o", "json").stdout).get("data_sets", [])

    def parts(self):
        """Files of uploads, complete or not."""
        return [path for path in (self.folder / "state" / "data" / "parts").glob("*/*") if path.is_file()]

    def test_a_job_brings_its_data_once(self):
        self.stages()
        job = self.client_job()
        local = self.run_job(job, 2, "alone").digest()
        digest, said = self.trained(job, "first")
        self.assertEqual(digest, local)
        self.assertIn("uploads ", said)
        again = self.submit_file(job, "first")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("the cluster has the data", again.stderr)
        digest, said = self.trained(self.client_job("other.json", name="other"), "second")
        self.assertEqual(digest, local)
        self.assertIn("the cluster has the data", said)
        self.assertEqual(len(self.sets()), 1)
        changed = self.folder / "client" / "input.txt"
        changed.write_text(harness.TEXT + "One more. " * 50)
        digest, said = self.trained(job, "third")
        self.assertNotEqual(digest, local)
        self.assertEqual(len(self.sets()), 2)

    def test_a_named_set_trains_jobs_and_goes_only_when_none_reads_it(self):
        self.stages()
        corpus = self.folder / "corpus"
        (corpus / "de").mkdir(parents=True)
        (corpus / "de" / "all.txt").write_text(harness.TEXT)
        (corpus / ".git").write_text("left out")
        self.assertEqual(self.data("put", corpus, "--name", "corpus").stdout, "corpus\n")
        shown = json.loads(self.data("show", "corpus", "-o", "json").stdout)
        self.assertEqual([entry["path"] for entry in shown["entries"]], ["de/all.txt"])
        local = self.run_job(self.client_job(), 2, "alone").digest()
        named = self.client_job("named.json", data={"dataset": "corpus", "text": {"path": "de/all.txt"}})
        digest, said = self.trained(named, "named")
        self.assertEqual(digest, local)
        self.assertNotIn("uploads", said)

        long = self.client_job("long.json", training={"steps": 100000},
                               data={"dataset": "corpus", "text": {"path": "de/all.txt"}})
        self.assertEqual(self.submit_file(long, "long").returncode, 0)
        refused = self.cli("data", "remove", "corpus", "--yes", "--address", self.address)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("long", refused.stderr)
        self.assertEqual(self.cli("cancel", "long", "--address", self.address).returncode, 0)
        self.ended("long")
        self.data("remove", "corpus", "--yes")
        self.assertEqual(self.sets(), [])
        gone = self.submit_file(named, "late")
        self.assertNotEqual(gone.returncode, 0)
        self.assertIn("corpus", gone.stderr)

    def test_an_upload_that_was_cut_goes_on(self):
        large = self.folder / "client" / "large.bin"
        for _ in range(harness.STRIKES):
            large.write_bytes(os.urandom(1 << 20) * (LARGE >> 20))
            before = set(self.parts())
            client = subprocess.Popen([str(harness.CLI), "data", "put", str(large), "--address", self.address],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            harness.wait_until("the upload has begun or is over",
                               lambda: client.poll() is not None or self.begun(before), 120)
            client.send_signal(signal.SIGKILL)
            cut = client.wait() == -signal.SIGKILL and self.begun(before)
            if cut:
                break
        self.assertTrue(cut, "uploads were through before they were cut")
        begun = cut[0].stat()
        self.assertLess(begun.st_size, LARGE)
        set_id = self.data("put", large).stdout.strip()
        shown = json.loads(self.data("show", set_id, "-o", "json").stdout)
        self.assertEqual(shown["entries"], [{"path": "large.bin", "bytes": str(LARGE)}])
        complete = next(path for path in self.parts() if path.stat().st_size == LARGE and path not in before)
        self.assertEqual(complete.stat().st_ino, begun.st_ino, "the same file went on")

    def begun(self, before):
        """Parts that are not complete and have some bytes."""
        found = [path for path in self.parts() if path.suffix == ".part" and path not in before]
        return [path for path in found if path.exists() and path.stat().st_size >= 4 << 20]

    def test_a_part_that_the_disk_damaged_is_uploaded_again(self):
        self.data("put", self.folder / "client" / "input.txt", "--name", "kept")
        text = next(path for path in self.parts() if path.stat().st_size == len(harness.TEXT.encode()))
        with text.open("r+b") as file:
            file.write(b"#")
        self.stages()
        job = self.client_job()
        submitted = self.submit_file(job, "damaged")
        self.assertIn("the cluster has the data", submitted.stderr)
        ended = self.ended("damaged", 120)
        self.assertEqual(ended["state"], "JOB_STATE_FAILED", ended)
        self.assertIn("stagecoach submit --data-again", ended["message"])
        again = self.cli("submit", job, "--id", "again", "--detach", "--data-again", "--address", self.address)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.ended("again")["state"], "JOB_STATE_SUCCEEDED")
        self.assertEqual(self.ended("again")["weights_digest"], self.run_job(job, 2, "alone").digest())
        links = {path.stat().st_ino for path in (self.folder / "state" / "data" / "sets").glob(f"*/{text.name}")}
        self.assertEqual(links, {text.stat().st_ino}, "both sets have the new part")

    def test_a_job_that_is_there_with_other_data_is_refused_before_they_travel(self):
        job = self.client_job()
        self.assertEqual(self.submit_file(job, "there").returncode, 0)
        before = set(self.parts())
        (self.folder / "client" / "input.txt").write_text(harness.TEXT + "One more. " * 50)
        refused = self.submit_file(job, "there")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("data.text.path", refused.stderr)
        self.assertIn("choose another --id", refused.stderr)
        self.assertEqual(set(self.parts()), before)

    def test_what_a_client_may_not_name(self):
        for path, words in (("none.txt", "No such file"), ("..", "a folder, not a file")):
            refused = self.submit_file(self.client_job(data={"text": {"path": path}}), "refused")
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertRegex(refused.stderr, r"job.json:\d+:\d+: data.text.path: ")
            self.assertIn(words, refused.stderr)
        for place, path in (({"dataset": "corpus"}, "../x"), ({"dataset": "corpus"}, "/x"), ({"on_stages": "/srv"}, "/x"),
                            ({"dataset": "corpus", "on_stages": "/srv"}, "x"), ({"on_stages": "srv"}, "x")):
            refused = self.submit_file(self.client_job(data={**place, "text": {"path": path}}), "refused")
            self.assertEqual(refused.returncode, 2, refused.stderr)
        (self.folder / "client" / "a\nb").write_text(harness.TEXT)
        refused = self.cli("data", "put", self.folder / "client", "--address", self.address)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("control character", refused.stderr)
        self.assertEqual(self.sets(), [])

    def test_files_on_the_stages_machines(self):
        on_stages = self.folder / "on-stages"
        on_stages.mkdir()
        (on_stages / "input.txt").write_text(harness.TEXT)
        self.stages("--data-root", on_stages)
        local = self.run_job(self.client_job(), 2, "alone").digest()
        place = {"on_stages": str(on_stages), "text": {"path": "input.txt"}}
        job = self.client_job("there.json", data=place)
        digest, said = self.trained(job, "there")
        self.assertEqual(digest, local)
        self.assertEqual(self.sets(), [])
        self.assertEqual(self.run_job(job, 2, "here").digest(), local, "`local` joins the folder")
        hidden = self.client_job("hidden.json", data={"on_stages": str(self.folder / "client"), "text": {"path": "input.txt"}})
        self.assertEqual(self.submit_file(hidden, "hidden").returncode, 0)
        ended = self.ended("hidden")
        self.assertEqual(ended["state"], "JOB_STATE_FAILED")
        self.assertIn("--data-root", ended["message"])

    def test_a_folder_of_weights_stands_alone(self):
        """The tokenizer of a job is in the cluster; who fetches weights gets it too."""
        self.stages()
        train = self.cli("tokenizer", "train", "--input", self.folder / "client" / "input.txt", "--vocabulary", 300,
                         "--model", "bpe", "--output", self.folder / "client" / "pieces.model")
        self.assertEqual(train.returncode, 0, train.stderr)
        job = self.client_job(model={"gpt": {"vocabulary": 300}},
                              data={"text": {"path": "input.txt", "tokenizer": "pieces.model"}})
        self.trained(job, "pieces")
        fetched = self.folder / "weights"
        self.assertEqual(self.cli("export", "pieces", "--to", fetched, "--address", self.address).returncode, 0)
        self.assertIn("pieces.model", {path.name for path in fetched.iterdir()})
        (self.folder / "client" / "pieces.model").unlink()
        nobody = ("--address", "127.0.0.1:1")
        alone = self.cli("generate", fetched, "--prompt", "The", "--tokens", 4, "--temperature", 0, *nobody)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        by_id = self.cli("generate", "pieces", "--prompt", "The", "--tokens", 4, "--temperature", 0, "--address", self.address)
        self.assertEqual((by_id.returncode, by_id.stdout), (0, alone.stdout), by_id.stderr)


if __name__ == "__main__":
    harness.main()
