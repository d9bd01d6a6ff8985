"""The flags of grpcurl and `buf curl`, each by its own name and to its own effect."""

import base64
import json
import re
import tempfile
import unittest
from pathlib import Path

import certificates
import harness
import stubs
from google.protobuf import descriptor_pb2
import grpc_tools
from grpc_tools import protoc
from test_tools import ECHO, HERE, Tools, echo_server

PAGE = stubs.TOP / "Sources/VencejoRPC/VencejoRPC.docc/Tools.md"
# Those of which a command knows nothing, as they are another command's.
ELSEWHERE = {"-msg-template": "describe", "--list-services": "list", "--list-methods": "list"}
VALUES = {
    "-format": "json", "-max-time": "5", "--timeout": "5s", "-connect-timeout": "5",
    "--connect-timeout": "5", "-max-msg-sz": "1000", "-keepalive-time": "20",
    "--keepalive-time": "20", "-H": "a: b", "--header": "a: b", "-rpc-header": "a: b",
    "-reflect-header": "a: b", "--reflect-header": "a: b", "--protocol": "grpc",
    "--reflect-protocol": "grpc-v1", "-d": "{}", "--data": "{}", "-user-agent": "x",
    "--user-agent": "x", "-A": "x", "--output": "/dev/null", "-o": "/dev/null", "--user": "a:b",
    "-u": "a:b", "--netrc-file": "x", "-authority": "x", "--unix-socket": "x", "-cacert": "x",
    "--cacert": "x", "-cert": "x", "--cert": "x", "-E": "x", "-key": "x", "--key": "x",
    "-servername": "x", "--servername": "x", "-proto": "x", "-import-path": "x",
    "-protoset": "x", "--schema": "x", "-protoset-out": "x", "-proto-out-dir": "x",
}


class Names(Tools):
    def test_every_flag_of_the_table_is_understood(self):
        rows = re.findall(r"^\|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|[^|\n]*\|$",
                          PAGE.read_text(), re.M)
        flags = [flag for row in rows for cell in row[1:] for flag in re.findall(r"`(-[^`]+)`", cell)]
        self.assertGreater(len(flags), 60)
        for flag in flags:
            command = ELSEWHERE.get(flag, "call")
            value = [VALUES[flag]] if flag in VALUES else []
            self.assertIn("usage: vencejo " + command,
                          self.run_ok(command, flag, *value, "--help"), flag)
            if not value:  # As Go's programs have it.
                self.run_ok(command, f"{flag}=true", "--help")


class Effects(Tools):
    def answer(self, *arguments: str, **options):
        return json.loads(self.run_ok("call", self.peer.address, f"{ECHO}/Unary", *arguments, **options))

    def test_data_and_headers_from_files(self):
        with tempfile.TemporaryDirectory() as folder:
            data, headers = Path(folder, "data"), Path(folder, "headers")
            data.write_text('{"payload": "aG9sYQ=="}')
            headers.write_text("x-initial-a: one\n\nx-trailing-b: two\n")
            self.assertEqual(self.answer("-d", f"@{data}")["payload"], "aG9sYQ==")
            self.assertEqual(self.answer("-d", "@-", stdin=data.read_text())["payload"], "aG9sYQ==")
            ended = harness.run("call", self.peer.address, f"{ECHO}/Unary", "-v", "-H", f"@{headers}")
            self.assertRegex(ended.stderr, r"initial metadata:(.|\n)*x-initial-a: one")
            self.assertRegex(ended.stderr, r"trailers:(.|\n)*x-trailing-b: two")
            self.assertIn("No such file", self.fails(
                1, "call", self.peer.address, f"{ECHO}/Unary", "-d", "@/none/such"))

    def test_netrc(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, ".netrc").write_text(
                "# a comment\nmachine example.org login no password no\n"
                "macdef init\nmachine 127.0.0.1 login macro password macro\n\n"
                "machine 127.0.0.1\n  login ana\n  password s3cret\ndefault login any password one\n")
            sent = "authorization: Basic " + base64.b64encode(b"ana:s3cret").decode()
            for flags in (("-n",), ("--netrc",), ("--netrc-file", f"{folder}/.netrc")):
                ended = harness.run("call", self.peer.address, f"{ECHO}/Unary", "-v", *flags,
                                    env={"HOME": folder})
                self.assertIn(sent, ended.stderr)
            # What is said by hand goes first.
            ended = harness.run("call", self.peer.address, f"{ECHO}/Unary", "-v", "-n", "-u", "x:y",
                                env={"HOME": folder})
            self.assertIn("Basic " + base64.b64encode(b"x:y").decode(), ended.stderr)
            Path(folder, ".netrc").write_text("machine example.org login a password b\n")
            self.assertIn("no entry for 127.0.0.1", self.fails(
                1, "call", self.peer.address, f"{ECHO}/Unary", "-n", env={"HOME": folder}))

    def test_urls(self):
        self.run_ok("call", f"http://{self.peer.address}/{ECHO}/Unary", "--protocol", "grpc")
        self.assertIn(ECHO, self.run_ok("list", f"http://{self.peer.address}"))
        self.assertIn("nothing else is spoken", self.fails(
            1, "call", self.peer.address, f"{ECHO}/Unary", "--protocol", "connect"))
        made = certificates.made()
        peer = echo_server("127.0.0.1:0", made.pem("server"), made.key("server"))
        self.addCleanup(peer.stop)
        address = peer.address.replace("127.0.0.1", "localhost")
        self.run_ok("call", f"https://{address}/{ECHO}/Unary", "--cacert", made.pem("root"))
        # Its issuer is none of the system's.
        self.fails(64 + 14, "call", f"https://{address}/{ECHO}/Unary")

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = echo_server(f"unix:{folder}/s")
            self.addCleanup(peer.stop)
            self.run_ok("call", "example.org:80", f"{ECHO}/Unary", "--unix-socket", f"{folder}/s")

    def test_reflection(self):
        for version in ("grpc-v1alpha",):  # grpcio's
            self.assertIn(ECHO, self.run_ok("list", self.peer.address, "--reflect-protocol", version))
        self.fails(64 + 12, "list", self.peer.address, "--reflect-protocol", "grpc-v1")
        self.assertIn(f"{ECHO}/Unary", self.run_ok("list", self.peer.address, "--list-methods").split())
        # Files for what reflection does not know, and the other way round.
        proto = ("--proto", "vencejo/auth/v1/auth.proto", "-I", str(stubs.PROTOS))
        self.run_ok("call", self.peer.address, f"{ECHO}/Unary", "-use-reflection", *proto)
        self.assertIn("message vencejo.auth.v1.SignInRequest", self.run_ok(
            "describe", "-use-reflection", *proto, self.peer.address, "vencejo.auth.v1.SignInRequest"))

    def test_times(self):
        slow = ("-d", '{"delayMilliseconds": 20000}')
        for flag, value in (("-max-time", "0.2"), ("--timeout", "200ms"), ("--timeout", "0.01m")):
            self.assertIn("DEADLINE_EXCEEDED", self.fails(
                64 + 4, "call", self.peer.address, f"{ECHO}/Unary", *slow, flag, value))
        self.fails(1, "call", self.peer.address, f"{ECHO}/Unary", "--timeout", "soon")


