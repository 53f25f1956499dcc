"""What the jobs of examples/ read that train with pairs of sentences, without the packages and programs that make it."""
import struct

CONTROL, UNKNOWN = 3, 2  # kinds of a piece; NORMAL is 1


def varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def field(number, content):
    """Bytes of a message in protocol buffers' wire format."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def model(words, ids):
    """A SentencePiece model: pad, unknown, begin, end, the words, and others that no text has, until there are `ids`."""
    pieces = [("<pad>", CONTROL), ("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    pieces += [("\u2581" + word, 1) for word in words]
    pieces += [(f"\u2581{number}", 1) for number in range(ids - len(pieces))]
    return b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", 0) + b"\x18" + varint(kind))
                    for text, kind in pieces) + field(2, b"") + field(3, b"")


def write_pairs(folder, draws, ids=4000):
    """The files of examples/translate_data.py, and a tokenizer: sentences of words by number, and the same backwards.

    draws: numbers for words and lengths.
    """
    (folder / "translate").mkdir()
    words = [chr(ord("a") + i) * 3 for i in range(20)]
    (folder / "translate" / "pieces.model").write_bytes(model(words, ids))
    sentences = [[words[draw % 20] for draw in draws[i:i + 1 + draws[i] % 12]] for i in range(0, len(draws), 12)]
    held_out = len(sentences) // 4
    for part, of_part in (("test", sentences[:held_out]), ("train", sentences[held_out:])):
        for language, order in (("en", 1), ("de", -1)):
            (folder / "translate" / f"{part}.{language}").write_text("".join(" ".join(one[::order]) + "\n" for one in of_part))
