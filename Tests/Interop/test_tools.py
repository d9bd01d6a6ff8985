"""`vencejo call`, `list`, `describe` and `bench` against grpcio's server."""

import base64
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree
from concurrent import futures
from pathlib import Path

import grpc
import hpack

import certificates
import harness
import stubs
import interop_pb2  # Registers its types with the pool that reflection reads.
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from harness import LIMIT

ECHO = "vencejo.interop.v1.Echo"
HERE = Path(__file__).resolve().parent
PROTO = ("--proto", "interop.proto", "-I", str(HERE))


def echo_server(*arguments: str) -> harness.Peer:
    return harness.Peer([sys.executable, str(HERE / "echo_server.py"), *arguments])


class Tools(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peer = echo_server()
        cls.addClassCleanup(cls.peer.stop)

    def run_ok(self, *arguments: str, **options) -> str:
        ended = harness.run(*arguments, **options)
        self.assertEqual(ended.returncode, 0, ended.stderr + ended.stdout)
        return ended.stdout

    def fails(self, code: int, *arguments: str, **options) -> str:
        ended = harness.run(*arguments, **options)
        self.assertEqual((ended.returncode, ended.stdout), (code, ""), ended.stderr)
        return ended.stderr


class Describe(Tools):
    def test_list(self):
        self.assertIn(ECHO, self.run_ok("list", self.peer.address).splitlines())
        methods = self.run_ok("list", self.peer.address, ECHO).splitlines()
        self.assertIn("ServerStream(vencejo.interop.v1.EchoRequest) returns "
                      "(stream vencejo.interop.v1.EchoResponse)", methods)

    def test_describe(self):
        service = self.run_ok("describe", self.peer.address, ECHO)
        self.assertIn("rpc ClientStream(stream vencejo.interop.v1.EchoRequest)", service)
        self.assertIn("bytes payload = 1;",
                      self.run_ok("describe", self.peer.address, "vencejo.interop.v1.EchoRequest"))
        for method in (f"{ECHO}/Unary", f"{ECHO}.Unary"):
            self.assertEqual(
                self.run_ok("describe", self.peer.address, method),
                "rpc Unary(vencejo.interop.v1.EchoRequest) returns "
                "(vencejo.interop.v1.EchoResponse);\n")
        self.assertIn("service grpc.health.v1.Health", self.run_ok("describe", self.peer.address))
        self.assertIn("enum", self.run_ok(
            "describe", self.peer.address, "grpc.health.v1.HealthCheckResponse.ServingStatus"))
        for symbol, shown in {
            "vencejo.interop.v1.EchoRequest.payload": "bytes payload = 1;\n",
            "grpc.health.v1.HealthCheckResponse.SERVING": "SERVING = 1;\n",
            "grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING": "SERVING = 1;\n",
        }.items():
            self.assertEqual(self.run_ok("describe", self.peer.address, symbol), shown)
        for symbol in ("no.Such", "vencejo.interop.v1.EchoRequest.none"):
            self.assertIn("NOT_FOUND", self.fails(64 + 5, "describe", self.peer.address, symbol))

    def test_a_template_is_a_request(self):
        template = self.run_ok("describe", self.peer.address, f"{ECHO}/Unary", "--template")
        filled = json.loads(template)
        self.assertEqual(set(filled), {
            "payload", "responseBytes", "responseCount", "delayMilliseconds", "failure"})
        del filled["failure"]
        self.run_ok("call", self.peer.address, f"{ECHO}/Unary", "-d", json.dumps(filled))

    def test_files_do_for_reflection(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/set.pb"
            subprocess.run(
                [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}", "--include_imports",
                 f"--descriptor_set_out={path}", "interop.proto"], check=True, timeout=60)
            sources = [("--protoset", path), ("-protoset", path)]
            if shutil.which("protoc"):
                sources += [PROTO, ("-proto", "interop.proto", "-import-path", str(HERE))]
            for source in sources:
                self.assertEqual(self.run_ok("list", *source), ECHO + "\n")
                self.assertIn("rpc Hold(", self.run_ok("describe", ECHO, *source))
                answer = self.run_ok(
                    "call", self.peer.address, f"{ECHO}/Unary", "-d", '{"payload":"AQ=="}', *source)
                self.assertEqual(json.loads(answer)["payload"], "AQ==")
            self.assertIn("did you mean vencejo.interop.v1.Echo?", self.fails(
                1, "call", self.peer.address, "vencejo.interop.v1.Ecoh/Unary", "--protoset", path))
            Path(path).write_bytes(b"\xff\xff")
            self.assertIn("no set of descriptors", self.fails(1, "list", "--protoset", path))


    def test_types_are_kept_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/set.pb"
            self.run_ok("describe", self.peer.address, f"{ECHO}/Unary", "--protoset-out", path)
            files = descriptor_pb2.FileDescriptorSet.FromString(Path(path).read_bytes())
            self.assertEqual({file.name for file in files.file},
                             {"interop.proto", "google/protobuf/any.proto"})
            self.assertEqual(self.run_ok("list", "--protoset", path), ECHO + "\n")

    def test_a_server_with_v1_of_reflection_only(self):
        """Its messages are v1alpha's under another name; grpcio has no package for it."""
        pool = futures.ThreadPoolExecutor(2)
        self.addCleanup(pool.shutdown)
        server = grpc.server(pool)
        servicer = reflection.ReflectionServicer([ECHO])
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
            "grpc.reflection.v1.ServerReflection", {
                "ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(
                    servicer.ServerReflectionInfo,
                    reflection_pb2.ServerReflectionRequest.FromString,
                    reflection_pb2.ServerReflectionResponse.SerializeToString)})])
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        self.assertEqual(self.run_ok("list", address), ECHO + "\n")
        self.assertIn("rpc Unary(", self.run_ok("describe", address, ECHO))


