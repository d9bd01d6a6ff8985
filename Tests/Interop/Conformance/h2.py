"""An HTTP/2 client that sends exactly the frames it is told to (RFC 9113, RFC 7541)."""

import socket
import ssl
import struct

import hpack

import wire

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 0x20

(NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT, STREAM_CLOSED,
 FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR) = range(10)
ENHANCE_YOUR_CALM = 11

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 1, 2, 3, 4
MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 5, 6

# What has not come by then does not come.
LIMIT = 3.0


class Failed(Exception):
    """The server did something else."""


def settings(**values: int) -> bytes:
    return b"".join(struct.pack(">HI", globals()[name.upper()], value)
                    for name, value in values.items())


def block(fields) -> bytes:
    """A header block of literals without indexing: the same bytes in any state."""
    return b"".join(wire.field(name.encode(), value.encode()) for name, value in fields)


class Frame:
    def __init__(self, kind: int, flags: int, stream: int, payload: bytes):
        self.kind, self.flags, self.stream, self.payload = kind, flags, stream, payload

    def __repr__(self):
        return f"frame(kind {self.kind}, flags {self.flags:#x}, stream {self.stream}, {self.payload[:24]!r})"


class Link:
    """One connection: the preface is sent, and both SETTINGS are acknowledged."""

    def __init__(self, address: tuple[str, int], tls: bool, handshake: bool = True):
        self.socket = socket.create_connection(address, timeout=LIMIT)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket)
            if self.socket.selected_alpn_protocol() != "h2":
                raise Failed("ALPN did not agree on h2")
        self.buffered, self.closed = b"", False
        self.decoder = hpack.Decoder()
        self.decoder.max_allowed_table_size = 65536
        self.scheme = "https" if tls else "http"
        self.peer_settings = {}
        self.last_stream = -1
        if handshake:
            self.handshake()

    def close(self):
        self.socket.close()

    # Sending.

    def raw(self, octets: bytes) -> None:
        try:
            self.socket.sendall(octets)
        except OSError:
            # The server has closed: what it said before is still to be read.
            pass

    def send(self, kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> None:
        self.raw(wire.frame(kind, flags, stream, payload))

    def fields(self, method="GET", path="/", **more):
        fields = {":method": method, ":scheme": self.scheme, ":path": path, ":authority": "vencejo.test"}
        fields.update({name.replace("_", "-"): value for name, value in more.items()})
        return list(fields.items())

    def request(self, stream: int = 1, method: str = "GET", end: bool = True, **more) -> None:
        self.send(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream,
                  block(self.fields(method, **more)))

    # Receiving.

    def next(self) -> Frame | None:
        """The next frame; None once the connection is closed. A wait that lasts fails."""
        while True:
            if len(self.buffered) >= 9:
                length = int.from_bytes(self.buffered[:3], "big")
                if len(self.buffered) >= 9 + length:
                    kind, flags = self.buffered[3], self.buffered[4]
                    stream = int.from_bytes(self.buffered[5:9], "big") & 0x7FFFFFFF
                    payload, self.buffered = self.buffered[9:9 + length], self.buffered[9 + length:]
                    return Frame(kind, flags, stream, payload)
            try:
                chunk = self.socket.recv(65536)
            except TimeoutError:
                raise Failed("nothing comes")
            except OSError:
                chunk = b""
            if not chunk:
                self.closed = True
                return None
            self.buffered += chunk

    def handshake(self, **own: int) -> None:
        self.raw(wire.PREFACE)
        self.send(SETTINGS, payload=settings(**own))
        acknowledged = False
        while not (acknowledged and self.peer_settings):
            frame = self.next()
            if frame is None:
                raise Failed("the connection was closed during the handshake")
            if frame.kind != SETTINGS:
                continue
            if frame.flags & ACK:
                acknowledged = True
            else:
                self.peer_settings = {0: 0, **dict(struct.iter_unpack(">HI", frame.payload))}
                self.send(SETTINGS, ACK)

    def until(self, wanted) -> Frame:
        """The first frame for which `wanted` holds; others pass."""
        while frame := self.next():
            if frame.kind == HEADERS:
                frame.fields = dict(self.decoder.decode(self.whole(frame)))
            if wanted(frame):
                return frame
        raise Failed("the connection was closed")

    def whole(self, frame: Frame) -> bytes:
        payload = frame.payload
        if frame.flags & PADDED:
            payload = payload[1:len(payload) - payload[0]]
        if frame.flags & PRIORITIZED:
            payload = payload[5:]
        while not frame.flags & END_HEADERS:
            frame = self.next()
            payload += frame.payload
        return payload

    # What the cases expect.

    def response(self, stream: int = 1, status: str = "200"):
        """The whole response of a stream: its fields and its body."""
        fields, body = {}, b""
        while True:
            frame = self.until(lambda frame: frame.stream == stream or frame.kind == GOAWAY)
            if frame.kind == HEADERS:
                fields.update(frame.fields)
            elif frame.kind == DATA:
                body += frame.payload
            elif frame.kind == WINDOW_UPDATE:
                continue
            else:
                raise Failed(f"{frame} instead of a response")
            if frame.flags & END_STREAM:
                if fields.get(":status") != status:
                    raise Failed(f"the response says {fields}")
                return fields, body

    def alive(self) -> None:
        """The connection still answers."""
        self.send(PING, 0, 0, b"conforms")
        self.until(lambda frame: frame.kind == PING and frame.flags & ACK
                   and frame.payload == b"conforms")

    def connection_error(self, *codes: int) -> None:
        """GOAWAY with one of the codes, or the connection closed (section 5.4.1)."""
        while frame := self.next():
            if frame.kind == GOAWAY:
                code = int.from_bytes(frame.payload[4:8], "big")
                if code in codes:
                    return
                raise Failed(f"GOAWAY says {code}, not {codes}")

    def stream_error(self, *codes: int, stream: int | None = None) -> None:
        """RST_STREAM with one of the codes, or a connection error (section 5.4.2)."""
        while frame := self.next():
            if frame.kind == GOAWAY:
                code = int.from_bytes(frame.payload[4:8], "big")
            elif frame.kind == RST_STREAM and stream in (None, frame.stream):
                code = int.from_bytes(frame.payload, "big")
            else:
                continue
            if code in codes:
                return
            raise Failed(f"{frame} says {code}, not {codes}")

    def settings_acknowledged(self) -> None:
        self.until(lambda frame: frame.kind == SETTINGS and frame.flags & ACK)


CASES: dict[str, tuple] = {}


def case(section: str, handshake: bool = True):
    """Registers a case by the section it is about and what it does."""
    def register(function):
        CASES[f"{section} {function.__name__}"] = (function, handshake)
        return function
    return register
