"""Pictures that tests make themselves, as PNG files."""
import struct
import zlib


def png(height, width, channels, pixels):
    """pixels: height * width * channels bytes, row by row."""
    rows = b"".join(b"\0" + bytes(pixels[i : i + width * channels]) for i in range(0, len(pixels), width * channels))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def grey_pixels(png_bytes):
    """The stored numbers of a PNG of one byte a pixel, a palette's or grey: (height, width, bytes)."""
    width, height, depth, colours = struct.unpack(">IIBB", png_bytes[16:26])
    assert depth == 8 and colours in (0, 3), (depth, colours)
    packed, at = b"", 8
    while at < len(png_bytes):
        length, kind = struct.unpack(">I4s", png_bytes[at : at + 8])
        packed += png_bytes[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    raw, rows, above = zlib.decompress(packed), [], bytes(width)
    for y in range(height):
        method, row = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1 : (y + 1) * (width + 1)])
        for x in range(width):
            left, up, corner = (row[x - 1] if x else 0), above[x], (above[x - 1] if x else 0)
            nearest = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))[2]
            row[x] = (row[x] + (0, left, up, (left + up) // 2, nearest)[method]) % 256
        rows.append(bytes(row))
        above = row
    return height, width, b"".join(rows)
