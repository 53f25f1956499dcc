#!/usr/bin/env python3
"""Makes pictures of several garments, and of each pixel what it shows, out of Fashion-MNIST: a task for a U-Net.

usage: fashion-scenes.py TO [--from FOLDER] [--train N] [--test N] [--side PIXELS]

Each scene is a grey PNG of 64x64 pixels with three to six garments of 28x28 in random places, later ones over earlier
ones. Its mask is a PNG of the same name: 0 where nothing lies, 1 to 10 for the ten classes, 255 on the faint border of a
garment, which shall not count. TO gets train, train-masks, test and test-masks; test scenes are made of the 10,000 test
garments alone. The same numbers are drawn each time. FOLDER has the four files of Debian's package
dataset-fashion-mnist.
"""
import argparse
import gzip
import pathlib
import random
import struct
import zlib

DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")
SIDE = 28  # of a garment
FAINT = 24  # a pixel below this is no safe sign of the garment
IGNORED = 255


def read(folder, part):
    """(pixels, label) of each image."""
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    area = SIDE * SIDE
    return [(images[i * area:(i + 1) * area], label) for i, label in enumerate(labels)]


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def grey_png(pixels, side):
    rows = b"".join(b"\0" + bytes(pixels[y * side:(y + 1) * side]) for y in range(side))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def paste(garment, left, top, side, picture, mask):
    """Puts a garment over what is there. Its black pixels are not part of it."""
    pixels, label = garment
    for y in range(SIDE):
        for x in range(SIDE):
            value = pixels[y * SIDE + x]
            if value > 0:
                at = (top + y) * side + left + x
                picture[at] = value
                mask[at] = label + 1 if value >= FAINT else IGNORED


def scene(garments, side, draw):
    picture, mask = bytearray(side * side), bytearray(side * side)
    for _ in range(draw.randint(3, 6)):
        left, top = draw.randint(0, side - SIDE), draw.randint(0, side - SIDE)
        paste(draw.choice(garments), left, top, side, picture, mask)
    return picture, mask


def write(folder, name, garments, count, side, draw):
    for part in (name, f"{name}-masks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        picture, mask = scene(garments, side, draw)
        (folder / name / f"{i:05}.png").write_bytes(grey_png(picture, side))
        (folder / f"{name}-masks" / f"{i:05}.png").write_bytes(grey_png(mask, side))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("to", type=pathlib.Path)
    parser.add_argument("--from", dest="source", type=pathlib.Path, default=DEBIAN)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--side", type=int, default=64)
    options = parser.parse_args()
    if options.side < SIDE:
        parser.error(f"--side {options.side}: a garment has {SIDE} pixels, give that many or more")
    draw = random.Random(1)
    write(options.to, "train", read(options.source, "train"), options.train, options.side, draw)
    write(options.to, "test", read(options.source, "t10k"), options.test, options.side, draw)


if __name__ == "__main__":
    main()
