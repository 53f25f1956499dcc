#!/usr/bin/env python3
"""Splits Fashion-MNIST into a task to learn much from and another one with few labels, for fine-tuning.

usage: fashion-split.py TO [--from FOLDER] [--few N]

Classes 5 to 9 (sandal, shirt, sneaker, bag, boot), all 30,000 images of them, become trunk-images and trunk-labels.
Classes 0 to 4 (T-shirt, trouser, pullover, dress, coat) are the other task: of each the first N images of the training
set, 20 if not said otherwise, become few-images and few-labels. Both have what is held out in test files of their own. Labels count
from 0 in each. FOLDER has the four files of Debian's package dataset-fashion-mnist.
"""
import argparse
import gzip
import pathlib

DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")
PIXELS = 28 * 28


def read(folder, part):
    """(pixels, label) of each image."""
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    return [(images[i * PIXELS:(i + 1) * PIXELS], label) for i, label in enumerate(labels)]


def write(folder, name, samples, first_class):
    count = len(samples).to_bytes(4, "big")
    side = (28).to_bytes(4, "big")
    (folder / f"{name}-images").write_bytes(b"\0\0\x08\x03" + count + side + side + b"".join(pixels for pixels, _ in samples))
    (folder / f"{name}-labels").write_bytes(b"\0\0\x08\x01" + count + bytes(label - first_class for _, label in samples))


def first_of_each(samples, few):
    taken, seen = [], {}
    for sample in samples:
        seen[sample[1]] = seen.get(sample[1], 0) + 1
        if seen[sample[1]] <= few:
            taken.append(sample)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("to", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=DEBIAN)
    parser.add_argument("--few", type=int, default=20)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    for part, suffix in (("train", ""), ("t10k", "-test")):
        samples = read(options.source, part)
        write(options.to, f"trunk{suffix}", [sample for sample in samples if sample[1] >= 5], 5)
        few = [sample for sample in samples if sample[1] < 5]
        write(options.to, f"few{suffix}", few if suffix else first_of_each(few, options.few), 0)


if __name__ == "__main__":
    main()
