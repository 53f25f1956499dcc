"""Our reader of shards (data.webdataset) beside WebDataset: pictures and labels, sample after sample."""

import gzip
import io
import random
import sys
import tarfile

import beside

if __name__ == "__main__":
    beside.enter_packages()
import webdataset  # noqa: E402

PICTURES = "jpg;jpeg;jpe;jfif;png;tif;tiff;webp"


class Kind(bytes):
    """Of a member, in the place of its content."""


def shard(*members):
    """Of pairs of a name and its content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, Kind):
                info.type, info.linkname, content = content, "target.jpg", b""
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def theirs(folder):
    """As a user of pictures and classes writes it. What is no number as `.cls` has none there, and fails."""

    def read():
        shards = sorted(str(path) for path in folder.glob("*.tar"))
        samples = webdataset.WebDataset(shards, shardshuffle=False).decode().to_tuple(PICTURES, "cls")
        return [[picture.hex(), int(label)] for picture, label in samples]

    return beside.attempt(read, ValueError, IndexError, tarfile.TarError, webdataset.DecodingError)


def numbers(count, seed=4):
    generator = random.Random(seed)
    return [(generator.randbytes(30), str(generator.randrange(1000)).encode()) for _ in range(count)]


def sample(key, number, ending="jpg", label="cls"):
    return [(f"{key}.{ending}", number[0]), (f"{key}.{label}", number[1])]


def accepted(generator):
    """Names of folders, and their shards."""
    one, two, three = numbers(3)
    for ending in ("jpg", "jpeg", "jpe", "jfif", "png", "tif", "tiff", "webp", "JPG", "Png", "TIFF"):
        yield f"pictures of .{ending}", [shard(*sample("a", one, ending), *sample("b", two, ending, "CLS"))]
    yield "shards in their order", [shard(*sample("b", one)), shard(*sample("a", two)), shard(*sample("a", three))]
    yield "the class first", [shard(*reversed(sample("a", one)), *sample("b", two))]
    yield "one key in two shards", [shard(*sample("a", one)), shard(*sample("a", two))]
    yield "one key twice, apart", [shard(*sample("a", one), *sample("b", two), *sample("a", three))]
    yield "keys that differ in case", [shard(*sample("a", one), *sample("A", two))]
    others = [
        ("json", b'{"a": [1]}'),
        ("txt", b"text"),
        ("seg.png", b"no mask"),
        ("index", b"7"),
        ("JSON5", b"-"),
        ("cls.bak", b"9"),
        ("jpg.cls", b"9"),
        ("__key__x", b"-"),
        ("bin", b"\0\1"),
        ("", b"-"),
    ]
    yield "other members", [
        shard(*sample("a", one), *[(f"a.{ending}", content) for ending, content in others], *sample("b", two))
    ]
    yield "other members in front", [
        shard(*[(f"a.{ending}", content) for ending, content in others], *sample("a", one))
    ]
    for key in (
        "x/a",
        "./a",
        "x.y/a",
        "x.y/z/a",
        "/x/a",
        "x//a",
        "../a",
        "a b",
        "a-1_2",
        "ä",
        "x/y/z/__a",
        "__a",
        "a__",
        "__a__",
        "_",
        "x/__a__",
        "__",
        "a\\b",
        "x/",
        "x.y/z/",
        "/",
        "x\ny",
    ):
        yield f"key {key!r}", [shard(*sample(key, one), *sample("other", two))]
    ignored = (
        "README",
        "x/README",
        "__meta__",
        "__meta__/a.jpg",
        "__a__b__/x.cls",
        ".hidden.jpg",
        ".jpg",
        ".cls",
        "x.y/.jpg",
        "____/x.jpg",
    )
    yield "names that are no samples", [shard(*[(name, b"-") for name in ignored], *sample("a", one))]
    yield "names that are no samples, within one", [
        shard(sample("a", one)[0], *[(name, b"-") for name in ignored], sample("a", one)[1])
    ]
    yield "folders, devices and links", [
        shard(
            ("x/", Kind(tarfile.DIRTYPE)),
            *sample("x/a", one),
            ("x/a.json", Kind(tarfile.SYMTYPE)),
            ("x/fifo", Kind(tarfile.FIFOTYPE)),
            *sample("b", two),
            ("c", Kind(tarfile.LNKTYPE)),
        )
    ]
    yield "a link beside the picture", [shard(*sample("a", one), ("a.png", Kind(tarfile.SYMTYPE)), *sample("b", two))]
    for label in (b"5\n", b" 5 ", b"\t5\r\n", b"005", b"+5", b"5" + b" " * 60, b"0"):
        yield f"label {label}", [shard(("a.jpg", one[0]), ("a.cls", label))]
    yield "an empty picture", [shard(("a.jpg", b""), ("a.cls", b"1"))]
    for i in range(40):
        yield f"random {i}", list(random_shards(generator))


def random_shards(generator):
    for number in range(generator.randrange(1, 4)):
        members = []
        for i, content in enumerate(numbers(generator.randrange(1, 12), generator.random())):
            key = generator.choice(("", "./", "x/", "x.y/", "x.y/z/")) + generator.choice("ab_") + f"{number}-{i}"
            own = sample(
                key, content, generator.choice(("jpg", "PNG", "webp", "TIF")), generator.choice(("cls", "Cls"))
            )
            own += [
                (f"{key}.{ending}", b"12")
                for ending in generator.sample(("json", "txt", "x.jpg", "id", "cls.x"), 2)
                if ending != "json"
            ]
            generator.shuffle(own)
            members += own + [("x/README", b"-")] * (generator.random() < 0.2)
        yield shard(*members)


def refused():
    one, two = numbers(2)
    good = sample("good", two)
    members = {
        "no class": ([("a.jpg", b"x")], "(a): has a picture and no .cls, its class"),
        "another name of the class": (
            [("a.jpg", b"x"), ("a.class", b"1")],
            "(a): has a picture and no .cls, its class",
        ),
        "no picture": ([("a.cls", b"1"), ("a.json", b"{}")], "(a): has .cls and no picture (.jpg, .png, .tif, .webp)"),
        "another picture": (sample("a", one, "ppm"), "(a): has .cls and no picture (.jpg, .png, .tif, .webp)"),
        "two classes": (sample("a", one) + [("a.CLS", b"1")], "(a): has two pictures or two .cls; give one of each"),
        "one picture twice": (
            [("a.jpg", b"x"), *sample("a", one)],
            "(a): has two pictures or two .cls; give one of each",
        ),
        "two pictures": ([("a.png", b"x"), *sample("a", one)], "(a): has two pictures or two .cls; give one of each"),
        "several dots": (
            sample("a.0001", one),
            "(a): has neither a picture nor a .cls; by WebDataset's rule a name ends at its first "
            "dot, so a.0001.cls has none: take the other dots away",
        ),
        "a hard link": (
            [("a.jpg", Kind(tarfile.LNKTYPE)), ("a.cls", b"1")],
            "(a): has .cls and no picture",
            "; a.jpg is a link: pack the file itself",
        ),
        "a symbolic link": (
            [("a.jpg", b"x"), ("a.cls", Kind(tarfile.SYMTYPE))],
            "(a): has a picture and no .cls",
            "; a.cls is a link: pack",
        ),
        "links alone": (
            [("a.jpg", Kind(tarfile.LNKTYPE)), ("a.cls", Kind(tarfile.LNKTYPE))],
            "(a): has neither a picture nor a .cls; a.cls is a link",
        ),
        "a class beyond the network's": (
            [("a.jpg", b"x"), ("a.cls", b"1000")],
            "(a): label 1000 is not below the 1000 classes",
        ),
        "a class below 0": ([("a.jpg", b"x"), ("a.cls", b"-1")], "(a): label -1 is not below"),
        "a class of 65 bytes": (
            [("a.jpg", b"x"), ("a.cls", b"0" * 64 + b"1")],
            "(a): its .cls has over 64 bytes; want a decimal number",
        ),
        "a sparse picture": (
            [("a.jpg", Kind(tarfile.GNUTYPE_SPARSE)), ("a.cls", b"1")],
            "a sparse file; write the tar file without --sparse",
        ),
    }
    for label in (b"dog", b"", b"1.0", b"1_0", b"0x1", b"1 2", b"1\0", "²".encode()):
        members[f"class {label}"] = ([("a.jpg", b"x"), ("a.cls", label)], "(a): its .cls is no decimal number")
    for name, (bad, *words) in members.items():
        yield name, {"0.tar": shard(*good, *bad)}, *words
    whole = shard(*sample("a", one), *good)
    yield "cut off", {"0.tar": whole[: 1024 + 200]}, '/0.tar": cut off: ', "give the whole file"
    yield "no end", {"0.tar": whole[: 4 * 1024]}, '/0.tar": cut off: no end is marked at offset 4096'
    yield "a damaged header", {
        "0.tar": whole[:1030] + b"x" + whole[1031:]
    }, '/0.tar": at offset 1024 stands no tar header'
    yield "nothing", {"0.tar": b""}, '/0.tar": an empty file, not a tar file'
    yield "gzip", {"0.tar": gzip.compress(whole)}, '/0.tar": gzip data, not a tar file; unpack it first'
    for ending in ("tar.gz", "tgz", "tar.xz"):
        yield f"a .{ending}", {
            "0.tar": whole,
            f"1.{ending}": whole,
        }, f"1.{ending}: a packed shard; unpack it to a .tar file"
    yield "no shards", {"0.zip": b"-"}, "has no .tar files, but 1 .zip"


def apart(comparison):
    """WebDataset takes members of one sample that do not follow each other for several; ours puts them together."""
    contents = numbers(20)
    pairs = [sample(str(i), number) for i, number in enumerate(contents)]
    pictures, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    comparison.random.shuffle(labels)
    path = comparison.write(shard(*pictures, *labels), "apart/0.tar").parent
    by_label = [[contents[int(name.split(".")[0])][0].hex(), int(label)] for name, label in labels]
    if not isinstance(theirs(path), beside.Refused):
        comparison.fail("members apart", "WebDataset takes them")
    comparison.equal("members apart", by_label, comparison.ours(path)["samples"])


def main():
    comparison = beside.Comparison("shards", sys.argv[1])
    for i, (name, shards) in enumerate(accepted(comparison.random)):
        for number, content in enumerate(shards):
            path = comparison.write(content, f"{i}/{number:03d}.tar").parent
        ours = comparison.ours(path)
        comparison.equal(name, theirs(path), ours.get("error") or ours["bad"] or ours["samples"])
    for i, (name, files, *words) in enumerate(refused()):
        for file, content in files.items():
            path = comparison.write(content, f"refused-{i}/{file}").parent
        ours = comparison.ours(path)
        comparison.refused(name, theirs(path), [*ours["bad"], ours.get("error", "")], *words)
    apart(comparison)
    comparison.finish(f"webdataset {webdataset.__version__}")


if __name__ == "__main__":
    main()
