"""Bytes that no client would send, on the plain port: the server lives on."""

import os
import random
import re
import socket
import struct
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from base import ServerCase
from grpc_health.v1 import health_pb2, health_pb2_grpc

import harness
import wire
from harness import LIMIT
from vencejo.chat.v1 import chat_pb2
from wire import PREFACE, SETTINGS, frame

MUTATIONS = 20_000 if harness.IN_CI else 2_000

# What a browser says first when it is sent to https://.
TLS_HELLO = bytes.fromhex(
    "16030100c4010000c00303" + "5a" * 32 + "20" + "a5" * 32 +
    "000813021303130100ff" + "0100006f" + "000b000403000102" + "000a000c000a001d0017001e00190018"
    + "00230000" + "00160000" + "00170000" + "000d0024" + "00" * 36)


CALLS = [
    [("/grpc.health.v1.Health/Check", b""), ("/grpc.health.v1.Health/Watch", b"\x0a\x01x")],
    [("/vencejo.auth.v1.AuthService/GetServerInfo", b""),
     ("/vencejo.chat.v1.ChatService/SendMessage", b"\x0a\x05chats\x12\x01x\x1a\x04\x0a\x02\x0a\x00")],
    [("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", b"\x3a\x00"),
     ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", b"\x22\x06a.B/cd")],
    [("/vencejo.record.v1.RecordService/QueryRecords", b"\x0a\x01x\x12\x09\x0a\x01T\x12\x04\x0a\x02\x0a\x00"),
     ("/nobody.Home/Call", bytes(50))],
]


def mutate(sent: bytearray, chance: random.Random) -> None:
    """One change somewhere; the preface mostly stays, or little behind it would be tried."""
    start = 0 if chance.random() < 0.05 else len(PREFACE)
    at = chance.randrange(start, len(sent))
    kind = chance.randrange(6)
    if kind == 0:
        sent[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        sent[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        del sent[at:at + chance.randint(1, 9)]
    elif kind == 3:
        sent[at:at] = chance.randbytes(chance.randint(1, 9))
    elif kind == 4:
        sent[at:at] = sent[at:at + chance.randint(1, 40)]
    else:
        del sent[at:]
    sent += bytes(max(0, len(PREFACE) + 9 - len(sent)))


class Hostile(ServerCase):
    def setUp(self):
        self.channel = harness.channel(self.server.address)
        self.addCleanup(self.channel.close)

    def tearDown(self):
        answer = health_pb2_grpc.HealthStub(self.channel).Check(
            health_pb2.HealthCheckRequest(), timeout=LIMIT)
        self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        self.assertTrue(self.server.peer.alive())

    def hung_up_on(self, sent: bytes, finish: bool = False, first_answer: bool = False) -> bytes:
        """Sends, and expects the server to close; returns what it said before.

        With `finish` our side ends, with `first_answer` only once the server
        has said something, so that the calls in what was sent do run.
        """
        with self.server.connect() as link:
            heard = b""
            try:
                link.sendall(sent)
                if first_answer:
                    heard += link.recv(65536)
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
        self.assertIn(b"HTTP/1.1 400", self.hung_up_on(TLS_HELLO))

    def test_http_1(self):
        heard = self.hung_up_on(b"GET / HTTP/1.1\r\nHost: vencejo\r\nConnection: close\r\n\r\n")
        self.assertTrue(heard.startswith(b"HTTP/1.1 400 "), heard)
        self.assertIn(b"HTTP/2", heard)

    def test_frame_larger_than_allowed(self):
        heard = self.hung_up_on(PREFACE + SETTINGS + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + bytes(99))
        self.assertIn(b"\x07", heard, "no GOAWAY")

    def test_frames_on_streams_that_are_not_open(self):
        self.hung_up_on(PREFACE + SETTINGS + frame(0, 0, 5, b"data"), finish=True)
        self.hung_up_on(PREFACE + SETTINGS + frame(9, 0, 1, b"continued"), finish=True)
        self.hung_up_on(PREFACE + SETTINGS + frame(1, 4, 2, b"\x82"), finish=True)

    def test_header_block_that_does_not_decode(self):
        self.hung_up_on(PREFACE + SETTINGS + frame(1, 5, 1, b"\xff\xff\xff\xff\xff"), finish=True)

    def test_mutations_of_valid_calls(self):
        """Fuzzing from outside: bits flipped, bytes lost, doubled and moved."""
        chance = random.Random(os.environ.get("VENCEJO_FUZZ_SEED", "vencejo"))
        valid = [PREFACE + SETTINGS + frame(4, 1, 0, b"") + b"".join(
            wire.call(1 + 2 * index, path, payload, (b"grpc-timeout", b"100m"),
                      (b"authorization", b"Bearer nonsense"), (b"x-raw-bin", b"AAEC"))
            for index, (path, payload) in enumerate(calls)) + frame(6, 0, 0, bytes(8))
            for calls in CALLS]
        for round in range(MUTATIONS):
            sent = bytearray(chance.choice(valid))
            for _ in range(chance.randint(1, 4)):
                mutate(sent, chance)
            try:
                self.hung_up_on(bytes(sent), finish=True, first_answer=chance.random() < 0.5)
            except AssertionError as error:
                raise AssertionError(f"round {round}, sent {bytes(sent).hex()}") from error
            self.assertTrue(self.server.peer.alive(), f"round {round} killed it: {bytes(sent).hex()}")

    def test_many_connections_come_and_go(self):
        for _ in range(300):
            self.server.connect().close()
        links = [self.server.connect() for _ in range(200)]
        for link in links:
            link.close()

    @unittest.skipUnless(harness.IN_CI, "takes 40 s")
    def test_subscribers_that_vanish_are_found_out(self):
        """One that answers no PING is gone; one that does may read nothing for as long as it likes."""
        ana = self.person("vanishing")
        token = (b"authorization", b"Bearer " + ana.tokens.access_token.encode())
        links = [self.server.connect() for _ in range(2)]
        for link in links:
            link.settimeout(60)
            link.sendall(PREFACE + SETTINGS + frame(wire.SETTINGS_FRAME, wire.ACK, 0, b"") + wire.call(
                1, "/vencejo.chat.v1.ChatService/Subscribe", b"", token))
        answering, silent = links
        ping = b"\x00\x00\x08" + bytes([wire.PING, 0, 0, 0, 0, 0])
        heard = b""
        while len(heard.partition(ping)[2]) < 8:
            heard += answering.recv(65536)
        opaque = heard.partition(ping)[2][:8]
        answering.sendall(frame(wire.PING, wire.ACK, 0, opaque))
        while silent.recv(65536):
            pass
        answering.sendall(frame(wire.PING, 0, 0, b"are you?"))
        heard = b""
        while b"are you?" not in heard:
            chunk = answering.recv(65536)
            self.assertTrue(chunk, "cut off although it answers")
            heard += chunk
        for link in links:
            link.close()

    def test_rapid_reset(self):
        """CVE-2023-44487, with h2's frames: the connection is ended, the others are served."""
        fields = wire.request_fields("/grpc.health.v1.Health/Watch")
        for opened in (b"", frame(wire.DATA, wire.END_STREAM, 0, wire.message(b""))):
            sent = bytearray(PREFACE + SETTINGS + frame(wire.SETTINGS_FRAME, wire.ACK, 0, b""))
            for number in range(1, 20_001, 2):
                stream = struct.pack(">I", number)
                body = opened[:5] + stream + opened[9:] if opened else b""
                sent += (frame(wire.HEADERS, wire.END_HEADERS, number, fields) + body
                         + frame(wire.RST_STREAM, 0, number, (8).to_bytes(4, "big")))
            heard = self.hung_up_on(bytes(sent))
            # GOAWAY, its last stream, and ENHANCE_YOUR_CALM.
            self.assertRegex(heard, rb"\x07\x00\x00\x00\x00\x00....\x00\x00\x00\x0b(?s:.*)$")

    def test_honest_cancellation(self):
        """Three of four calls are cancelled, by many at once: that is no attack."""
        stub = health_pb2_grpc.HealthStub(self.channel)
        wrong = []

        def work(seed: int):
            chance = random.Random(seed)
            for _ in range(250):
                call = stub.Watch(health_pb2.HealthCheckRequest(), timeout=LIMIT)
                if chance.random() < 0.5:
                    next(call)
                call.cancel()
                if call.code() is not grpc.StatusCode.CANCELLED:
                    wrong.append(call.code())
                if chance.random() < 0.33:
                    stub.Check(health_pb2.HealthCheckRequest(), timeout=LIMIT)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        self.assertEqual(wrong, [])

    def resident(self) -> int:
        """KiB, as Linux counts them."""
        status = Path(f"/proc/{self.server.peer.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def test_memory_of_stopped_readers_is_given_back(self):
        """100 large answers for peers that open no window, and then go away."""
        ana = self.person("ana")
        chat = ana.call(ana.chat.CreateChat, chat_pb2.CreateChatRequest(
            chat=chat_pb2.Chat(kind=chat_pb2.CHAT_KIND_SELF))).chat.name
        for _ in range(15):
            ana.send(chat, "x" * 60_000)
        page = chat_pb2.ListMessagesRequest(parent=chat, page_size=15).SerializeToString()
        token = (b"authorization", b"Bearer " + ana.tokens.access_token.encode())
        no_window = frame(wire.SETTINGS_FRAME, 0, 0, struct.pack(">HI", 4, 0))
        before = self.resident()
        links = [self.server.connect() for _ in range(2)]
        for link in links:
            link.sendall(PREFACE + no_window + b"".join(
                wire.call(2 * i + 1, "/vencejo.chat.v1.ChatService/ListMessages", page, token)
                for i in range(50)))
        self.wait_until(lambda: self.resident() > before + 60_000, "the answers were not made")
        for link in links:
            link.close()
        self.wait_until(lambda: self.resident() < before + 20_000, "it kept what it had")

    def wait_until(self, condition, otherwise: str) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), end, otherwise)
            time.sleep(0.02)  # between two looks at the server


if __name__ == "__main__":
    unittest.main()
