"""Our reader of tar files (data.webdataset) beside Python's tarfile: an archive's files, in order, and their bytes."""

import io
import sys
import tarfile

import beside

BLOCK = 512
END = bytes(2 * BLOCK)


def padded(content):
    return content + bytes(-len(content) % BLOCK)


def octal(number, width=12):
    return b"%0*o\0" % (width - 1, number)


def header(name, size, kind=b"0", magic=b"ustar\x0000", prefix=b"", link=b"", checksum=None):
    """size: a number or the field's bytes. checksum: of a sum, the field's bytes."""
    field = octal(size) if isinstance(size, int) else size
    block = bytearray(
        name.ljust(100, b"\0")
        + octal(0o644, 8)
        + octal(0, 8) * 2
        + field
        + octal(1234567890)
        + b" " * 8
        + kind
        + link.ljust(100, b"\0")
        + magic.ljust(88, b"\0")
        + prefix.ljust(155, b"\0")
    )
    block += bytes(BLOCK - len(block))
    block[148:156] = (checksum or (lambda block: octal(sum(block), 7) + b" "))(block)
    return bytes(block)


def member(name, content=b"", kind=b"0", **fields):
    return header(name, fields.pop("size", len(content)), kind, **fields) + padded(content)


def pax(kind=b"x", padding=b"", **records):
    text = b""
    for key, value in records.items():
        line = b" " + key.replace("__", ".").encode() + b"=" + value + b"\n"
        length = len(line) + 1
        while len(str(length)) + len(line) != length:
            length += 1
        text += str(length).encode() + line
    return member(b"pax", text + padding, kind)


def signed(block):
    return octal(sum(byte - 256 if byte > 127 else byte for byte in block), 7) + b" "


def theirs(path):
    def read():
        with tarfile.open(path, "r:", errors="surrogateescape", encoding="utf-8") as archive:
            return [
                [info.name.encode("utf-8", "surrogateescape").hex(), archive.extractfile(info).read().hex()]
                for info in archive
                if info.isreg()
            ]

    return beside.attempt(read, tarfile.TarError, OverflowError, ValueError)