class ProtoFiles(Tools):
    """What protoc makes of the files that are written is what they were written from."""

    def compiled(self, folder: str, roots, files) -> bytes:
        out = f"{folder}/set.pb"
        code = protoc.main(["protoc", *(f"-I{root}" for root in roots), "--include_imports",
                            f"--descriptor_set_out={out}", *files])
        self.assertEqual(code, 0, files)
        return Path(out).read_bytes()

    def round_trip(self, roots, files):
        with tempfile.TemporaryDirectory() as folder:
            well_known = Path(grpc_tools.__file__).parent / "_proto"
            before = self.compiled(folder, [*roots, well_known], files)
            self.run_ok("describe", "--protoset", f"{folder}/set.pb", "--proto-out-dir", f"{folder}/out")
            after = self.compiled(folder, [f"{folder}/out"], files)
            left, right = (
                {file.name: self.ordered(file) for file in
                 descriptor_pb2.FileDescriptorSet.FromString(one).file}
                for one in (before, after))
            self.assertEqual(left.keys(), right.keys())
            for name, file in left.items():
                self.assertEqual(file, right[name], Path(folder, "out", name).read_text())
            return left

    def ordered(self, scope):
        """What is declared in another order is the same."""
        for name in ("message_type", "nested_type", "enum_type", "extension"):
            if name in scope.DESCRIPTOR.fields_by_name:
                getattr(scope, name).sort(key=lambda one: one.name)
        for name in ("message_type", "nested_type"):
            for inner in getattr(scope, name, ()):
                self.ordered(inner)
        return scope

    def below(self, root: Path, pattern: str) -> list:
        return sorted(str(path.relative_to(root)) for path in root.glob(pattern))

    def test_ours(self):
        self.round_trip([stubs.PROTOS], self.below(stubs.PROTOS, "**/*.proto"))
        self.round_trip([HERE], ["interop.proto"])

    def test_every_feature(self):
        """proto2 with groups, extensions and defaults, proto3, editions."""
        root = stubs.TOP / "Tests/Protos"
        self.round_trip([root], self.below(root, "**/*.proto"))

    def test_custom_options(self):
        import google.rpc
        root = Path(google.rpc.__path__[0]).parent.parent
        files = ["google/api/annotations.proto", "google/api/client.proto", "google/api/field_info.proto",
                 "google/longrunning/operations.proto", "google/rpc/error_details.proto",
                 "google/type/money.proto", "google/logging/type/http_request.proto"]
        self.round_trip([root], [file for file in files if (root / file).exists()])

    def test_by_reflection(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_ok("call", self.peer.address, f"{ECHO}/Unary", "-proto-out-dir", folder)
            self.assertEqual(self.below(Path(folder), "**/*.proto"),
                             ["google/protobuf/any.proto", "interop.proto"])
            self.run_ok("list", self.peer.address, ECHO, "-proto-out-dir", folder,
                        "-protoset-out", f"{folder}/set")
            self.assertEqual(self.run_ok("list", "--proto", "interop.proto", "-I", folder),
                             self.run_ok("list", "--protoset", f"{folder}/set"))

    def test_a_name_that_leads_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("../out.proto", "/out.proto", "a/../../out.proto", "a//b.proto", ""):
                files = descriptor_pb2.FileDescriptorSet()
                files.file.add(name=name, syntax="proto3").service.add(name="S")
                Path(folder, "set").write_bytes(files.SerializeToString())
                self.assertIn("is not written", self.fails(
                    1, "list", "--protoset", f"{folder}/set", "--proto-out-dir", f"{folder}/in"))
            self.assertEqual([path.name for path in Path(folder).glob("**/*.proto")], [])


if __name__ == "__main__":
    unittest.main()
