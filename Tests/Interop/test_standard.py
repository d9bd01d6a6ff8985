"""Health and reflection, as other people's tools ask for them."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

import certificates
import harness
from base import ServerCase
from harness import IN_CI, LIMIT, PASSWORD

SERVICES = {
    "vencejo.auth.v1.AuthService", "vencejo.chat.v1.ChatService",
    "vencejo.record.v1.RecordService", "grpc.health.v1.Health",
}
Code = grpc.StatusCode


class Health(ServerCase):
    def setUp(self):
        self.channel = harness.channel(self.server.address)
        self.addCleanup(self.channel.close)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def test_check(self):
        for service in ("", "vencejo.chat.v1.ChatService"):
            answer = self.health.Check(
                health_pb2.HealthCheckRequest(service=service), timeout=LIMIT, wait_for_ready=True)
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING, service)
        with self.assertRaises(grpc.RpcError) as caught:
            self.health.Check(health_pb2.HealthCheckRequest(service="none"), timeout=LIMIT)
        self.assertEqual(caught.exception.code(), Code.NOT_FOUND)

    def test_watch_tells_at_once_and_of_unknown_services(self):
        for service, status in (
            ("", health_pb2.HealthCheckResponse.SERVING),
            ("none", health_pb2.HealthCheckResponse.SERVICE_UNKNOWN),
        ):
            watch = self.health.Watch(
                health_pb2.HealthCheckRequest(service=service), timeout=LIMIT)
            self.assertEqual(next(watch).status, status)
            watch.cancel()

    def test_list(self):
        if not hasattr(self.health, "List"):
            self.skipTest("this grpcio-health-checking has no List yet")
        listed = self.health.List(health_pb2.HealthListRequest(), timeout=LIMIT).statuses
        self.assertIn("vencejo.chat.v1.ChatService", listed)
        self.assertTrue(all(item.status == health_pb2.HealthCheckResponse.SERVING
                            for item in listed.values()))


class Reflection(ServerCase):
    def setUp(self):
        self.channel = harness.channel(self.server.address)
        self.addCleanup(self.channel.close)

    def test_v1alpha_with_grpcios_client(self):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = set(database.get_services())
        self.assertLessEqual(SERVICES, services)
        pool = DescriptorPool(database)
        chat = pool.FindServiceByName("vencejo.chat.v1.ChatService")
        self.assertTrue(chat.FindMethodByName("Subscribe").server_streaming)
        value = pool.FindMessageTypeByName("vencejo.record.v1.Value")
        self.assertIn("string_value", value.fields_by_name)
        for service in SERVICES:
            pool.FindServiceByName(service)

    def test_v1(self):
        # The same messages under another name: grpcio has no package for it.
        call = self.channel.stream_stream(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString)
        Ask = reflection_pb2.ServerReflectionRequest
        asked = [
            Ask(list_services=""), Ask(file_containing_symbol="vencejo.chat.v1.Chat"),
            Ask(file_containing_symbol="no.Such"), Ask(file_by_filename="google/protobuf/any.proto"),
            Ask(file_by_filename="none.proto"),
            Ask(file_containing_symbol="vencejo.chat.v1.ChatService.SendMessage"),
        ]
        services, chat, missing, well_known, no_file, method = call(iter(asked), timeout=LIMIT)
        self.assertLessEqual(SERVICES, {s.name for s in services.list_services_response.service})
        for answer in (chat, method):
            files = [descriptor_pb2.FileDescriptorProto.FromString(raw)
                     for raw in answer.file_descriptor_response.file_descriptor_proto]
            self.assertIn("vencejo.chat.v1", [file.package for file in files])
        self.assertTrue(well_known.file_descriptor_response.file_descriptor_proto)
        for answer in (missing, no_file):
            self.assertEqual(answer.error_response.error_code, Code.NOT_FOUND.value[0])

    def test_descriptors_are_those_of_the_files(self):
        database = ProtoReflectionDescriptorDatabase(self.channel)
        from vencejo.chat.v1 import chat_pb2

        mine = descriptor_pb2.FileDescriptorProto.FromString(chat_pb2.DESCRIPTOR.serialized_pb)
        theirs = database.FindFileContainingSymbol("vencejo.chat.v1.ChatService")
        # protoc tells plugins the JSON names too, and Python's own forgets them.
        def forget(messages) -> None:
            for message in messages:
                for field in message.field:
                    field.ClearField("json_name")
                forget(message.nested_type)

        forget(theirs.message_type)
        self.assertEqual(theirs, mine)


class Tools(ServerCase):
    """`vencejo call`, `vencejo list` and `buf curl`, on our server and on grpcio's."""

    def json_of(self, ended) -> dict:
        self.assertEqual(ended.returncode, 0, ended.stderr + ended.stdout)
        return json.loads(ended.stdout)

    def test_list(self):
        ended = harness.run("list", self.server.address)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for service in SERVICES:
            self.assertIn(service, ended.stdout)

    def test_call(self):
        info = self.json_of(harness.run(
            "call", self.server.address, "vencejo.auth.v1.AuthService/GetServerInfo"))
        self.assertIn("vencejo.chat.v1", info["packages"])
        self.assertRegex(info["serverTime"], r"^20\d\d-.*Z$")
        signed_up = self.json_of(harness.run(
            "call", self.server.address, "vencejo.auth.v1.AuthService/SignUp", "-d",
            json.dumps({"handle": "caller", "password": PASSWORD, "displayName": "ñ"})))
        token = signed_up["tokens"]["accessToken"]
        me = self.json_of(harness.run(
            "call", self.server.address, "vencejo.auth.v1.AuthService/GetUser",
            "-d", '{"name": "users/me"}', "-H", f"authorization: Bearer {token}"))
        self.assertEqual(me["user"]["handle"], "caller")

    def test_call_tells_the_status(self):
        ended = harness.run("call", self.server.address, "vencejo.auth.v1.AuthService/GetUser",
                            "-d", '{"name": "users/me"}')
        self.assertEqual(ended.returncode, 64 + Code.UNAUTHENTICATED.value[0])
        self.assertEqual(ended.stdout, "")
        self.assertIn("UNAUTHENTICATED", ended.stderr.upper())

    def test_call_and_list_on_grpcio(self):
        peer = harness.Peer([sys.executable, str(Path(__file__).parent / "echo_server.py")])
        self.addCleanup(peer.stop)
        self.assertIn("vencejo.interop.v1.Echo", harness.run("list", peer.address).stdout)
        answer = self.json_of(harness.run(
            "call", peer.address, "vencejo.interop.v1.Echo/Unary", "-d", '{"payload": "aG9sYQ=="}'))
        self.assertEqual(answer["payload"], "aG9sYQ==")
        ended = harness.run("call", peer.address, "vencejo.interop.v1.Echo/ServerStream", "-d",
                            '{"payload": "aG9sYQ==", "responseCount": 3}')
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stdout.count("aG9sYQ=="), 3)

    def test_buf_curl(self):
        buf = Path(sys.executable).parent / "buf"
        if not buf.exists():
            buf = shutil.which("buf")
        if not buf:
            self.skipTest("no buf (it comes with --ci)")
        curl = lambda *arguments: subprocess.run(
            [str(buf), "curl", "--protocol", "grpc", "--http2-prior-knowledge", *arguments],
            capture_output=True, text=True, timeout=60)
        url = f"http://{self.server.address}"
        for protocol in ("grpc-v1", "grpc-v1alpha"):
            listed = curl("--reflect-protocol", protocol, "--list-methods", url)
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertIn("vencejo.chat.v1.ChatService/SendMessage", listed.stdout)
            info = self.json_of(curl(
                "--reflect-protocol", protocol,
                f"{url}/vencejo.auth.v1.AuthService/GetServerInfo"))
            self.assertIn("vencejo.chat.v1", info["packages"])
        # An error's details, as another implementation reads them.
        refused = curl(f"{url}/vencejo.chat.v1.ChatService/ListChats")
        self.assertNotEqual(refused.returncode, 0)
        self.assertEqual(json.loads(refused.stderr)["code"], "unauthenticated")
        # The same with TLS.
        made = certificates.made()
        server = harness.Server("--tls-cert", made.pem("server"), "--tls-key", made.key("server"))
        self.addCleanup(server.close)
        url = "https://" + server.address.replace("127.0.0.1", "localhost")
        info = self.json_of(curl(
            "--cacert", made.pem("root"), f"{url}/vencejo.auth.v1.AuthService/GetServerInfo"))
        self.assertIn("vencejo.chat.v1", info["packages"])


if __name__ == "__main__":
    unittest.main()