class Call(Tools):
    def call(self, method: str, *arguments: str, **options) -> str:
        return self.run_ok("call", self.peer.address, f"{ECHO}/{method}", *arguments, **options)

    def test_requests_from_standard_input(self):
        for name in ("@", "-"):
            answer = self.call("ClientStream", "-d", name,
                               stdin='{"payload":"AQ=="} {"payload":"AQI="}\n{"payload":"AQID"}')
            self.assertEqual(json.loads(answer)["requestCount"], 3)

    def test_a_stream_is_sent_as_it_is_typed(self):
        process = subprocess.Popen(
            [harness.program(), "call", self.peer.address, f"{ECHO}/Bidirectional", "-d", "@"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        for payload in ("AQ==", "Ag==", "Aw=="):
            # In two pieces, and the answer comes before anything else is said.
            process.stdin.write('{"payload":')
            process.stdin.flush()
            process.stdin.write(f'"{payload}"}}')
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["payload"], payload)
        process.stdin.close()
        self.assertEqual(process.wait(LIMIT), 0)

    def test_text_format(self):
        answers = self.call("Bidirectional", "--format", "text", "-d", "@",
                            stdin='payload: "a"\n\x1epayload: "b"\n')
        self.assertEqual([part.split("\n")[0] for part in answers.split("\x1e")],
                         ['payload: "a"', 'payload: "b"'])

    def test_headers(self):
        ended = harness.run(
            "call", self.peer.address, f"{ECHO}/Unary", "-v", "-H", "x-initial-a: one",
            "-rpc-header", "x-trailing-b: ${WORD}", "-expand-headers", "-reflect-header", "x-c: d",
            "-d", '{"payload":"AQID"}', env={"WORD": "two"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for shown in ("method: rpc Unary(", "  x-initial-a: one\n", "  x-trailing-b: two\n",
                      "sent: 1 messages, 5 bytes, 5 on the wire",
                      # The payload, and a deadline of -1: eleven bytes.
                      "received: 1 messages, 16 bytes, 16 on the wire", "answer 1: 16 bytes",
                      "time: connected "):
            self.assertIn(shown, ended.stderr)
        self.assertIn("no variable NOT_SET", self.fails(
            1, "call", self.peer.address, f"{ECHO}/Unary", "-H", "a: ${NOT_SET}", "--expand-headers"))

    def test_compression_shows_in_the_sizes(self):
        ended = harness.run(
            "call", self.peer.address, f"{ECHO}/Unary", "-v", "--compression", "gzip", "-d",
            json.dumps({"payload": "A" * 40_000, "responseBytes": 1}))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, r"sent: 1 messages, 300\d\d bytes, \d{2,3} on the wire")

    def test_defaults_and_unknown_fields(self):
        self.assertNotIn("index", json.loads(self.call("Unary")))
        for flag in ("--defaults", "-emit-defaults"):
            self.assertEqual(json.loads(self.call("Unary", flag))["index"], 0)
        self.fails(1, "call", self.peer.address, f"{ECHO}/Unary", "-d", '{"none": 1}')
        self.call("Unary", "-d", '{"none": 1}', "-allow-unknown-fields")

    def test_status(self):
        request = json.dumps({"failure": {"code": 9, "message": "not now", "details": [
            {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "3s"}]}})
        said = self.fails(64 + 9, "call", self.peer.address, f"{ECHO}/Unary", "-d", request)
        self.assertIn("FAILED_PRECONDITION: not now", said)
        status = json.loads(self.fails(
            64 + 9, "call", self.peer.address, f"{ECHO}/Unary", "-d", request, "--format-error"))
        self.assertEqual((status["code"], status["message"]), (9, "not now"))
        self.assertEqual(status["details"][0]["value"], "3s")
        self.assertEqual(
            self.fails(64 + 9, "call", self.peer.address, f"{ECHO}/Unary", "-d", request, "-q"), "")
        self.fails(64 + 4, "call", self.peer.address, f"{ECHO}/Unary", "-max-time", "0.5", "-d",
                   '{"delayMilliseconds": 60000}')
        self.fails(64 + 8, "call", self.peer.address, f"{ECHO}/Unary", "--max-msg-sz", "100", "-d",
                   '{"responseBytes": 1000}')

    def test_details_of_unknown_types_are_shown_by_their_bytes(self):
        request = json.dumps({"failure": {"code": 9, "details": [
            {"@type": "type.googleapis.com/google.protobuf.Any", "value": {
                "@type": "type.googleapis.com/google.protobuf.Duration", "value": "3s"}}]}})
        text = ('failure { code: 9 details { type_url: "a.example/no.Such" value: "\\001\\002" } '
                'details { [type.googleapis.com/google.protobuf.Duration] { seconds: 3 } } }')
        status = json.loads(self.fails(
            64 + 9, "call", self.peer.address, f"{ECHO}/Unary", "-d", request, "--format-error"))
        self.assertEqual(status["details"][0]["value"]["value"], "3s")
        said = self.fails(64 + 9, "call", self.peer.address, f"{ECHO}/Unary", "-d", text,
                          "--format", "text")
        self.assertIn("no.Such (2 bytes)", said)

    def test_output_file_and_user(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "answers"
            path.write_text("old")
            self.assertEqual(self.call("ServerStream", "-o", str(path), "-d", '{"responseCount": 3}'), "")
            self.assertEqual(len(path.read_text().splitlines()), 3)
        for user in ("ana:secret", "a:", "ab:c", "abc:d"):
            ended = harness.run("call", self.peer.address, f"{ECHO}/Unary", "-v", "-u", user)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn(f"authorization: Basic {base64.b64encode(user.encode()).decode()}\n",
                          ended.stderr)

    def test_a_server_that_says_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            for flags in ((), ("-k",)):
                self.assertIn("UNAVAILABLE", self.fails(
                    64 + 14, "call", address, f"{ECHO}/Unary", "--connect-timeout", "0.3", *flags))

    def test_authority(self):
        """As it is on the wire: the first block of fields of whoever calls."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            process = subprocess.Popen(
                [harness.program(), "list", address, "--authority", "shop.example"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait, LIMIT)
            listener.settimeout(LIMIT)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(LIMIT)
                connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # SETTINGS
                stream = connection.makefile("rb")
                self.addCleanup(stream.close)
                stream.read(24)
                while True:
                    head = stream.read(9)
                    body = stream.read(int.from_bytes(head[:3]))
                    if head[3] == 1:
                        break
            fields = dict(hpack.Decoder().decode(body))
            self.assertEqual(fields[":authority"], "shop.example")

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = echo_server(f"unix:{folder}/echo.sock")
            self.addCleanup(peer.stop)
            self.run_ok("call", f"unix:{folder}/echo.sock", f"{ECHO}/Unary")
            self.run_ok("call", "-unix", f"{folder}/echo.sock", f"{ECHO}/Unary")
            self.assertIn(ECHO, self.run_ok("list", f"unix:{folder}/echo.sock"))

    def test_tls_under_both_names(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make certificates with")
        made = certificates.made()
        peer = echo_server("127.0.0.1:0", made.pem("server"), made.key("server"))
        self.addCleanup(peer.stop)
        port = peer.address.rsplit(":", 1)[1]
        address = f"localhost:{port}"
        for flags in (("--tls-ca", made.pem("root")), ("-cacert", made.pem("root")),
                      ("--insecure",), ("-k",),
                      ("-cacert", made.pem("root"), "-servername", "localhost")):
            self.assertIn(ECHO, self.run_ok("list", address, *flags))
            self.assertIn("rpc Unary", self.run_ok("describe", address, ECHO, *flags))
            self.run_ok("call", address, f"{ECHO}/Unary", *flags)
        self.fails(64 + 14, "call", address, f"{ECHO}/Unary", "--tls-ca", made.pem("people"))
        self.fails(64 + 14, "call", address, f"{ECHO}/Unary", "-cacert", made.pem("root"),
                   "-servername", "example.org")
        self.assertIn("exclude each other", self.fails(
            1, "call", address, f"{ECHO}/Unary", "--plaintext", "--insecure"))


class ServeWithTLS(Tools):
    def test_every_command_knows_the_same_flags(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl to make certificates with")
        made = certificates.made()
        server = harness.Server("--cert", made.pem("server"), "--key", made.key("server"),
                                "--cacert", made.pem("people"))
        self.addCleanup(server.close)
        address = server.address.replace("127.0.0.1", "localhost")
        shown = ("--cert", made.pem("ana"), "--key", made.key("ana"))
        check = "grpc.health.v1.Health/Check"
        for flags in (("--cacert", made.pem("root"), *shown), ("-k", *shown),
                      ("--tls-ca", made.pem("root"), "--tls-cert", made.pem("ana"),
                       "--tls-key", made.key("ana"), "--tls-server-name", "localhost")):
            self.assertIn("grpc.health.v1.Health", self.run_ok("list", address, *flags))
            self.assertIn("rpc Check(", self.run_ok("describe", address, check.split("/")[0], *flags))
            self.run_ok("call", address, check, *flags)
            self.run_ok("bench", address, check, "-n", "5", *flags)
            self.assertIn("version", self.run_ok(
                "console", "--server", address, "--json", "-c", "server", *flags).lower())
        # The client has no certificate.
        self.fails(64 + 14, "call", address, check, "-k")


class Bench(Tools):
    def bench(self, *arguments: str) -> str:
        return self.run_ok("bench", self.peer.address, *arguments)

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = f"{folder}/plot.svg"
            report = json.loads(self.bench(
                f"{ECHO}/Unary", "-n", "200", "-c", "4", "--connections", "2", "--warm-up", "20",
                "-d", '{"payload":"AQID"}', "-O", "json", "--svg", plot))
            self.assertEqual((report["calls"], report["statuses"]), (200, {"OK": 200}))
            self.assertEqual((report["sentBytes"], report["receivedMessages"]), (1000, 200))
            latency = report["latencyMicroseconds"]
            rising = [latency[name] for name in ("min", "p50", "p90", "p99", "max")]
            self.assertEqual(rising, sorted(rising))
            self.assertLess(0, latency["min"])
            self.assertEqual(sum(step["count"] for step in report["histogram"]), 200)
            self.assertAlmostEqual(report["callsPerSecond"], 200 / report["seconds"], places=3)
            drawing = xml.etree.ElementTree.parse(plot).getroot()
            self.assertEqual(drawing.tag, "{http://www.w3.org/2000/svg}svg")
            bars = drawing.findall("{http://www.w3.org/2000/svg}rect/{http://www.w3.org/2000/svg}title")
            self.assertEqual(sum(int(bar.text.rsplit(": ")[-1]) for bar in bars), 200)

    def test_rate(self):
        report = json.loads(self.bench(
            f"{ECHO}/Unary", "--rps", "100", "-z", "1", "-c", "10", "-O", "json"))
        self.assertEqual(report["calls"], 100)
        self.assertGreaterEqual(report["seconds"], 0.99)

    def interrupted(self, *arguments):
        """The report of a measurement that Ctrl-C ends as soon as it listens to it."""
        process = subprocess.Popen(
            [harness.program(), "bench", self.peer.address, f"{ECHO}/Unary", "-c", "2", "-O", "json",
             *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        status = Path(f"/proc/{process.pid}/status")
        deadline = time.monotonic() + LIMIT
        while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) & 1 << signal.SIGINT - 1:
            self.assertLess(time.monotonic(), deadline)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, error)
        return json.loads(out)

    def test_ctrl_c_reports_what_there_is(self):
        self.assertEqual(set(self.interrupted("-z", "600")["statuses"]) - {"OK"}, set())

    def test_ctrl_c_before_the_first_counted_call_reports_none(self):
        report = self.interrupted("-n", "10", "--warm-up", "1000000000")
        self.assertEqual((report["calls"], report["statuses"]), (0, {}))

    def test_many_messages_on_one_stream(self):
        answer = self.run_ok(
            "call", self.peer.address, f"{ECHO}/ClientStream", "-d", "@", stdin="{}" * 20_000)
        self.assertEqual(json.loads(answer)["requestCount"], 20_000)

    def test_text_and_errors(self):
        ended = harness.run("bench", self.peer.address, f"{ECHO}/ServerStream", "-n", "20", "-d",
                            '{"responseCount": 3, "failure": {"code": 8, "message": "enough"}}')
        self.assertEqual(ended.returncode, 64 + 8, ended.stderr)
        self.assertIn("RESOURCE_EXHAUSTED", ended.stdout)
        self.assertIn("20: enough", ended.stdout)


if __name__ == "__main__":
    unittest.main()
