"""interop.proto over TLS, and what the wire carries, by openssl, h2load and hostile hands."""

import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time
import unittest
from pathlib import Path

import grpc

import certificates
import harness
import interop_pb2
import interop_pb2_grpc
import wire
from echo_checks import EchoChecks
from harness import LIMIT
from test_echo import drive, swift_program

HERE = Path(__file__).resolve().parent


def credentials(identity: str = "", roots: str = "root") -> grpc.ChannelCredentials:
    made = certificates.made()
    if not identity:
        return grpc.ssl_channel_credentials(made.read(made.pem(roots)))
    return grpc.ssl_channel_credentials(
        made.read(made.pem(roots)), made.read(made.key(identity)), made.read(made.pem(identity)))


def serve(*more: str) -> harness.Peer:
    made = certificates.made()
    return harness.Peer([swift_program(), "serve", "127.0.0.1:0", "--tls-cert", made.pem("server"),
                         "--tls-key", made.key("server"), *more])


class GrpcioClient(EchoChecks, unittest.TestCase):
    """Every check of interop.proto, ciphered: grpcio's client against our server."""

    @classmethod
    def setUpClass(cls):
        cls.peer = serve()
        cls.addClassCleanup(cls.peer.stop)
        cls.address = cls.peer.address
        cls.credentials = credentials()


class GrpcioServer(unittest.TestCase):
    """Our client against grpcio's server, and our own."""

    def check(self, address: str, *options: str) -> None:
        drive(self, [swift_program(), "check", address, "--tls-ca",
                     certificates.made().pem("root"), *options])

    def identity(self) -> tuple:
        made = certificates.made()
        return "--tls-cert", made.pem("ana"), "--tls-key", made.key("ana")

    def start(self, *clients: str) -> str:
        made = certificates.made()
        peer = harness.Peer([sys.executable, str(HERE / "echo_server.py"), "127.0.0.1:0",
                             made.pem("server"), made.key("server"), *clients])
        self.addCleanup(peer.stop)
        return peer.address

    def test_checks(self):
        self.check(self.start())

    def test_mutual(self):
        self.check(self.start(certificates.made().pem("people")), *self.identity())

    def test_our_own(self):
        peer = serve("--tls-client-ca", certificates.made().pem("people"))
        self.addCleanup(peer.stop)
        self.check(peer.address.replace("127.0.0.1", "localhost"), *self.identity())


class MutualServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peer = serve("--tls-client-ca", certificates.made().pem("people"))
        cls.addClassCleanup(cls.peer.stop)

    def call(self, credentials):
        with harness.channel(self.peer.address, credentials=credentials) as channel:
            return interop_pb2_grpc.EchoStub(channel).Unary(
                interop_pb2.EchoRequest(payload=b"hola"), timeout=LIMIT).payload

    def test_known_client(self):
        self.assertEqual(self.call(credentials("ana")), b"hola")

    def test_others_stay_outside(self):
        for identity in ("", "server"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.call(credentials(identity))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.call(credentials("ana")), b"hola")


