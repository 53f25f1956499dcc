"""HTTP/2 by hand, for what no gRPC client does: calls whose answers are never taken, streams that are opened and reset."""
import struct


class Http2:
    """The few frames of RFC 9113 that a client needs which never takes an answer."""
    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    DATA, HEADERS, RESET, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
    CANCEL = struct.pack(">I", 8)
    ACK, END_STREAM, END_HEADERS = 1, 1, 4

    @staticmethod
    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    @classmethod
    def hello(cls):
        no_window = struct.pack(">HI", 4, 0)
        return cls.PREFACE + cls.frame(cls.SETTINGS, 0, 0, no_window)

    @classmethod
    def headers(cls, stream, path, more=()):
        def text(value):  # of less than 127 bytes, without compression
            return bytes([len(value)]) + value.encode()
        fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "held", "te": "trailers",
                  "content-type": "application/grpc", **dict(more)}
        block = b"".join(b"\x00" + text(name) + text(value) for name, value in fields.items())
        return cls.frame(cls.HEADERS, cls.END_HEADERS, stream, block)

    @classmethod
    def call(cls, stream, path, message):
        data = b"\x00" + struct.pack(">I", len(message)) + message
        return cls.headers(stream, path) + cls.frame(cls.DATA, cls.END_STREAM, stream, data)

    @classmethod
    def opened_and_reset(cls, stream, path):
        return cls.headers(stream, path) + cls.frame(cls.RESET, 0, stream, cls.CANCEL)
