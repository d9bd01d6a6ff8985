"""HTTP/2 and gRPC by hand, for what no client library would send."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, RST_STREAM, SETTINGS_FRAME, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """RFC 9113, section 4.1."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(SETTINGS_FRAME, 0, 0, b"")


def field(name: bytes, value: bytes) -> bytes:
    """A literal field without indexing and without Huffman coding (RFC 7541, section 6.2.2)."""
    def string(text: bytes) -> bytes:
        if len(text) < 127:
            return bytes([len(text)]) + text
        rest, octets = len(text) - 127, bytearray([127])
        while rest >= 128:
            octets.append(rest % 128 + 128)
            rest //= 128
        return bytes(octets + bytes([rest])) + text

    return b"\x00" + string(name) + string(value)


def request_fields(path: str, *more, **replaced) -> bytes:
    """The header block of a gRPC call; an argument replaces a field, None leaves it out."""
    fields = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "vencejo",
        "te": "trailers", "content-type": "application/grpc",
    }
    for name, value in replaced.items():
        name = name.replace("_", "-")
        fields[name if name in fields else ":" + name] = value
    block = b"".join(field(n.encode(), v.encode()) for n, v in fields.items() if v is not None)
    return block + b"".join(field(name, value) for name, value in more)


def message(payload: bytes) -> bytes:
    """gRPC's prefix: not compressed, and the length."""
    return b"\x00" + struct.pack(">I", len(payload)) + payload


def call(stream: int, path: str, payload: bytes, *more) -> bytes:
    return (frame(HEADERS, END_HEADERS, stream, request_fields(path, *more))
            + frame(DATA, END_STREAM, stream, message(payload)))
