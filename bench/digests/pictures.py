"""What the jobs of examples/ read that train with pictures in files."""
import io
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "e2e"))
import made_pictures  # noqa: E402

SIDE = 32
PIXELS = 3 * SIDE * SIDE


def write_tar(folder, pixels, labels):
    """A tar file of samples as WebDataset writes them: i.png and i.cls."""
    folder.mkdir(parents=True)
    with tarfile.open(folder / "0.tar", "w") as tar:
        for i, label in enumerate(labels):
            picture = made_pictures.png(SIDE, SIDE, 3, pixels[i * PIXELS:(i + 1) * PIXELS])
            for extension, content in (("png", picture), ("cls", b"%d" % label)):
                member = tarfile.TarInfo(f"{i:06}.{extension}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def write_scenes(examples, folder):
    """Of the IDX files that are in the folder, by the script that the example names."""
    subprocess.run([sys.executable, examples / "fashion-scenes.py", folder / "fashion-scenes", "--from", folder,
                    "--train", "64", "--test", "16"], check=True)
