#!/usr/bin/env python3
"""Writes the pictures of this folder, and digests.txt, what Pillow (PyPI, 13.0.0) reads of them.

A line of digests.txt: the file, its width and height, SHA-256 of its bytes as RGB, as grey, and as RGB turned by its EXIF.
"""
import hashlib
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps

FOLDER = pathlib.Path(__file__).parent
HEIGHT, WIDTH = 13, 21


def made_up(channels, seed=1):
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    noise = np.random.RandomState(seed).randint(0, 40, (HEIGHT, WIDTH, channels))
    soft = np.stack([(7 + 3 * c) * x + (11 - 2 * c) * y for c in range(channels)], -1) % 216
    return (soft + noise).astype(np.uint8)


def save(name, image, form, **options):
    image.save(FOLDER / name, form, **options)


def png(name, depth, colours, rows, *chunks):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, colours, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    (FOLDER / name).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunk(*c) for c in chunks)
                                + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def packed_rows(numbers, depth):
    bits = np.unpackbits(numbers[..., None], axis=-1)[..., 8 - depth:].reshape(HEIGHT, -1)
    return np.packbits(bits, axis=-1)


def replaced(name, source, old, new):
    content = (FOLDER / source).read_bytes()
    assert content.count(old) == 1, (name, content.count(old))
    (FOLDER / name).write_bytes(content.replace(old, new))


def write_jpegs():
    colours, grey, ink = (Image.fromarray(made_up(3)), Image.fromarray(made_up(1)[..., 0]),
                          Image.fromarray(made_up(4), "CMYK"))
    save("grey.jpg", grey, "JPEG", quality=90)
    for sampling in ("4:4:4", "4:2:2", "4:2:0"):
        save(f"colours-{sampling.replace(':', '')}.jpg", colours, "JPEG", quality=90, subsampling=sampling)
    save("progressive.jpg", colours, "JPEG", progressive=True)
    save("rgb.jpg", colours, "JPEG", keep_rgb=True)
    save("ink.jpg", ink, "JPEG", quality=90)
    content = (FOLDER / "ink.jpg").read_bytes()
    marker = content.find(b"\xff\xee")
    end = marker + 2 + int.from_bytes(content[marker + 2:marker + 4], "big")
    (FOLDER / "ink-without-adobe.jpg").write_bytes(content[:marker] + content[end:])
    (FOLDER / "ycck.jpg").write_bytes(content[:end - 1] + b"\x02" + content[end:])
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[274] = orientation
        save(f"turned-{orientation}.jpg", colours, "JPEG", exif=exif, subsampling="4:4:4")
    save("turned-6.png", colours, "PNG", exif=_exif(6))
    save("turned-8.webp", colours, "WEBP", lossless=True, exif=_exif(8))


def _exif(orientation):
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def write_pngs():
    grey, colours, palette = made_up(1), made_up(3), made_up(3, 5)[0].tobytes()
    for depth in (1, 2, 4):
        png(f"grey-{depth}.png", depth, 0, packed_rows(grey[..., 0] >> (8 - depth), depth))
        png(f"palette-{depth}.png", depth, 3, packed_rows(grey[..., 0] >> (8 - depth), depth),
            (b"PLTE", palette[:3 * 2 ** depth]))
    png("palette-transparent.png", 8, 3, grey[..., 0] % 16, (b"PLTE", palette[:48]), (b"tRNS", bytes(range(0, 160, 10))))
    png("grey-transparent.png", 8, 0, grey[..., 0], (b"tRNS", struct.pack(">H", int(grey[0, 0, 0]))))
    png("colours-transparent.png", 8, 2, colours, (b"tRNS", struct.pack(">3H", *(int(c) for c in colours[0, 0]))))
    png("gamma.png", 8, 2, colours, (b"gAMA", struct.pack(">I", 100000)))
    png("grey-alpha.png", 8, 4, made_up(2))
    png("colours-alpha.png", 8, 6, made_up(4))
    wide = np.random.RandomState(3).randint(0, 65536, (HEIGHT, WIDTH, 4)).astype(">u2")
    png("colours-16.png", 16, 2, wide[..., :3])
    png("colours-alpha-16.png", 16, 6, wide)
    png("grey-alpha-16.png", 16, 4, wide[..., :2])


def write_tiffs():
    colours, grey, ink = made_up(3), made_up(1)[..., 0], made_up(4)
    for packing in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        save(f"colours-{packing}.tif", Image.fromarray(colours), "TIFF", compression=packing)
    save("grey.tif", Image.fromarray(grey), "TIFF", compression="tiff_lzw")
    save("bits.tif", Image.fromarray(grey).convert("1"), "TIFF", compression="group4")
    save("palette.tif", Image.fromarray(colours).quantize(16), "TIFF")
    save("ink.tif", Image.fromarray(ink, "CMYK"), "TIFF")
    save("colours-alpha.tif", Image.fromarray(ink, "RGBA"), "TIFF")
    extra = struct.pack("<HHI", 338, 3, 1)
    replaced("colours-multiplied.tif", "colours-alpha.tif", extra + b"\2\0", extra + b"\1\0")
    save("turned-6.tif", Image.fromarray(colours), "TIFF", exif=_exif(6))


def write_webps():
    colours, alpha = Image.fromarray(made_up(3)), Image.fromarray(made_up(4), "RGBA")
    save("lossy.webp", colours, "WEBP", quality=80)
    save("lossless.webp", colours, "WEBP", lossless=True)
    save("lossy-alpha.webp", alpha, "WEBP", quality=80)
    save("lossless-alpha.webp", alpha, "WEBP", lossless=True, exact=True)


def digest(image):
    return hashlib.sha256(np.asarray(image).tobytes()).hexdigest()[:16]


def main():
    for old in FOLDER.glob("*"):
        if old.suffix in (".jpg", ".png", ".tif", ".webp"):
            old.unlink()
    write_jpegs()
    write_pngs()
    write_tiffs()
    write_webps()
    lines = []
    for path in sorted(FOLDER.glob("*")):
        if path.suffix not in (".jpg", ".png", ".tif", ".webp"):
            continue
        image = Image.open(io.BytesIO(path.read_bytes()))
        turned = ImageOps.exif_transpose(image).convert("RGB")
        grey = image.convert("RGB").convert("L")
        lines.append(f"{path.name} {image.width} {image.height} {digest(image.convert('RGB'))} {digest(grey)} {digest(turned)}\n")
    (FOLDER / "digests.txt").write_text("".join(lines))


main()
