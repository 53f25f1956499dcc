"""`stagecoach classify` and `segment` say of held-out pictures what the job's own evaluation said: as many are right. What
cannot be read is named, and the rest is answered.

How pictures become numbers and answers is tested by services/cli/pictures, what the files beside weights hold by checkpoint.
"""
import base64
import json
import os
import random
import signal
import struct
import subprocess
import urllib.request

import harness
import made_pictures

STEPS, TRAINED, HELD_OUT = 30, 60, 14  # pictures of a class
CLASSES = ("ape", "bee", "cow")


class TrainedPictures(harness.EndToEndTest):
    def write(self, path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def write_classes(self, channels):
        """Noise with a tint, which some pictures have of another class. Not of the network's size."""
        draws = random.Random(3)
        for part, count in (("train", TRAINED), ("test", HELD_OUT)):
            for label, name in enumerate(CLASSES):
                for i in range(count):
                    tint = label if draws.random() < 0.7 else draws.randrange(3)
                    height, width = 10 + i % 4, 12
                    pixels = [draws.randrange(80) + (90 if c == tint else 30 * tint)
                              for _ in range(height * width) for c in range(channels)]
                    self.write(self.folder / part / name / f"{i:02}.png",
                               made_pictures.png(height, width, channels, pixels))

    def job(self, name, model, data, batch=9):
        return self.job_file(f"{name}.json", name=name, data={"text": None, **data}, model={"gpt": None, **model},
                             training={"steps": STEPS, "batch_size": batch, "micro_batches": 3},
                             pipeline={"stages": 2}, checkpoint={"every_steps": 10},
                             evaluation={"every_steps": 15, "batches": 100})

    def reported(self, cluster):
        last = [event for event in cluster.events if event["event"] == "evaluation"][-1]
        self.assertEqual(last["step"], STEPS)
        return last["accuracy"]

    def answer(self, *arguments, code=0):
        done = self.cli(*arguments, "-o", "json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    def right(self, answer):
        return [one["classes"][0]["name"] in one["picture"].split("/") for one in answer["pictures"] if "classes" in one]

    def check_page(self, cluster, classified):
        """What the page shows of the run when it is over."""
        page = subprocess.Popen([str(harness.CLI), "ui", str(cluster.state_dir)], stdout=subprocess.PIPE, text=True,
                                start_new_session=True)
        try:
            address = page.stdout.readline().strip()
            with urllib.request.urlopen(address + "api/v1/jobs/classes/pictures?files=1", timeout=60) as reply:
                told = json.load(reply)
            with urllib.request.urlopen(address + "api/v1/jobs/classes/pictures", timeout=60) as reply:
                self.assertEqual(json.load(reply), {**told, "files": []})
        finally:
            os.killpg(page.pid, signal.SIGINT)
            page.communicate(timeout=30 * harness.TIME_FACTOR)
        self.assertEqual((told["step"], len(told["pictures"]), len(told["files"])), (str(STEPS), 24, 24))
        # classify goes by path; the held-out pictures of the job come from the classes in turn.
        in_turn = [classified[c * HELD_OUT + i] for i in range(HELD_OUT) for c in range(len(CLASSES))]
        for shown, file, one in zip(told["pictures"], told["files"], in_turn):
            self.assertEqual(CLASSES[shown["label"]], shown["label_name"])
            self.assertIn(shown["label_name"], one["picture"].split("/"))
            self.assertEqual((shown["answer"], shown["answer_name"]), (one["classes"][0]["class"], one["classes"][0]["name"]))
            self.assertAlmostEqual(shown["probability"], one["classes"][0]["probability"], places=6)
            self.assertEqual(struct.unpack(">II", base64.b64decode(file)[16:24]), (8, 8), "as the network sees it")

    def test_classify_agrees_with_the_evaluation(self):
        self.write_classes(3)
        layers = [{"convolution": {"out": 8, "kernel": [3, 3], "padding": [1, 1]}}, {"batch_norm": {}}, {"relu": {}},
                  {"flatten": {}}, {"linear": {"out": 3}}]
        job = self.job("classes", {"sequence": {"image": [8, 8, 3], "classes": 3, "layers": layers}},
                       {"image_folder": {"train": "train", "test": "test", "measure": True, "shorter_side": 9, "flip": True}})
        cluster = self.run_job(job)
        accuracy = self.reported(cluster)
        self.assertTrue(0.4 < accuracy < 1, accuracy)
        self.assertIn(f"to see its page again:\n  stagecoach ui {cluster.state_dir}\n", cluster.stderr)
        self.assertRegex(cluster.stderr, rf"stagecoach classify --weights {cluster.state_dir}/exports/\S+ PICTURE\n")
        answer, _ = self.answer("classify", "--weights", cluster.state_dir, self.folder / "test")
        right = self.right(answer)
        self.assertEqual(len(right), 3 * HELD_OUT)
        self.assertAlmostEqual(sum(right) / len(right), accuracy, places=12)

        self.check_page(cluster, answer["pictures"])

        # With bad ones among them, and of a checkpoint, which knows the classes and what was measured as well.
        self.write(self.folder / "test" / "ape" / "cut.png", made_pictures.png(9, 9, 3, bytes(243))[:-20])
        checkpoint = max(cluster.state_dir.glob("**/step-*"))
        with_bad, notes = self.answer("classify", "--weights", checkpoint, "--job-file", job, self.folder / "test", code=1)
        self.assertEqual(self.right(with_bad), right)
        self.assertIn("ape/cut.png: PNG: the file is cut off", notes)
        self.assertIn(f"1 of {3 * HELD_OUT + 1} pictures could not be used", notes)
        self.assertEqual([one["picture"].rsplit("/", 1)[1] for one in with_bad["pictures"] if "error" in one], ["cut.png"])
        table = self.cli("classify", "--weights", cluster.state_dir, "--top", "1", self.folder / "test" / "bee" / "00.png")
        self.assertRegex(table.stdout, r"^PICTURE +CLASS +PROBABILITY\n\S+/bee/00\.png +(ape|bee|cow) +[01]\.\d{4}\n$")

        refused = self.cli("segment", "--weights", cluster.state_dir, "--out", self.folder / "out", self.folder / "test")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("gives one class for a whole picture: use `stagecoach classify`", refused.stderr)
        text = self.run_job(self.job_file("text.json", name="text"))
        self.assertRegex(text.stderr, rf"stagecoach generate {text.state_dir}/exports/\S+ --prompt 'The '\n")
        refused = self.cli("classify", "--weights", text.state_dir, self.folder / "test")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("model: gpt; reads a text, not pictures", refused.stderr)

    def test_classify_of_a_network_fed_by_idx(self):
        draws = random.Random(8)
        images, labels = [], []
        for i in range(200):
            labels.append(draws.randrange(3))
            tint = labels[-1] if draws.random() < 0.8 else draws.randrange(3)
            images.append(bytes(draws.randrange(80) + 60 * tint for _ in range(6 * 6)))
        for name, head, body in (("images", [3, 200, 6, 6], b"".join(images)), ("labels", [1, 200], bytes(labels))):
            self.write(self.folder / name, bytes([0, 0, 8, head[0]]) + b"".join(n.to_bytes(4, "big") for n in head[1:]) + body)
        for i in range(180, 200):  # those that are held out
            self.write(self.folder / "grey" / f"{labels[i]}-{i}.png", made_pictures.png(6, 6, 1, images[i]))
        cluster = self.run_job(self.job("idx", {"mlp": {"image": [6, 6, 1], "hidden": 16, "layers": 3, "classes": 3}},
                                        {"idx": {"images": "images", "labels": "labels", "mean": 0.4, "deviation": 0.3}}))
        answer, _ = self.answer("classify", "--weights", cluster.state_dir, self.folder / "grey")
        self.assertEqual(len(answer["pictures"]), 20)
        self.assertNotIn("name", answer["pictures"][0]["classes"][0], "labels are numbers there")
        right = [one["classes"][0]["class"] == int(one["picture"].rsplit("/", 1)[1][0]) for one in answer["pictures"]]
        self.assertAlmostEqual(sum(right) / 20, self.reported(cluster), places=12)

    def test_segment_agrees_with_the_evaluation(self):
        draws = random.Random(5)
        height, width = 8, 12
        for part, count in (("train", 40), ("test", 10)):
            for i in range(count):
                split = draws.randrange(height)
                mask = bytes((y > split) + (x > split) for y in range(height) for x in range(width))
                picture = bytes(draws.randrange(90) + 60 * c for c in mask for _ in range(3))
                self.write(self.folder / part / f"{i:02}.png", made_pictures.png(height, width, 3, picture))
                self.write(self.folder / f"{part}-masks" / f"{i:02}.png", made_pictures.png(height, width, 1, mask))
        cluster = self.run_job(self.job(
            "masks", {"unet": {"base": 4, "depth": 1, "image": [height, width, 3], "channels_out": 3}},
            {"mask_folder": {"train": "train", "masks": "train-masks", "test": "test", "test_masks": "test-masks"}}, batch=6))
        self.write(self.folder / "bad.png", b"no picture")
        self.assertRegex(cluster.stderr, rf"stagecoach segment --weights {cluster.state_dir}/exports/\S+ --out masks PICTURE\n")
        answer, notes = self.answer("segment", "--weights", cluster.state_dir, "--out", self.folder / "out",
                                    self.folder / "bad.png", self.folder / "test", code=1)
        self.assertIn("bad.png: text, not JPEG, PNG, TIFF or WebP", notes)
        self.assertEqual(len(answer["pictures"]), 11)
        right = 0
        for one in answer["pictures"][1:]:
            name = one["picture"].rsplit("/", 1)[1]
            found = made_pictures.grey_pixels((self.folder / "out" / name).read_bytes())
            wanted = made_pictures.grey_pixels((self.folder / "test-masks" / name).read_bytes())
            self.assertEqual(found[:2], (height, width))
            right += sum(a == b for a, b in zip(found[2], wanted[2]))
            self.assertEqual({entry["class"]: entry["share"] for entry in one["classes"]},
                             {c: found[2].count(c) / (height * width) for c in set(found[2])})
        accuracy = self.reported(cluster)
        self.assertTrue(0.4 < accuracy < 1, accuracy)
        self.assertAlmostEqual(right / (10 * height * width), accuracy, places=12)


if __name__ == "__main__":
    harness.main()