class Wire(unittest.TestCase):
    """What goes over the wire, by openssl and by hand."""

    @classmethod
    def setUpClass(cls):
        cls.peer = serve("--threads", "1")
        cls.addClassCleanup(cls.peer.stop)
        host, port = cls.peer.address.rsplit(":", 1)
        cls.endpoint = host, int(port)

    def tearDown(self):
        with harness.channel(self.peer.address, credentials=credentials()) as channel:
            answer = interop_pb2_grpc.EchoStub(channel).Unary(
                interop_pb2.EchoRequest(payload=b"alive"), timeout=LIMIT)
        self.assertEqual(answer.payload, b"alive")
        self.assertTrue(self.peer.alive())

    def s_client(self, *options: str, stdin: str = "") -> str:
        ended = subprocess.run(
            ["openssl", "s_client", "-connect", self.peer.address, "-CAfile",
             certificates.made().pem("root"), "-servername", "localhost", *options],
            input=stdin, capture_output=True, text=True, errors="replace", timeout=LIMIT)
        return ended.stdout + ended.stderr

    def test_versions(self):
        for flag, name in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            said = self.s_client(flag, "-alpn", "h2")
            self.assertIn(name, said)
            self.assertIn("ALPN protocol: h2", said)
            self.assertIn("Verify return code: 0 (ok)", said)
            self.assertIn("Compression: NONE", said)
        for flag in ("-tls1_1", "-tls1"):
            said = self.s_client(flag, "-alpn", "h2", "-cipher", "ALL:@SECLEVEL=0")
            self.assertIn("alert protocol version", said)

    def test_ciphers_that_http2_forbids(self):
        """RFC 9113, appendix A."""
        for cipher in ("ECDHE-ECDSA-AES128-SHA", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA384"):
            said = self.s_client("-tls1_2", "-alpn", "h2", "-cipher", cipher)
            self.assertIn("handshake failure", said, cipher)

    def test_other_protocols(self):
        self.assertIn("alert no application protocol", self.s_client("-alpn", "http/1.1"))
        began = time.monotonic()
        self.assertIn("No ALPN negotiated", self.s_client())
        self.assertLess(time.monotonic() - began, 5, "the server hangs up")

    def test_negotiating_anew(self):
        said = self.s_client("-tls1_2", "-alpn", "h2", stdin="R\n" * 50)
        self.assertIn("RENEGOTIATING", said)
        self.assertIn("no renegotiation", said)

    def test_h2load(self):
        if not shutil.which("h2load"):
            self.skipTest("no h2load")
        ended = subprocess.run(
            ["h2load", "-n", "2000", "-c", "10", "-m", "10", f"https://{self.peer.address}/"],
            capture_output=True, text=True, timeout=LIMIT)
        # A GET is answered, if not to its liking.
        self.assertIn("2000 done", ended.stdout)
        self.assertIn("0 errored", ended.stdout)

    # By hand.

    def session(self):
        context = ssl.create_default_context(cafile=certificates.made().pem("root"))
        context.set_alpn_protocols(["h2"])
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        return context.wrap_bio(incoming, outgoing, server_hostname="localhost"), incoming, outgoing

    def shake(self, link, session, incoming, outgoing, piece: int) -> None:
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.push(link, outgoing.read(), piece)
                incoming.write(link.recv(65536))
        self.push(link, outgoing.read(), piece)

    def push(self, link, data: bytes, piece: int) -> None:
        for at in range(0, len(data), piece):
            link.sendall(data[at:at + piece])

    def pull(self, link, session, incoming) -> bytes:
        while True:
            try:
                return session.read(65536)
            except ssl.SSLWantReadError:
                heard = link.recv(65536)
                if not heard:
                    incoming.write_eof()
                incoming.write(heard)

    def test_records_of_every_cut(self):
        payload = os.urandom(100_000)
        request = interop_pb2.EchoRequest(payload=payload).SerializeToString()
        body = wire.message(request)
        frames = (wire.PREFACE + wire.SETTINGS
                  + wire.frame(wire.HEADERS, wire.END_HEADERS, 1,
                               wire.request_fields("/vencejo.interop.v1.Echo/Unary", _scheme="https"))
                  + b"".join(wire.frame(wire.DATA, 0, 1, body[at:at + 16_000])
                             for at in range(0, len(body), 16_000))
                  + wire.frame(wire.DATA, wire.END_STREAM, 1, b""))
        for record, piece in ((10_000, 1 << 20), (10_000, 999), (16_384, 16_000), (1, 1 << 20)):
            with self.subTest(record=record, piece=piece), \
                    socket.create_connection(self.endpoint, LIMIT) as link:
                session, incoming, outgoing = self.session()
                self.shake(link, session, incoming, outgoing, piece)
                sent = frames if record > 1 else frames[:200]
                for at in range(0, len(sent), record):
                    session.write(sent[at:at + record])
                    self.push(link, outgoing.read(), piece)
                # Its SETTINGS come before anything else.
                self.assertEqual(self.pull(link, session, incoming)[3], 4)

    def test_half_closed(self):
        """Our close_notify is answered with one, ours first or in the middle of a call."""
        for said in (b"", wire.PREFACE + wire.SETTINGS, wire.PREFACE + wire.SETTINGS[:5]):
            with socket.create_connection(self.endpoint, LIMIT) as link:
                session, incoming, outgoing = self.session()
                self.shake(link, session, incoming, outgoing, 1 << 20)
                if said:
                    session.write(said)
                try:
                    session.unwrap()
                except ssl.SSLWantReadError:
                    pass
                self.push(link, outgoing.read(), 1 << 20)
                with self.assertRaises(ssl.SSLZeroReturnError):
                    while True:
                        if not self.pull(link, session, incoming):
                            raise ssl.SSLZeroReturnError

    def test_ends_in_the_middle(self):
        session, _, outgoing = self.session()
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            hello = outgoing.read()
        for cut in (0, 1, 5, 50, len(hello) - 1, len(hello)):
            with socket.create_connection(self.endpoint, LIMIT) as link:
                link.sendall(hello[:cut])
                link.shutdown(socket.SHUT_WR)
                while link.recv(65536):
                    pass

    def test_damaged_handshakes(self):
        chance = random.Random(3)
        session, _, outgoing = self.session()
        try:
            session.do_handshake()
        except ssl.SSLWantReadError:
            hello = outgoing.read()
        for _ in range(300):
            damaged = bytearray(hello)
            for _ in range(chance.randint(1, 5)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            self.hung_up_on(bytes(damaged))

    def test_plain_and_random_bytes(self):
        chance = random.Random(4)
        self.hung_up_on(wire.PREFACE + wire.SETTINGS)
        self.hung_up_on(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for size in (1, 100, 100_000):
            self.hung_up_on(chance.randbytes(size))

    def hung_up_on(self, sent: bytes) -> None:
        with socket.create_connection(self.endpoint, LIMIT) as link:
            try:
                link.sendall(sent)
                link.shutdown(socket.SHUT_WR)
                while link.recv(65536):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass


if __name__ == "__main__":
    unittest.main()
