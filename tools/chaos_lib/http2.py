"""Reads along in gRPC connections without TLS: which method's messages pass, and a few of their fields.

Only what gRPC's C core sends is understood: header strings without Huffman coding (one with it is taken as unreadable, not as
an error). Frames: RFC 9113; header compression: RFC 7541; the five bytes before a message: gRPC over HTTP/2.
"""
PREFACE_BYTES = 24
DATA, HEADERS, CONTINUATION = 0, 1, 9
END_HEADERS, PADDED, PRIORITY = 4, 8, 32
TABLE_BYTES = 4096
STATIC_NAMES = (
    ":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status "
    "accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow authorization "
    "cache-control content-disposition content-encoding content-language content-length content-location content-range "
    "content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range "
    "if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range referer refresh "
    "retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate").split()


class HeaderTable:
    """Decodes header blocks of one way of a connection, in order."""

    def __init__(self):
        self._entries = []  # newest first
        self._limit = TABLE_BYTES

    def decode(self, block):
        """name -> value; of static entries the name alone is known."""
        headers, at = {}, 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = integer(block, at, 7)
                name, value = self._entry(index)
            elif first & 0xe0 == 0x20:
                self._limit, at = integer(block, at, 5)
                self._evict()
                continue
            else:
                kept = first & 0xc0 == 0x40
                index, at = integer(block, at, 6 if kept else 4)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = string(block, at)
                value, at = string(block, at)
                if kept:
                    self._entries.insert(0, (name, value))
                    self._evict()
            headers[name] = value
        return headers

    def _entry(self, index):
        if index <= len(STATIC_NAMES):
            return STATIC_NAMES[index - 1], ""
        return self._entries[index - len(STATIC_NAMES) - 1]

    def _evict(self):
        while sum(len(name) + len(value) + 32 for name, value in self._entries) > self._limit:
            self._entries.pop()


def integer(block, at, bits):
    limit = (1 << bits) - 1
    value = block[at] & limit
    at += 1
    if value < limit:
        return value, at
    shift = 0
    while True:
        byte = block[at]
        at += 1
        value += (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def string(block, at):
    coded = bool(block[at] & 0x80)
    length, at = integer(block, at, 7)
    text = block[at:at + length].decode("latin-1")
    return ("?" * length if coded else text), at + length


def fields(message):
    """Number -> last value of a protobuf message: int, or bytes. Ends early where the message does."""
    found, at = {}, 0
    try:
        while at < len(message):
            tag, at = varint(message, at)
            kind, size = tag & 7, None
            if kind == 0:
                found[tag >> 3], at = varint(message, at)
                continue
            if kind == 2:
                size, at = varint(message, at)
            size = {1: 8, 5: 4}.get(kind, size)
            if size is None:
                break
            found[tag >> 3] = bytes(message[at:at + size])
            at += size
    except IndexError:
        pass
    return found


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


class Reader:
    """Both ways of one connection. `on_message(method, way, body)` is called before the last byte of a message is passed on;
    ways are "up", of who dialled, and "down"."""

    def __init__(self, on_message=None):
        self.method = None  # of the newest call, "/package.Service/Method"
        self.broken = False  # what passed was not understood; nothing more is read
        self._on_message = on_message
        self._buffers = {"up": bytearray(), "down": bytearray()}
        self._skip = {"up": PREFACE_BYTES, "down": 0}
        self._table = HeaderTable()
        self._block = bytearray()
        self._methods = {}
        self._bodies = {}

    def feed(self, way, data):
        if self.broken or (self._on_message is None and self.method is not None):
            return
        try:
            self._feed(way, data)
        except (IndexError, KeyError):
            self.broken = True  # a flipped bit, say

    def _feed(self, way, data):
        buffer = self._buffers[way]
        buffer += data
        if self._skip[way]:
            skipped = min(self._skip[way], len(buffer))
            del buffer[:skipped]
            self._skip[way] -= skipped
        at = 0
        while len(buffer) - at >= 9:
            size = int.from_bytes(buffer[at:at + 3], "big")
            if len(buffer) - at < 9 + size:
                break
            kind, flags = buffer[at + 3], buffer[at + 4]
            stream = int.from_bytes(buffer[at + 5:at + 9], "big") & 0x7fffffff
            self._frame(way, kind, flags, stream, bytes(buffer[at + 9:at + 9 + size]))
            at += 9 + size
        del buffer[:at]

    def _frame(self, way, kind, flags, stream, payload):
        if kind in (DATA, HEADERS) and flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        if kind == DATA:
            self._data(way, stream, payload)
        elif kind in (HEADERS, CONTINUATION) and way == "up":
            if kind == HEADERS and flags & PRIORITY:
                payload = payload[5:]
            self._block += payload
            if flags & END_HEADERS:
                self.method = self._methods[stream] = self._table.decode(bytes(self._block)).get(":path", "?")
                self._block.clear()

    def _data(self, way, stream, payload):
        if self._on_message is None:
            return
        body = self._bodies.setdefault((way, stream), bytearray())
        body += payload
        while len(body) >= 5:
            size = int.from_bytes(body[1:5], "big")
            if len(body) < 5 + size:
                break
            self._on_message(self._methods.get(stream, "?"), way, bytes(body[5:5 + size]))
            del body[:5 + size]
