"""gRPC's framing and headers done wrong: each gets the status its documents name.

https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, compression.md,
statuscodes.md and http-grpc-status-mapping.md.
"""

import gzip
import struct
import unittest

import hpack

import harness
import wire
from base import ServerCase
from wire import DATA, END_HEADERS, END_STREAM, HEADERS, frame, message, request_fields

CHECK = "/grpc.health.v1.Health/Check"
OK, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND = 0, 2, 3, 4, 5
RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL, UNAUTHENTICATED = 8, 12, 13, 16


class Answer:
    """What the server said on stream 1."""

    def __init__(self):
        self.fields, self.data, self.reset, self.blocks = {}, b"", None, 0

    @property
    def http(self) -> str:
        return self.fields.get(":status", "")

    @property
    def status(self):
        text = self.fields.get("grpc-status")
        return None if text is None else int(text)


class Frames(ServerCase):
    def exchange(self, *frames: bytes) -> Answer:
        answer, decoder, buffered = Answer(), hpack.Decoder(), b""
        with self.server.connect() as link:
            link.sendall(wire.PREFACE + wire.SETTINGS + frame(4, wire.ACK, 0, b"") + b"".join(frames))
            while True:
                while len(buffered) >= 9:
                    length, kind, flags = int.from_bytes(buffered[:3]), buffered[3], buffered[4]
                    if len(buffered) < 9 + length:
                        break
                    stream = int.from_bytes(buffered[5:9])
                    payload, buffered = buffered[9:9 + length], buffered[9 + length:]
                    if kind == HEADERS:
                        answer.blocks += 1
                        answer.fields.update(decoder.decode(payload))
                    elif kind == DATA and stream == 1:
                        answer.data += payload
                    elif kind == wire.RST_STREAM and stream == 1:
                        answer.reset = int.from_bytes(payload)
                    if stream == 1 and (kind == wire.RST_STREAM or
                                        kind in (HEADERS, DATA) and flags & END_STREAM):
                        return answer
                chunk = link.recv(65536)
                if not chunk:
                    return answer
                buffered += chunk

    def call(self, body: bytes = message(b""), path: str = CHECK, *more, **replaced) -> Answer:
        return self.exchange(
            frame(HEADERS, END_HEADERS, 1, request_fields(path, *more, **replaced)),
            frame(DATA, END_STREAM, 1, body))

    def test_as_it_should_be(self):
        for answer in (self.call(), self.call(content_type="application/grpc+proto"),
                       self.call(content_type="application/grpc;charset=utf-8")):
            self.assertEqual((answer.http, answer.status), ("200", OK), answer.fields)
            self.assertTrue(answer.fields["content-type"].startswith("application/grpc"))
            self.assertEqual(answer.data, message(b"\x08\x01"))

    def test_a_page_for_people(self):
        """What opens the address without gRPC gets a text, whatever it asks with."""
        for method, body in (("GET", None), ("HEAD", None), ("POST", b"a=1")):
            fields = request_fields("/", method=method, te=None, content_type=None)
            if body is None:
                answer = self.exchange(frame(HEADERS, END_HEADERS | END_STREAM, 1, fields))
            else:
                answer = self.exchange(frame(HEADERS, END_HEADERS, 1, fields),
                                       frame(DATA, END_STREAM, 1, body))
            self.assertEqual(answer.http, "200", method)
            self.assertTrue(answer.fields["content-type"].startswith("text/plain"))
            self.assertGreater(int(answer.fields["content-length"]), 40)
            self.assertNotIn("grpc-status", answer.fields)
            if method == "HEAD":
                self.assertEqual(answer.data, b"")
            else:
                self.assertEqual(len(answer.data), int(answer.fields["content-length"]))
                self.assertIn(b"gRPC", answer.data)

    def test_no_page_elsewhere(self):
        answer = self.exchange(frame(HEADERS, END_HEADERS | END_STREAM, 1, request_fields(
            "/elsewhere", method="GET", te=None, content_type=None)))
        self.assertEqual(answer.http, "405")
        self.assertEqual(answer.fields["allow"], "POST")
        # A gRPC call of that name is a call, and nobody serves it.
        self.assertEqual(self.call(path="/").status, UNIMPLEMENTED)

    def test_body_in_many_pieces(self):
        body = message(b"\x0a\x04none")
        answer = self.exchange(
            frame(HEADERS, END_HEADERS, 1, request_fields(CHECK)),
            *(frame(DATA, 0, 1, bytes([octet])) for octet in body), frame(DATA, END_STREAM, 1, b""))
        self.assertEqual(answer.status, NOT_FOUND)
        self.assertEqual(answer.blocks, 1, "an error without a message is trailers only")

    def test_paths(self):
        for path in ("/", "//", "/x", "/no.Service/Method", "/grpc.health.v1.Health/",
                     CHECK + "/", CHECK.lower(), "/" + "x" * 5000):
            self.assertEqual(self.call(path=path).status, UNIMPLEMENTED, path)
        # No HTTP/2 request at all (RFC 9113, section 8.3.1).
        self.assertEqual(self.call(path="nothing").reset, 1)

    def test_content_types(self):
        for kind in ("text/plain", "application/json", "application/grpcx", ""):
            answer = self.call(content_type=kind)
            self.assertEqual(answer.http, "415", kind)
        self.assertEqual(self.call(content_type=None).http, "415")

    def test_methods(self):
        for method in ("GET", "PUT", "DELETE"):
            answer = self.call(method=method)
            self.assertTrue(answer.http == "405" or answer.status not in (None, OK), answer.fields)

    def test_number_of_messages(self):
        """A unary call has one, no more and no less."""
        for body in (b"", message(b"") * 2):
            self.assertIn(self.call(body).status, (INTERNAL, UNIMPLEMENTED, INVALID_ARGUMENT), body)
        without_data = self.exchange(
            frame(HEADERS, END_HEADERS | END_STREAM, 1, request_fields(CHECK)))
        self.assertIn(without_data.status, (INTERNAL, UNIMPLEMENTED, INVALID_ARGUMENT))

    def test_broken_prefixes(self):
        for body in (b"\x00", b"\x00\x00\x00", message(b"") + b"\x00", b"\x00\x00\x00\x00\x05ab"):
            self.assertIn(self.call(body).status, (INTERNAL, INVALID_ARGUMENT), body)

    def test_claimed_lengths(self):
        for length in (4 * 2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1):
            answer = self.call(b"\x00" + struct.pack(">I", length) + b"some")
            self.assertEqual(answer.status, RESOURCE_EXHAUSTED, length)

    def test_compression_nobody_agreed_on(self):
        squeezed = gzip.compress(b"")
        compressed = b"\x01" + struct.pack(">I", len(squeezed)) + squeezed
        self.assertEqual(self.call(compressed).status, INTERNAL, "flag without an encoding")
        self.assertEqual(self.call(compressed, CHECK, (b"grpc-encoding", b"identity")).status, INTERNAL)
        self.assertEqual(self.call(compressed, CHECK, (b"grpc-encoding", b"gzip")).status, OK)
        packed = gzip.compress(b"\x0a\x04none")
        wrong_sum = packed[:-8] + bytes(octet ^ 0xFF for octet in packed[-8:-4]) + packed[-4:]
        for content in (wrong_sum, packed[:-1], packed[:12], b"no gzip at all", b""):
            broken = b"\x01" + message(content)[1:]
            answer = self.call(broken, CHECK, (b"grpc-encoding", b"gzip"))
            self.assertIn(answer.status, (INTERNAL, INVALID_ARGUMENT), content)
        answer = self.call(compressed, CHECK, (b"grpc-encoding", b"snappy-of-mars"))
        self.assertIn("gzip", answer.fields.get("grpc-accept-encoding", ""))
        self.assertEqual(answer.status, UNIMPLEMENTED)
        self.assertEqual(self.call(b"\x02" + bytes(4)).status, INTERNAL, "no such flag")

    def test_bytes_that_are_no_message(self):
        for junk in (b"\xff", b"\x0a\x7f", b"\x0b" * 300, b"\x0a\x02\xff\xfe"):
            self.assertIn(self.call(message(junk)).status, (INTERNAL, INVALID_ARGUMENT), junk)

    def test_timeouts(self):
        for text in (b"", b"S", b"1", b"-1S", b"1x", b"123456789S", b" 1S", "１S".encode()):
            answer = self.call(message(b""), CHECK, (b"grpc-timeout", text))
            self.assertNotEqual(answer.status, OK, text)
            self.assertTrue(answer.http != "200" or answer.status in (INTERNAL, INVALID_ARGUMENT, UNKNOWN),
                            (text, answer.fields))
        for text in (b"99999999H", b"10S", b"99999999u"):
            self.assertEqual(self.call(message(b""), CHECK, (b"grpc-timeout", text)).status, OK, text)

    def test_timeouts_that_are_over(self):
        for text in (b"0n", b"0S", b"0H", b"00000000m"):
            self.assertEqual(self.call(message(b""), CHECK, (b"grpc-timeout", text)).status,
                             DEADLINE_EXCEEDED, text)

    def test_metadata_too_large(self):
        answer = self.exchange(
            *self.large_block(request_fields(CHECK, *((b"x-%d" % i, b"v" * 1000) for i in range(20)))),
            frame(DATA, END_STREAM, 1, message(b"")))
        self.assertTrue(answer.status == RESOURCE_EXHAUSTED or answer.reset is not None, answer.fields)

    def large_block(self, block: bytes) -> list:
        pieces = [block[i:i + 16_000] for i in range(0, len(block), 16_000)]
        last = len(pieces) - 1
        return [frame(HEADERS if i == 0 else wire.CONTINUATION, END_HEADERS if i == last else 0, 1, piece)
                for i, piece in enumerate(pieces)]

    def test_metadata_that_does_not_decode(self):
        for more in ((b"x-raw-bin", b"not base64!"), (b"x-raw-bin", b"A"), (b"x-text", b"\xff\x80"),
                     (b"authorization", b"\x00")):
            answer = self.call(message(b""), CHECK, more)
            self.assertTrue(answer.fields or answer.reset is not None, more)

    def test_base64_with_and_without_padding(self):
        for text in (b"AAECAw", b"AAECAw==", b"AAEC,AwQF"):
            self.assertEqual(self.call(message(b""), CHECK, (b"x-raw-bin", text)).status, OK, text)


if __name__ == "__main__":
    unittest.main()