def written(generator, form, count):
    """By tarfile, with members of every kind."""
    out = io.BytesIO()
    headers = {"comment": "made by a test"} if form == tarfile.PAX_FORMAT and generator.random() < 0.5 else None
    with tarfile.open(
        fileobj=out, mode="w", format=form, encoding="utf-8", errors="surrogateescape", pax_headers=headers
    ) as archive:
        for i in range(count):
            longest = 90 if form == tarfile.USTAR_FORMAT else generator.choice((20, 90, 150, 300))
            letters = generator.choice(("abc./ ", "äöü€", "\udcff\udc80x"))
            if form == tarfile.USTAR_FORMAT and longest // len(letters) > 20:
                letters = "abc./ "
            name = (
                generator.choice(("", "./", "a.b/")) + "n" + "".join(generator.choices(letters, k=longest // 2)) + "e"
            )
            info = tarfile.TarInfo(name.replace("//", "/"))
            info.mtime = generator.choice((0, 1234567890, 1.5 if form == tarfile.PAX_FORMAT else 1))
            info.type = generator.choices(
                (
                    tarfile.REGTYPE,
                    tarfile.AREGTYPE,
                    tarfile.CONTTYPE,
                    tarfile.DIRTYPE,
                    tarfile.LNKTYPE,
                    tarfile.SYMTYPE,
                    tarfile.FIFOTYPE,
                    tarfile.CHRTYPE,
                    tarfile.BLKTYPE,
                ),
                (12, 2, 2, 2, 1, 1, 1, 1, 1),
            )[0]
            info.linkname = (
                "n" + "l" * generator.choice((5, 90)) if info.type in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
            )
            content = generator.randbytes(generator.choice((0, 1, 511, 512, 513, 5000))) if info.isreg() else b""
            info.size = len(content)
            if form == tarfile.PAX_FORMAT and generator.random() < 0.3:
                info.pax_headers = {"SCHILY.xattr.user.x": "1", "path": info.name + "x"}
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def accepted(generator):
    one, two = member(b"one", b"first"), member(b"two", generator.randbytes(700))
    for name, form in {"ustar": tarfile.USTAR_FORMAT, "GNU": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}.items():
        for i in range(30):
            yield f"{name} {i}", written(generator, form, generator.randrange(1, 12))
    yield "an end of one block", one + two + bytes(BLOCK)
    yield "garbage behind the end", one + two + END + b"garbage" * 999
    yield "members behind the end", one + END + two + END
    yield "no members", END
    yield "members of one name", one + member(b"one", b"second") + END
    old = {"magic": b""}
    yield "Unix 7", member(b"one", b"first", b"\0", **old) + member(b"two", b"x", b"0", **old) + END
    yield "a folder of Unix 7", member(b"folder/", b"", b"\0", **old) + one + END
    yield "a folder of Unix 7 with a size", header(b"folder/", 5000, b"\0", **old) + one + END
    yield "a file with a slash behind", member(b"folder/", b"12", b"0") + one + END
    for kind in b"123456":
        yield f"size of kind {chr(kind)}", header(b"x", 5000, bytes([kind]), link=b"one") + one + END
        yield f"pax size of kind {chr(kind)}", pax(size=b"5000") + header(
            b"x", 0, bytes([kind]), link=b"one"
        ) + one + END
    for kind in b"DMVNAZ":
        yield f"of kind {chr(kind)}", member(b"x", generator.randbytes(1000), bytes([kind])) + one + END
    for name, size in {
        "base 256": b"\x80" + (5).to_bytes(11, "big"),
        "blanks": b"         5\0 ",
        "no end": b"000000000005",
        "a blank behind": b"5 ".ljust(12, b"\0"),
        "blanks alone": b" " * 12,
        "nothing": bytes(12),
        "blanks in front and no end": b"           5",
    }.items():
        content = b"" if name in ("blanks alone", "nothing") else b"first"
        yield f"a size with {name}", member(b"one", content, size=size) + two + END
    for name, checksum in {
        "signed": signed,
        "blanks": lambda block: b"%7o " % sum(block),
        "no end": lambda block: b"%08o" % sum(block),
    }.items():
        yield f"a sum with {name}", member(b"one\xff\xfe", b"first", checksum=checksum) + two + END
    yield "a prefix", member(b"one", b"first", prefix=b"folder/of it") + two + END
    yield "a name and a prefix that fill their fields", member(b"n" * 100, b"first", prefix=b"p" * 155) + two + END
    yield "GNU's magic", member(b"one", b"first", magic=b"ustar  \0") + two + END
    yield "bytes that are no UTF-8", member(b"\xff\xfe\x80", b"first") + pax(path=b"\xc3\x28\xff") + two + END
    yield "bytes as they are", pax(hdrcharset=b"BINARY", path=b"\xff\xfe") + one + two + END
    yield "a long name", member(b"././@LongLink", b"l" * 300 + b"\0", b"L") + one + two + END
    yield "a long link", member(b"././@LongLink", b"l" * 300 + b"\0", b"K") + header(b"x", 0, b"2") + two + END
    yield "a long link and a long name", (
        member(b"././@LongLink", b"k" * 300 + b"\0", b"K")
        + member(b"././@LongLink", b"l" * 300 + b"\0", b"L")
        + header(b"x", 0, b"2")
        + two
        + END
    )
    yield "pax", pax(path=b"other", linkpath=b"link", mtime=b"1.5", LIBARCHIVE__x=b"a=b\nc") + one + two + END
    yield "pax of Solaris", pax(b"X", path=b"other") + one + two + END
    yield "a pax size", pax(size=b"5") + header(b"one", 0) + padded(b"first") + two + END
    yield "a pax name with slashes behind", pax(path=b"other//") + one + two + END
    yield "zeros behind the lines of pax", pax(padding=bytes(20), path=b"other") + one + two + END
    yield "a name twice in pax", (member(b"pax", b"10 path=a\n10 path=b\n", b"x") + one + two + END)
    yield "pax, then a long name", pax(path=b"first") + member(b"L", b"second\0", b"L") + one + two + END
    yield "a long name, then pax", member(b"L", b"first\0", b"L") + pax(path=b"second") + one + two + END
    yield "a global comment", pax(b"g", comment=b"0123456789abcdef") + one + pax(b"g", comment=b"x") + two + END
    yield "a global link", pax(b"g", linkpath=b"x") + one + two + END


def refused(generator):
    one, two = member(b"one", b"first"), member(b"two", generator.randbytes(700))
    whole = one + two + END
    cut = ("cut off: ", " at offset 1024, and the file has ")
    yield "no end", one + two, "cut off: no end is marked at offset 2560", "give the whole file"
    yield "cut off in a header", whole[: 1024 + 300], *cut
    yield "cut off in a member", whole[: 1024 + BLOCK + 300], *cut
    yield "a member larger than the file", one + header(b"x", 1 << 30), *cut
    yield "a sparse member", member(
        b"x", b"data", b"S"
    ) + one + END, "a sparse file; write the tar file without --sparse"
    for version in (
        {"GNU__sparse__size": b"9", "GNU__sparse__numblocks": b"0"},
        {"GNU__sparse__map": b"0,1", "GNU__sparse__size": b"9"},
        {"GNU__sparse__major": b"1", "GNU__sparse__minor": b"0", "GNU__sparse__realsize": b"9"},
    ):
        yield f"{next(iter(version))}", pax(**version) + member(
            b"x", b"1\n0\n0\n".ljust(BLOCK, b"\0")
        ) + END, "is a sparse file"
    for key in ("path", "size"):
        yield f"a global {key}", pax(b"g", **{key: b"5"}) + one + two + END, f"has one {key} for all members behind it"
    wrong = {
        "a sum that is wrong": lambda block: octal(sum(block) + 1, 7) + b" ",
        "a sum that is none": lambda block: b"abcdefg ",
    }
    for name, checksum in wrong.items():
        for place, front in {"first": b"", "second": one}.items():
            yield f"{name}, {place}", front + member(b"x", b"x", checksum=checksum) + two + END, "stands no tar header"
    for size in (
        b"abc".ljust(12, b"\0"),
        b"-1".ljust(12, b"\0"),
        b"\xff" * 12,
        b"0o7".ljust(12, b"\0"),
        b"+7".ljust(12, b"\0"),
    ):
        yield f"a size of {size}", one + header(b"x", size) + padded(b"x") + END, "stands no tar header"
    yield "a size of 2^88 - 1", one + header(b"x", b"\x80" + b"\xff" * 11), "stands no tar header"
    yield "a pax size that is none", pax(size=b"many") + one + END, "the pax header at offset 0 is damaged"
    yield "a pax length that is none", member(
        b"x", b"999 path=x\n", b"x"
    ) + one + END, "the pax header at offset 0 is damaged"
    yield "an empty pax name", pax(path=b"") + one + END, "the pax header at offset 0 is damaged"
    yield "a name of 2 MiB", member(b"L", b"l" * (2 << 20), b"L") + one + END, "has a name of 2097152 bytes"
    yield "nothing", b"", "an empty file, not a tar file"
    yield "text", b"no tar file at all " * 99, "text, not a tar file"


def gnu_times(comparison):
    """GNU tar's incremental archives have times where POSIX has the folder, and tarfile takes them for one."""
    times = octal(1234567890) * 2
    path = comparison.write(member(b"one", b"first", magic=b"ustar  \0", prefix=times) + END)
    if [bytes.fromhex(name) for name, _ in theirs(path)] != [times[:11] + b"/one"]:
        comparison.fail("GNU's times", f"tarfile reads {theirs(path)}")
    comparison.equal("GNU's times", [[b"one".hex(), b"first".hex()]], comparison.ours(path)["members"])


def main():
    comparison = beside.Comparison("tar", sys.argv[1])
    for name, content in accepted(comparison.random):
        path = comparison.write(content)
        ours = comparison.ours(path)
        comparison.equal(name, theirs(path), ours["error"] if "error" in ours else ours["members"])
    for name, content, *words in refused(comparison.random):
        path = comparison.write(content)
        comparison.refused(name, theirs(path), [comparison.ours(path).get("error", "")], *words)
    gnu_times(comparison)
    comparison.finish(f"tarfile of Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
