"""Our reader of safetensors files (initialize.from) beside the package of that name."""

import json
import math
import struct
import sys

import beside

if __name__ == "__main__":
    beside.enter_packages()
import safetensors  # noqa: E402

OURS = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "I32": 4, "U8": 1}
OTHERS = {
    "BOOL": 1,
    "I8": 1,
    "I16": 2,
    "U16": 2,
    "U32": 4,
    "U64": 8,
    "F8_E5M2": 1,
    "F8_E4M3": 1,
    "F8_E8M0": 1,
    "C64": 8,
}


def file(header, buffer=b"", length=None):
    """header: JSON, or its text."""
    text = header if isinstance(header, bytes) else json.dumps(header, ensure_ascii=False).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + buffer


def tensor(shape, begin, dtype="U8", width=1):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, begin + width * math.prod(shape)]}


def theirs(path):
    def read():
        content = path.read_bytes()
        with safetensors.safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata() or {}
        return {
            "metadata": {key.encode().hex(): value.encode().hex() for key, value in metadata.items()},
            "tensors": {
                name.encode().hex(): [entry["dtype"], entry["shape"], bytes(entry["data"]).hex()]
                for name, entry in safetensors.deserialize(content)
            },
        }

    return beside.attempt(read, safetensors.SafetensorError)


def random_file(generator):
    """Tensors of any type and shape in any order, names and metadata of any script, and padding."""
    entries, begin = [], 0
    for i in range(generator.randrange(12)):
        dtype = generator.choice(list(OURS))
        shape = [generator.choice((0, 1, 2, 3, 5)) for _ in range(generator.randrange(9))]
        while math.prod(shape) > 2000:
            shape.pop()
        name = f"{i}" + "".join(generator.choices('ab./ _"\\äß中😀\u007f', k=generator.randrange(20)))
        entries.append((name, tensor(shape, begin, dtype, OURS[dtype])))
        begin = entries[-1][1]["data_offsets"][1]
    generator.shuffle(entries)  # the order of the header is not that of the buffer
    if generator.random() < 0.5:
        strings = ["".join(generator.choices('k\n\t\u0000"ü中', k=generator.randrange(8))) for _ in range(6)]
        entries.insert(generator.randrange(len(entries) + 1), ("__metadata__", dict(zip(strings[::2], strings[1::2]))))
    text = json.dumps(
        dict(entries),
        ensure_ascii=generator.random() < 0.5,
        separators=generator.choice(((",", ":"), (", ", ": "), (" ,\n", "\t:"))),
    ).encode()
    return file(text + b" " * generator.randrange(20), generator.randbytes(begin))


