"""CRC-32C (Castagnoli), which the store wants of what is written to it; Python's own library has another one."""
from __future__ import annotations

import struct
from typing import List


def _tables() -> List[List[int]]:
    """Slicing by 8: table k is for a byte with k bytes behind it."""
    first = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        first.append(value)
    tables = [first]
    for _ in range(7):
        tables.append([first[value & 255] ^ value >> 8 for value in tables[-1]])
    return tables


_TABLES = _tables()


def crc32c(data: bytes, previous: int = 0) -> int:
    """Some megabytes a second. crc32c(b"123456789") is 0xe3069283."""
    t0, t1, t2, t3, t4, t5, t6, t7 = _TABLES
    crc = previous ^ 0xFFFFFFFF
    whole = len(data) & ~7
    for low, high in struct.iter_unpack("<II", memoryview(data)[:whole]):
        low ^= crc
        crc = (t7[low & 255] ^ t6[low >> 8 & 255] ^ t5[low >> 16 & 255] ^ t4[low >> 24]
               ^ t3[high & 255] ^ t2[high >> 8 & 255] ^ t1[high >> 16 & 255] ^ t0[high >> 24])
    for byte in memoryview(data)[whole:]:
        crc = t0[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
