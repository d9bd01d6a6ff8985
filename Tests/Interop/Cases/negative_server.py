"""The misbehaving server of gRPC's negative-http2-interop-test-descriptions.md.

usage: negative_server.py --port=PORT --test_case=CASE [--response_size=BYTES]

Prints `listening on ADDRESS`. On SIGTERM it prints what the client did wrong and
exits 1 if that is anything.
"""

import argparse
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from frameserver import FrameServer
from wire import message


def number(value: int) -> bytes:
    octets = bytearray()
    while value >= 128:
        octets.append(value % 128 + 128)
        value //= 128
    return bytes(octets + bytes([value]))


def response(size: int) -> bytes:
    """A SimpleResponse whose payload has `size` bytes, with gRPC's prefix."""
    payload = b"\x12" + number(size) + bytes(size)
    return message(b"\x0a" + number(len(payload)) + payload)


class Misbehaving(FrameServer):
    """Answers as it should; the cases below differ in one respect each."""

    size = 314159

    def served(self, stream):
        stream.headers()
        stream.data_frames(response(self.size))
        stream.trailers()


class GoAway(Misbehaving):
    calls: list = []

    def opened(self, stream):
        self.calls.append((stream.connection.number, stream.number))

    def served(self, stream):
        if len(self.calls) > 1 and stream.connection.number == self.calls[0][0]:
            # It was sent before the GOAWAY had come: not served, as that said.
            return
        super().served(stream)
        if stream.connection.number == 0:
            stream.connection.goaway(stream.number)

    def close(self):
        super().close()
        if self.calls[-1] == self.calls[0] or self.calls[-1][0] == 0 or len(self.calls) < 2:
            self.faults.append(f"the calls came as {self.calls} (connection, stream)")


class GoAwayFirst(GoAway):
    """The GOAWAY comes while the first call is under way."""

    def served(self, stream):
        if stream.connection.number == 0 and len(self.calls) == 1:
            stream.connection.goaway(stream.number)
        Misbehaving.served(self, stream)


class RstAfterHeader(Misbehaving):
    def served(self, stream):
        stream.headers()
        stream.rst(0)


class RstDuringData(Misbehaving):
    def served(self, stream):
        stream.headers()
        body = response(self.size)
        stream.data_frames(body[:len(body) // 2])
        stream.rst(0)


class RstAfterData(Misbehaving):
    def served(self, stream):
        stream.headers()
        stream.data_frames(response(self.size))
        stream.rst(0)


class Ping(Misbehaving):
    def served(self, stream):
        connection = stream.connection
        connection.ping()
        stream.headers()
        connection.ping()
        for _ in range(3):
            connection.ping()
        stream.data_frames(response(self.size))
        connection.ping()
        # Before the call ends: a client that has closed by then answers what comes after it with
        # a reset, which takes its last answers along.
        while connection.pings:
            connection.read()
        stream.trailers()

    def left(self, connection):
        if connection.pings:
            self.faults.append(f"{connection.pings} pings were not acknowledged")


class MaxStreams(Misbehaving):
    def began(self, connection):
        connection.settings(max_concurrent_streams=1)

    def opened(self, stream):
        connection = stream.connection
        open_streams = [one for one in connection.streams.values()
                        if one.reset is None and not getattr(one, "answered", False)]
        if connection.acknowledged and len(open_streams) > 1:
            self.faults.append(f"{len(open_streams)} streams at a time")

    def served(self, stream):
        stream.headers()
        stream.data_frames(response(self.size))
        # Counted as open until the client can know that it is not.
        stream.answered = True
        stream.trailers()


class DataFramePadding(Misbehaving):
    def served(self, stream):
        stream.headers()
        body = response(self.size)
        # The padding outweighs what it pads: a client that does not give it back to the
        # windows is soon stuck.
        stream.data_frames(body[:20_000], size=50, padding=255)
        stream.data_frames(body[20_000:], size=5_000, padding=17)
        stream.trailers()


CASES = {
    "goaway": GoAway, "goaway_first": GoAwayFirst, "rst_after_header": RstAfterHeader,
    "rst_during_data": RstDuringData, "rst_after_data": RstAfterData, "ping": Ping,
    "max_streams": MaxStreams, "data_frame_padding": DataFramePadding,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--test_case", choices=CASES, required=True)
    parser.add_argument("--response_size", type=int, default=Misbehaving.size)
    flags = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    Misbehaving.size = flags.response_size
    server = CASES[flags.test_case](flags.port)
    print(f"listening on 127.0.0.1:{server.port}", flush=True)
    ended.wait()
    server.close()
    for fault in server.faults:
        print(fault, file=sys.stderr)
    return 1 if server.faults else 0


if __name__ == "__main__":
    sys.exit(main())