def accepted(generator):
    for dtype, width in OURS.items():
        for shape in ((), (1,), (0,), (3, 0, 2), (2, 3), (1,) * 8):
            yield f"{dtype} {shape}", file(
                {"x": tensor(shape, 0, dtype, width)}, generator.randbytes(width * math.prod(shape))
            )
    yield "no tensors", file({})
    yield "no tensors, but metadata", file({"__metadata__": {"a": "b"}})
    yield "empty metadata", file({"__metadata__": {}, "x": tensor((1,), 0)}, b"x")
    yield "null for metadata", file(b'{"__metadata__":null,"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x")
    yield "padding", file(b"{}" + b" " * 4000)
    yield "unaligned", file(
        {"a": tensor((3,), 0), "b": tensor((2,), 3, "F64", 8), "c": tensor((), 19, "BF16", 2)}, generator.randbytes(21)
    )
    yield "in another order", file(
        {"z": tensor((2,), 3), "a": tensor((3,), 0), "m": tensor((1,), 5)}, generator.randbytes(6)
    )
    yield "empty ones at one place", file({"z": tensor((0,), 0), "a": tensor((2,), 0), "m": tensor((0, 3), 2)}, b"ab")
    yield "keys in another order", file({"x": dict(reversed(tensor((2,), 0).items()))}, b"ab")
    yield "names of any script", file({'ä中😀"\\/': tensor((1,), 0)}, b"x")
    yield "escapes", file(b'{"\\u00e4\\ud83d\\ude00\\/":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x")
    yield "many tensors", file({f"t{i}": tensor((1,), i) for i in range(3000)}, generator.randbytes(3000))
    for i in range(150):
        yield f"random {i}", random_file(generator)


def refused(generator):
    one = {"a": tensor((2,), 0)}
    text = b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]%s}%s}'
    for dtype, width in OTHERS.items():
        yield f"type {dtype}", file(
            {"x": tensor((4,), 0, dtype, width)}, bytes(4 * width)
        ), 'tensor "x"', f'dtype "{dtype}" is not'
    yield "type F4", file(
        {"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, b"ab"
    ), 'tensor "x"', 'dtype "F4" is not'
    yield "type none", file({"x": tensor((1,), 0, "Q7")}, b"a"), 'tensor "x"', 'dtype "Q7" is not'
    yield "a hole in front", file({"a": tensor((2,), 1)}, b"abc"), 'tensor "a" begins at 1, the one before ends at 0'
    yield "a hole between", file(
        {**one, "b": tensor((1,), 3)}, b"abcd"
    ), 'tensor "b" begins at 3, the one before ends at 2'
    yield "a hole behind", file(one, b"abc"), "tensors end at 2, the buffer has 3 bytes"
    yield "an overlap", file({**one, "b": tensor((2,), 1)}, b"abc"), 'tensor "b" begins at 1, the one before ends at 2'
    yield "one place for two", file(
        {**one, "b": tensor((2,), 0)}, b"ab"
    ), 'tensor "b" begins at 0, the one before ends at 2'
    yield "cut off", file(one, b"a"), "tensors end at 2, the buffer has 1 bytes"
    yield "cut off in the header", file(one)[:20], "is over the file's 20 bytes"
    yield "cut off in the length", b"\1\2\3", "3 bytes are too few for a safetensors file"
    yield "nothing", b"", "an empty file, not a safetensors file"
    yield "offsets that do not hold the shape", file(
        {"a": {**tensor((2,), 0), "shape": [3]}}, b"ab"
    ), 'tensor "a"', "do not hold U8 [3]"
    yield "offsets the wrong way", file(
        {"a": {**tensor((2,), 0), "data_offsets": [2, 0]}}, b"ab"
    ), 'tensor "a"', "do not hold U8 [2]"
    shapes = {
        "a negative number": [-1],
        "a number that is no integer below 2^64": [1.5],
        "a string": ["2"],
        "null": [None],
        "an array": [[2]],
    }
    for words, shape in shapes.items():
        content = file({"a": {**tensor((2,), 0), "shape": shape}}, b"ab")
        yield f"a shape of {shape}", content, f'tensor "a": did not expect {words}'
    large = file({"a": {**tensor((2,), 0), "shape": [1 << 32, 1 << 32]}}, b"ab")
    yield "a shape of 2^64 numbers", large, 'tensor "a": number of elements is over 2^62'
    yield "a name twice", file(
        text % (b"", b',"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'), b"ab"
    ), 'tensor "a" given twice'
    yield "a name twice, apart", file(
        text % (b"", b',"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}'), b"abc"
    ), 'tensor "a" given twice'
    yield "a key twice", file(text % (b',"dtype":"U8"', b""), b"ab"), 'tensor "a": key "dtype" given twice'
    yield "metadata twice", file(
        text % (b"", b',"__metadata__":{},"__metadata__":{}'), b"ab"
    ), "__metadata__ given twice"
    yield "a key of metadata twice", file(
        text % (b"", b',"__metadata__":{"k":"1","k":"2"}'), b"ab"
    ), '__metadata__ key "k": given twice'
    yield "metadata of a number", file(
        {"__metadata__": {"k": 1}, **one}, b"ab"
    ), '__metadata__ key "k": did not expect a number'
    yield "another key", file({"a": {**one["a"], "stride": [1]}}, b"ab"), 'tensor "a": unknown key "stride"'
    yield "a key less", file(
        {"a": {"dtype": "U8", "shape": [2]}}, b"ab"
    ), 'tensor "a": dtype, shape or data_offsets is missing'
    headers = {
        "a newline behind": b"{}\n",
        "zeros behind": b"{}\0\0",
        "a blank in front": b" {}",
        "an array": b"[]",
        "text behind": b"{} x",
        "a mark of UTF-8": b"\xef\xbb\xbf{}",
    }
    for name, header in headers.items():
        yield f"a header with {name}", file(header), "safetensors header: not one JSON object padded with spaces"
    yield "two objects", file(b"{}{}"), "safetensors header: not JSON at byte 3"
    yield "no UTF-8", file(b'{"__metadata__":{"\xff":"x"}}'), "safetensors header: __metadata__: not JSON at byte 19"
    yield "an empty header", file(b""), "a file that begins with zeros, not a safetensors file"
    yield "nine extents", file({"a": tensor((1,) * 9, 0)}, b"a"), 'tensor "a": shape has over 8 numbers'
    yield "a name of 257 bytes", file({"n" * 257: tensor((1,), 0)}, b"a"), "of 257 bytes: want 1 to 256 bytes"
    yield "no name", file({"": tensor((1,), 0)}, b"a"), 'tensor name "" of 0 bytes: want 1 to 256 bytes'
    yield "a name with a newline", file({"a\nb": tensor((1,), 0)}, b"a"), "without control characters"
    yield "17 MiB of header", file(b"{}" + b" " * (17 << 20)), "header of 17825794 bytes, over 16 MiB"
    yield "101 MB of header", file(b"{}" + b" " * 101_000_000), "header of 101000002 bytes, over 16 MiB"
    yield "a length of 2^64 - 1", file(
        b"{}", length=(1 << 64) - 1
    ), "header length 18446744073709551615 is over the file's 10 bytes"
    names = ",".join(f'"{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(100_001))
    yield "100,001 tensors", file(b"{" + names.encode() + b"}"), "over 100000 tensors"


def main():
    comparison = beside.Comparison("safetensors", sys.argv[1])
    for name, content in accepted(comparison.random):
        path = comparison.write(content)
        comparison.equal(name, theirs(path), comparison.ours(path))
    for name, content, *words in refused(comparison.random):
        path = comparison.write(content)
        comparison.refused(name, theirs(path), [comparison.ours(path).get("error", "")], *words)
    comparison.finish(f"safetensors {safetensors.__version__}")


if __name__ == "__main__":
    main()
