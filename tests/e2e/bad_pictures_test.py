"""Pictures, folders and tar files that are not what they should be: named by file and reason in what the user sees of the
job, or left out and counted, as the job says; and the servers go on to the next job.

Two stages, so that the one that finds a bad record is not the only one that is heard. Each form of a bad picture is in
stage/data/sources/bad_pictures_test.cc.
"""
import io
import struct
import tarfile
import zlib

import fleet
import harness
from pictures_test import png

CLASSES, EACH = ("ape", "bee", "cow"), 4


def huge_png():
    """Of 60,000 x 60,000 pixels, by its header."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)) + png(8, 8, 1)[33:]


def write_classes(root):
    for label, name in enumerate(CLASSES):
        folder = root / "train" / name
        folder.mkdir(parents=True)
        for i in range(EACH):
            (folder / f"{i}.png").write_bytes(png(8, 8, label + 3 * i))


def with_file(name, content):
    def write(root):
        write_classes(root)
        (root / "train" / name).write_bytes(content)
    return write


def with_link(root):
    write_classes(root)
    (root / "elsewhere.png").write_bytes(png(8, 8, 1))
    (root / "train" / "bee" / "link.png").symlink_to(root / "elsewhere.png")


def with_empty_class(root):
    write_classes(root)
    (root / "train" / "dog").mkdir()


def without_classes(root):
    (root / "train").mkdir(parents=True)
    (root / "train" / "1.png").write_bytes(png(8, 8, 1))


def with_a_class_too_many(root):
    write_classes(root)
    (root / "train" / "dog").mkdir()
    (root / "train" / "dog" / "1.png").write_bytes(png(8, 8, 1))


def tar_of(labels):
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i, label in enumerate(labels):
            for extension, content in (("png", png(8, 8, i)), ("cls", b"%d" % label)):
                member = tarfile.TarInfo(f"{i:03}.{extension}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return text.getvalue()


def with_tar(content):
    def write(root):
        (root / "train").mkdir(parents=True)
        (root / "train" / "0.tar").write_bytes(content)
    return write


WHOLE_TAR = tar_of([i % 3 for i in range(10)])
PICTURES, TARS = "image_folder", "webdataset"
# What it is, how it is written, what the job says of it, and how many records are left out if it skips bad ones; None: it
# is no record that is bad, so the job is refused all the same.
ROWS = [
    ("corrupt-jpeg", PICTURES, with_file("bee/bad.jpg", b"\xff\xd8\xff\xe0" + bytes(60)), "train\", bee/bad.jpg: JPEG: ", 1),
    ("truncated-png", PICTURES, with_file("bee/bad.png", png(8, 8, 1)[:-30]), "bee/bad.png: PNG: the file is cut off", 1),
    ("zero-bytes", PICTURES, with_file("cow/bad.png", b""), "cow/bad.png: an empty file, not JPEG, PNG, TIFF or WebP", 1),
    ("huge", PICTURES, with_file("ape/bad.png", huge_png()), "ape/bad.png: PNG: a picture of 60000 x 60000 pixels; at most", 1),
    ("link-out", PICTURES, with_link, "bee/link.png: a link out of the folder, to ", 1),
    ("empty-class", PICTURES, with_empty_class, "train\", dog: a class with no JPEG, PNG, TIFF or WebP files", None),
    ("no-classes", PICTURES, without_classes, "has no folders, but 1 .png, beside the folders of the classes; give a folder that has a folder for each class", None),
    ("class-too-many", PICTURES, with_a_class_too_many, "the class of \"dog\", 3, is not below", None),
    ("label-beyond", TARS, with_tar(tar_of([0, 1, 2, 7, 0, 1, 2])), "(003): label 7 is not below the 3 classes", 1),
    ("tar-cut", TARS, with_tar(WHOLE_TAR[:len(WHOLE_TAR) // 3]), "0.tar\": cut off: ", 1),
]


class BadPictures(fleet.FleetTest):
    def train(self, job_id, kind, folder, **data):
        mlp = {"hidden": 8, "layers": 3, "image": [8, 8, 3], "classes": 3}
        self.submit(job_id, name=job_id, data={"text": None, "on_stages": str(self.folder), kind: {"train": folder, **data}},
                    model={"gpt": None, "mlp": mlp}, training={"steps": 4, "batch_size": 6, "micro_batches": 2},
                    checkpoint={"every_steps": 0}, evaluation=None)
        return self.ended(job_id)

    def test_are_named_or_left_out_and_the_servers_go_on(self):
        for name in ("stage-0", "stage-1"):
            self.launch_stage(name)
        for name, kind, write, said, left_out in ROWS:
            with self.subTest(name):
                write(self.folder / name)
                failed = self.train(f"{name}-fail", kind, f"{name}/train")
                self.assertEqual(failed["state"], "JOB_STATE_FAILED", failed)
                self.assertIn(said, failed["message"])
                self.assertIn(f"data.{kind}.train = \"", failed["message"])
                # At most once for a neighbour that was heard before the stage that had the reason.
                self.assertLessEqual(int(failed["recoveries"]), 1, failed)
                described = self.cli("describe", f"{name}-fail", "--address", self.address)
                self.assertIn(said, described.stdout)

                skipped = self.train(f"{name}-skip", kind, f"{name}/train", on_bad_record="skip")
                if left_out is None:
                    self.assertEqual(skipped["state"], "JOB_STATE_FAILED", skipped)
                    self.assertIn(said, skipped["message"])
                    continue
                self.assertEqual(skipped["state"], "JOB_STATE_SUCCEEDED", skipped)
                logs = self.log("stage-0"), self.log("stage-1")
                for log in logs:
                    self.assertIn(f"{left_out} bad record left out: data.{kind}.train", log)
                    self.assertIn(said, log)

        write_classes(self.folder / "good")
        good = self.train("good", PICTURES, "good/train")
        self.assertEqual(good["state"], "JOB_STATE_SUCCEEDED", good)
        self.assertEqual([process.poll() for process in self.processes.values()], [None] * 3)


if __name__ == "__main__":
    harness.main()
