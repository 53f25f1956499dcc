"""Our reader of gzip files (data.idx) beside Python's gzip."""

import gzip
import struct
import sys
import zlib

import beside

FTEXT, FHCRC, FEXTRA, FNAME, FCOMMENT = 1, 2, 4, 8, 16


def idx(generator, size, images=1):
    """An IDX file of images with `size` random bytes each."""
    return struct.pack(">4B3I", 0, 0, 8, 3, images, 1, size) + generator.randbytes(images * size)


def member(data, flags=0, level=6, extra=b"extra", name=b"images", comment=b"no comment", bad=None):
    """A gzip member as RFC 1952 has it. bad: "crc", "size", "hcrc", "method", "magic"."""
    method = 9 if bad == "method" else 8
    magic = b"\x1f\x8c" if bad == "magic" else b"\x1f\x8b"
    header = magic + struct.pack("<2BI2B", method, flags, 1234567890, 0, 3)
    header += struct.pack("<H", len(extra)) + extra if flags & FEXTRA else b""
    header += name + b"\0" if flags & FNAME else b""
    header += comment + b"\0" if flags & FCOMMENT else b""
    if flags & FHCRC:
        header += struct.pack("<H", (zlib.crc32(header) ^ (bad == "hcrc")) & 0xFFFF)
    packer = zlib.compressobj(level, wbits=-15)
    crc, size = zlib.crc32(data) ^ (bad == "crc"), (len(data) + (bad == "size")) & 0xFFFFFFFF
    return header + packer.compress(data) + packer.flush() + struct.pack("<2I", crc, size)


def theirs(path):
    def read():
        with gzip.open(path) as file:
            return file.read()

    return beside.attempt(read, gzip.BadGzipFile, EOFError, zlib.error)


def accepted(generator):
    whole = idx(generator, 3000)
    yield "one member", member(whole)
    for name, flags in {
        "text": FTEXT,
        "name": FNAME,
        "comment": FCOMMENT,
        "extra field": FEXTRA,
        "header's sum": FHCRC,
        "all flags": FTEXT | FNAME | FCOMMENT | FEXTRA | FHCRC,
    }.items():
        yield name, member(whole, flags)
        yield f"{name}, of a second member", member(whole[:100]) + member(whole[100:], flags)
    yield "an extra field of 65535 bytes in front", member(whole, FEXTRA | FNAME, extra=bytes(65300)) + member(b"")
    yield "stored blocks", member(whole, level=0)
    yield "gzip.compress", gzip.compress(whole)
    yield "members of one byte", b"".join(member(whole[i : i + 1]) for i in range(len(whole)))
    yield "a member that ends within the header", member(whole[:3]) + member(whole[3:])
    yield "an empty member in front", member(b"") + member(whole)
    yield "empty members in front, between and behind", (
        member(b"") + member(b"") + member(whole[:9]) + member(b"") + member(whole[9:]) + member(b"")
    )
    yield "zeros behind", member(whole) + bytes(512)
    yield "zeros between", member(whole[:10]) + bytes(9) + member(whole[10:]) + bytes(1)
    yield "zeros behind an empty member in front", member(b"") + bytes(7) + member(whole)
    large = idx(generator, 500_000, 7)  # more than is read at once
    yield "a large member", member(large)
    cuts = sorted(generator.sample(range(len(large)), 40))
    parts = [large[a:b] for a, b in zip([0, *cuts], [*cuts, len(large)])]
    yield "large members", b"".join(member(part, generator.choice((0, FNAME, FEXTRA))) for part in parts)
    edge = member(whole[:50], FEXTRA, extra=bytes(60000))
    for gap in range(-3, 4):  # a member begins where a piece of the file ends
        zeros = (1 << 20) - len(edge) + gap
        yield f"a member {gap} from a MiB", edge + bytes(zeros) + member(whole[50:], FNAME)
    for i in range(40):
        whole = idx(generator, generator.randrange(1, 5000))
        cuts = sorted(generator.choices(range(len(whole) + 1), k=generator.randrange(5)))
        packed = b""
        for a, b in zip([0, *cuts], [*cuts, len(whole)]):
            packed += member(whole[a:b], generator.randrange(32), generator.randrange(10), generator.randbytes(20))
            packed += bytes(generator.choice((0, 0, 1, 100)))
        yield f"random members {i}", packed


def refused(generator):
    """And the words of the reason."""
    whole = idx(generator, 3000)
    packed, half = member(whole), member(whole[:1500])
    second = half + member(whole[1500:])
    for length in (len(packed) - 1, len(packed) - 4, len(packed) - 8, len(packed) - 9, 1000):
        yield f"cut off at {length}", packed[:length], "its gzip data is cut off; give the whole file"
    yield "cut off in a second header", half + packed[:5], "its gzip data is cut off; give the whole file"
    yield "cut off in a second member", second[:-20], "its gzip data is cut off; give the whole file"
    yield "cut off in the header", packed[:9], "its first 9 bytes of gzip unpack to nothing"
    yield "a wrong sum", member(whole, bad="crc"), "its gzip checksum does not hold: damaged"
    yield "a wrong size", member(whole, bad="size"), "damaged"
    yield "a wrong sum of a first member", member(whole[:99], bad="crc") + member(whole[99:]), "checksum does not hold"
    yield "a wrong sum of the header", member(whole, FHCRC, bad="hcrc"), "checksum does not hold"
    yield "another method", member(whole, bad="method"), "no gzip data, or damaged"
    yield "another method behind", half + member(whole[1500:], bad="method"), "no gzip data, or damaged"
    yield "another magic behind", packed + member(b"", bad="magic"), "no gzip data, or damaged"
    for name, garbage in {"text": b"garbage", "a byte": b"x", "zeros and text": bytes(5) + b"x"}.items():
        yield f"{name} behind", packed + garbage, "its gzip data has something else behind it; give the whole file"
    yield "an extra field that hides the data", member(
        whole, FEXTRA | FNAME, extra=bytes(65535), name=b"n" * 500
    ), "bytes of gzip unpack to nothing"
    yield "more than its header says", member(whole + b"x"), "3017 bytes unpacked, its header [1, 1, 3000] says 3016"
    yield "less than its header says", member(whole[:-1]), "3015 bytes unpacked, its header [1, 1, 3000] says 3016"
    yield "nothing", member(b""), "an empty file, not an IDX file"
    damaged = packed[:700] + bytes([packed[700] ^ 0x55]) + packed[701:]
    yield "damaged data", damaged, "its gzip checksum does not hold: damaged"


def main():
    comparison = beside.Comparison("gzip", sys.argv[1])
    for name, packed in accepted(comparison.random):
        path = comparison.write(packed)
        content = theirs(path)
        comparison.equal(
            name, content if isinstance(content, beside.Refused) else {"bytes": content.hex()}, comparison.ours(path)
        )
    for name, packed, *words in refused(comparison.random):
        path = comparison.write(packed)
        comparison.refused(name, theirs(path), [comparison.ours(path).get("error", "")], *words)
    comparison.finish(f"gzip of Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
