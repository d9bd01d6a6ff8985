"""TLS with other people's implementations: grpcio, Python's ssl, buf."""

import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import harness
import stubs
from harness import LIMIT
from vencejo.auth.v1 import auth_pb2, auth_pb2_grpc
from vencejo.chat.v1 import chat_pb2, chat_pb2_grpc

INFO = "vencejo.auth.v1.AuthService/GetServerInfo"


class Authority:
    """An issuer and the certificates it gave, in a folder."""

    def __init__(self, test, name: str):
        self.folder = Path(tempfile.mkdtemp(prefix="vencejo-tls-"))
        test.addClassCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.name = name
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", f"/CN={name}")

    def openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True,
                       timeout=60)

    def issue(self, file: str, common_name: str, alternative: str = "") -> None:
        """Writes file.pem and file.key; replaces them when they are there."""
        (self.folder / "extensions").write_text(
            f"subjectAltName={alternative}\n" if alternative else "basicConstraints=CA:FALSE\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", f"{file}.key", "-out", f"{file}.csr", "-subj", f"/CN={common_name}")
        self.openssl("x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                     "-CAcreateserial", "-out", f"{file}.pem", "-days", "2",
                     "-extfile", "extensions")

    def path(self, file: str) -> str:
        return str(self.folder / file)

    def read(self, file: str) -> bytes:
        return (self.folder / file).read_bytes()


class TLS(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("openssl") is None:
            raise unittest.SkipTest("no openssl to make certificates with")
        cls.ca, cls.other = Authority(cls, "Ours"), Authority(cls, "Another")
        cls.ca.issue("server", "server", "DNS:localhost,IP:127.0.0.1")
        cls.ca.issue("client", "a client")
        cls.other.issue("client", "a stranger")
        cls.server = harness.Server(
            "--tls-cert", cls.ca.path("server.pem"), "--tls-key", cls.ca.path("server.key"))
        cls.addClassCleanup(cls.server.close)

    def channel(self, address: str = "", roots: bytes = b"", **more) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(roots or self.ca.read("ca.pem"), **more)
        channel = grpc.secure_channel(address or self.server.address, credentials, options=[
            ("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return channel

    def is_serving(self, channel: grpc.Channel) -> bool:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=LIMIT)
        return answer.status == health_pb2.HealthCheckResponse.SERVING

    def handshake(self, **options) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.ca.path("ca.pem"))
        context.set_alpn_protocols(options.pop("alpn", ["h2"]))
        for name, value in options.items():
            setattr(context, name, value)
        link = socket.create_connection(("127.0.0.1", self.server.port), timeout=LIMIT)
        self.addCleanup(link.close)
        secured = context.wrap_socket(link, server_hostname="localhost")
        self.addCleanup(secured.close)
        return secured

    def test_grpcio(self):
        channel = self.channel()
        self.assertTrue(self.is_serving(channel))
        auth = auth_pb2_grpc.AuthServiceStub(channel)
        signed_up = auth.SignUp(auth_pb2.SignUpRequest(
            handle="ana", password=harness.PASSWORD, display_name="Ana"), timeout=LIMIT)
        token = (("authorization", f"Bearer {signed_up.tokens.access_token}"),)
        stream = chat_pb2_grpc.ChatServiceStub(channel).Subscribe(
            chat_pb2.SubscribeRequest(), metadata=token, timeout=LIMIT)
        self.assertTrue(next(stream).resume_token)
        stream.cancel()

    def test_an_issuer_nobody_trusts(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.is_serving(self.channel(roots=self.other.read("ca.pem")))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_versions_and_protocols(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            link = self.handshake(minimum_version=version, maximum_version=version)
            self.assertEqual(link.selected_alpn_protocol(), "h2")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.handshake(minimum_version=ssl.TLSVersion.TLSv1_1,
                           maximum_version=ssl.TLSVersion.TLSv1_1)

    def test_plain_text_on_the_ciphered_port(self):
        for sent in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), b"GET / HTTP/1.1\r\n\r\n", bytes(99)):
            with self.server.connect() as link:
                link.sendall(sent)
                try:
                    while link.recv(65536):
                        pass
                except ConnectionResetError:
                    pass
        self.assertTrue(self.is_serving(self.channel()))

    def test_our_tools(self):
        with_ca = ("--tls-ca", self.ca.path("ca.pem"))
        ended = harness.run("call", self.server.address, INFO, *with_ca)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("vencejo.chat.v1", json.loads(ended.stdout)["packages"])
        self.assertIn("ChatService", harness.run("list", self.server.address, *with_ca).stdout)
        ended = harness.run("console", "--server", self.server.address, *with_ca, "-c", "server")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for arguments in ((), ("--tls",), ("--tls-ca", self.other.path("ca.pem")),
                          (*with_ca, "--tls-server-name", "elsewhere.example")):
            ended = harness.run("call", self.server.address, INFO, *arguments)
            self.assertEqual(ended.returncode, 64 + grpc.StatusCode.UNAVAILABLE.value[0], arguments)
            self.assertTrue(ended.stderr)

    def test_buf_curl(self):
        buf = Path(sys.executable).parent / "buf"
        if not buf.exists():
            self.skipTest("no buf (it comes with --ci)")
        ended = subprocess.run(
            [str(buf), "curl", "--protocol", "grpc", "--cacert", self.ca.path("ca.pem"),
             f"https://{self.server.address}/{INFO}"], capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_client_certificates(self):
        server = harness.Server(
            "--tls-cert", self.ca.path("server.pem"), "--tls-key", self.ca.path("server.key"),
            "--tls-client-ca", self.ca.path("ca.pem"))
        self.addCleanup(server.close)
        pair = lambda authority: {"private_key": authority.read("client.key"),
                                  "certificate_chain": authority.read("client.pem")}
        self.assertTrue(self.is_serving(self.channel(server.address, **pair(self.ca))))
        for refused in ({}, pair(self.other)):
            with self.assertRaises(grpc.RpcError) as caught:
                self.is_serving(self.channel(server.address, **refused))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_hangup_reads_the_files_anew(self):
        serial = lambda: self.handshake().getpeercert()["serialNumber"]
        before = serial()
        watch = health_pb2_grpc.HealthStub(self.channel()).Watch(
            health_pb2.HealthCheckRequest(), timeout=LIMIT)
        next(watch)
        self.ca.issue("server", "server", "DNS:localhost,IP:127.0.0.1")
        self.server.peer.process.send_signal(signal.SIGHUP)
        limit = time.monotonic() + LIMIT
        while serial() == before:
            self.assertLess(time.monotonic(), limit, "still the old certificate")
        self.assertTrue(watch.is_active(), "calls under way go on")
        watch.cancel()

    def test_files_that_do_not_do(self):
        folder = self.ca.folder / "data"
        for certificate, key, says in (
            ("none.pem", "server.key", "none.pem"), ("server.pem", "none.key", "none.key"),
            ("server.pem", "ca.key", "match|ca.key"), ("server.csr", "server.key", "server.csr"),
        ):
            ended = harness.run("serve", "--listen", "127.0.0.1:0", "--data", str(folder),
                                "--tls-cert", self.ca.path(certificate), "--tls-key", self.ca.path(key))
            self.assertNotEqual(ended.returncode, 0, certificate)
            self.assertRegex(ended.stderr, says)
        ended = harness.run("serve", "--tls-cert", self.ca.path("server.pem"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("--tls-key", ended.stderr)


if __name__ == "__main__":
    unittest.main()
