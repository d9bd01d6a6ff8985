"""Bytes that no client would send, on the plain port: the server lives on."""

import random
import socket
import struct
import unittest

from base import ServerCase
from grpc_health.v1 import health_pb2, health_pb2_grpc

import harness
from harness import LIMIT

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = struct.pack(">I", 0)[1:] + bytes([4, 0]) + bytes(4)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


# What a browser says first when it is sent to https://.
TLS_HELLO = bytes.fromhex(
    "16030100c4010000c00303" + "5a" * 32 + "20" + "a5" * 32 +
    "000813021303130100ff" + "0100006f" + "000b000403000102" + "000a000c000a001d0017001e00190018"
    + "00230000" + "00160000" + "00170000" + "000d0024" + "00" * 36)


class Hostile(ServerCase):
    def setUp(self):
        self.channel = harness.channel(self.server.address)
        self.addCleanup(self.channel.close)

    def tearDown(self):
        answer = health_pb2_grpc.HealthStub(self.channel).Check(
            health_pb2.HealthCheckRequest(), timeout=LIMIT)
        self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        self.assertTrue(self.server.peer.alive())

    def hung_up_on(self, sent: bytes, finish: bool = False) -> bytes:
        """Sends, and expects the server to close; returns what it said before."""
        with self.server.connect() as link:
            heard = b""
            try:
                link.sendall(sent)
                if finish:
                    link.shutdown(socket.SHUT_WR)
                while chunk := link.recv(65536):
                    heard += chunk
            except (ConnectionResetError, BrokenPipeError):
                pass
            except TimeoutError:
                self.fail(f"still connected after {LIMIT} s; it said {heard[:200]!r}")
            return heard

    def test_nothing_at_all(self):
        self.hung_up_on(b"", finish=True)
        self.server.connect().close()

    def test_silence_is_not_waited_on_for_ever(self):
        # Together, since each takes as long as the server's patience.
        silent = [self.server.connect() for _ in range(3)]
        silent[1].sendall(PREFACE[:10])
        silent[2].sendall(PREFACE + SETTINGS[:4])
        for link in silent:
            with link:
                while link.recv(65536):
                    pass

    def test_random_bytes(self):
        chance = random.Random(1)
        for size in (1, 24, 1000, 200_000):
            self.hung_up_on(chance.randbytes(size) + bytes(24), finish=False)

    def test_random_bytes_after_the_preface(self):
        chance = random.Random(2)
        for _ in range(20):
            self.hung_up_on(PREFACE + SETTINGS + chance.randbytes(5000), finish=True)

    def test_tls_hello(self):
        self.hung_up_on(TLS_HELLO)

    def test_http_1(self):
        self.hung_up_on(b"GET / HTTP/1.1\r\nHost: vencejo\r\nConnection: close\r\n\r\n")

    def test_frame_larger_than_allowed(self):
        heard = self.hung_up_on(PREFACE + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(99))
        self.assertIn(b"\x07", heard, "no GOAWAY")

    def test_frames_on_streams_that_are_not_open(self):
        self.hung_up_on(PREFACE + SETTINGS + frame(0, 0, 5, b"data"), finish=True)
        self.hung_up_on(PREFACE + SETTINGS + frame(9, 0, 1, b"continued"), finish=True)
        self.hung_up_on(PREFACE + SETTINGS + frame(1, 4, 2, b"\x82"), finish=True)

    def test_header_block_that_does_not_decode(self):
        self.hung_up_on(PREFACE + SETTINGS + frame(1, 5, 1, b"\xff\xff\xff\xff\xff"), finish=True)

    def test_many_connections_come_and_go(self):
        for _ in range(300):
            self.server.connect().close()
        links = [self.server.connect() for _ in range(200)]
        for link in links:
            link.close()


if __name__ == "__main__":
    unittest.main()
