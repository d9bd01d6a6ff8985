"""An HTTP/2 server that answers with exactly the frames it is told to."""

import socket
import struct
import threading

import hpack

import wire
from wire import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, frame

GOAWAY = 7
SETTINGS, WINDOW_UPDATE, ACK, PADDED = wire.SETTINGS_FRAME, wire.WINDOW_UPDATE, wire.ACK, 8
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE = 3, 4


class Gone(Exception):
    """The client has closed the connection."""


def block(*fields) -> bytes:
    return b"".join(
        wire.field(name.encode() if isinstance(name, str) else name,
                   value.encode() if isinstance(value, str) else value) for name, value in fields)


HEAD = block((":status", "200"), ("content-type", "application/grpc"))


class Stream:
    def __init__(self, connection, number: int):
        self.connection, self.number = connection, number
        self.fields, self.data, self.ended, self.reset = [], b"", False, None
        self.window = connection.initial_window

    def headers(self, fields: bytes = HEAD, end: bool = False) -> None:
        """With CONTINUATION frames where a block is longer than a frame may be."""
        pieces = [fields[i:i + 16_000] for i in range(0, len(fields), 16_000)]
        for index, piece in enumerate(pieces):
            self.connection.send(
                CONTINUATION if index else HEADERS,
                (END_HEADERS if index == len(pieces) - 1 else 0) | (END_STREAM if end and not index else 0),
                self.number, piece)

    def data_frames(self, body: bytes, size: int = 16384, padding: int = 0) -> None:
        """Frames of at most `size` bytes, as far as the client's windows allow."""
        while body:
            overhead = padding + 1 if padding else 0
            while (room := min(self.window, self.connection.window) - overhead) <= 0:
                self.connection.read()
                if self.reset is not None:
                    return
            piece, body = body[:min(size, room)], body[min(size, room):]
            self.window -= len(piece) + overhead
            self.connection.window -= len(piece) + overhead
            payload = bytes([padding]) + piece + bytes(padding) if padding else piece
            self.connection.send(DATA, PADDED if padding else 0, self.number, payload)

    def trailers(self, *fields) -> None:
        self.headers(block(*(fields or (("grpc-status", "0"),))), end=True)

    def rst(self, code: int) -> None:
        self.connection.send(RST_STREAM, 0, self.number, code.to_bytes(4, "big"))


class Connection:
    """One client's connection; `served` is called with each stream whose request has ended."""

    def __init__(self, server, link: socket.socket, number: int):
        self.server, self.link, self.number = server, link, number
        self.buffered, self.streams, self.queue = b"", {}, []
        self.window = self.initial_window = 65535
        self.decoder = hpack.Decoder()
        self.pings = 0
        self.acknowledged = 0

    def send(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> None:
        try:
            self.link.sendall(frame(kind, flags, stream, payload))
        except OSError:
            raise Gone from None

    def reply(self, *frame) -> None:
        """What a frame asks for; a client that has gone asks no more, but what it sent counts."""
        try:
            self.send(*frame)
        except Gone:
            pass

    def ping(self) -> None:
        self.pings += 1
        self.send(PING, 0, 0, struct.pack(">Q", self.pings))

    def goaway(self, last: int, code: int = 0, text: bytes = b"") -> None:
        self.send(GOAWAY, 0, 0, struct.pack(">II", last, code) + text)

    def settings(self, **values: int) -> None:
        self.send(SETTINGS, 0, 0, b"".join(
            struct.pack(">HI", globals()[name.upper()], value) for name, value in values.items()))

    def _receive(self, count: int) -> bytes:
        while len(self.buffered) < count:
            try:
                chunk = self.link.recv(65536)
            except OSError:
                chunk = b""
            if not chunk:
                raise Gone
            self.buffered += chunk
        octets, self.buffered = self.buffered[:count], self.buffered[count:]
        return octets

    def read(self) -> None:
        """Takes one frame."""
        head = self._receive(9)
        payload = self._receive(int.from_bytes(head[:3], "big"))
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big")
        stream = self.streams.get(number)
        if kind == HEADERS:
            assert flags & END_HEADERS and not flags & (PADDED | 0x20), "a client of another kind"
            stream = self.streams[number] = Stream(self, number)
            stream.fields = self.decoder.decode(payload, raw=True)
            self.server.opened(stream)
        elif kind == DATA and stream:
            stream.data += payload
            if payload:
                for target in (0, number):
                    self.reply(WINDOW_UPDATE, 0, target, len(payload).to_bytes(4, "big"))
        elif kind == RST_STREAM and stream:
            stream.reset = int.from_bytes(payload, "big")
        elif kind == SETTINGS and flags & ACK:
            self.acknowledged += 1
        elif kind == SETTINGS:
            for key, value in struct.iter_unpack(">HI", payload):
                if key == INITIAL_WINDOW_SIZE:
                    for one in self.streams.values():
                        one.window += value - self.initial_window
                    self.initial_window = value
            self.reply(SETTINGS, ACK, 0)
        elif kind == PING and flags & ACK:
            self.pings -= 1
        elif kind == PING:
            self.reply(PING, ACK, 0, payload)
        elif kind == WINDOW_UPDATE:
            increment = int.from_bytes(payload, "big")
            if number == 0:
                self.window += increment
            elif stream:
                stream.window += increment
        if kind in (HEADERS, DATA) and flags & END_STREAM and stream:
            stream.ended = True
            self.queue.append(stream)

    def run(self) -> None:
        try:
            assert self._receive(len(wire.PREFACE)) == wire.PREFACE
            self.server.began(self)
            while True:
                while self.queue:
                    self.server.served(self.queue.pop(0))
                self.read()
        except Gone:
            pass
        finally:
            self.link.close()
            self.server.left(self)


class FrameServer:
    """Subclasses say how requests are answered. `faults` is what the client did wrong."""

    def __init__(self, port: int = 0):
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.faults, self.connections, self.threads = [], [], []
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, link, len(self.connections))
            self.connections.append(connection)
            thread = threading.Thread(target=connection.run, daemon=True)
            self.threads.append(thread)
            thread.start()

    def close(self) -> None:
        """Waits until the clients have gone."""
        self.listener.close()
        for thread in self.threads:
            thread.join(10)
            if thread.is_alive():
                self.faults.append("a connection is still open")

    def began(self, connection: Connection) -> None:
        connection.settings()

    def opened(self, stream: Stream) -> None:
        pass

    def served(self, stream: Stream) -> None:
        raise NotImplementedError

    def left(self, connection: Connection) -> None:
        pass
