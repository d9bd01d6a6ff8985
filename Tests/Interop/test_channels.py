"""Names, balancing, limits and ages between gRPC's Python and ours."""

import os
import subprocess
import sys
import unittest

import grpc

import harness
import interop_pb2
import interop_pb2_grpc
from test_echo import HERE, drive, swift_program

ROUND_ROBIN = '"loadBalancingConfig": [{ "round_robin": {} }]'


class TargetsToPython(unittest.TestCase):
    """Our client against grpcio's server, by every kind of target."""

    @classmethod
    def setUpClass(cls):
        cls.peer = harness.Peer([sys.executable, str(HERE / "echo_server.py")])
        cls.addClassCleanup(cls.peer.stop)
        cls.address = cls.peer.address
        cls.port = cls.address.rsplit(":", 1)[1]

    def check(self, target: str, *arguments: str) -> None:
        drive(self, [swift_program(), "check", target, *arguments])

    def test_dns(self):
        self.check(f"dns:///localhost:{self.port}")

    def test_a_list_of_which_one_answers(self):
        self.check(f"ipv4:127.0.0.1:1,{self.address}")

    def test_round_robin(self):
        self.check(f"ipv4:{self.address}", "--service-config", f"{{ {ROUND_ROBIN} }}")

    def test_health(self):
        """Its health service says SERVING of this name, and SERVICE_UNKNOWN of another."""
        health = '"healthCheckConfig": {{ "serviceName": "{}" }}'
        well = health.format("vencejo.interop.v1.Echo")
        self.check(f"ipv4:{self.address}", "--service-config", f"{{ {ROUND_ROBIN}, {well} }}")
        ill = health.format("no.such.Service")
        command = [swift_program(), "check", f"ipv4:{self.address}", "--service-config",
                   f"{{ {ROUND_ROBIN}, {ill} }}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as checks:
            self.addCleanup(checks.kill)
            first = checks.stdout.readline()
            # Some of the checks wait for what will not come.
            checks.kill()
        self.assertRegex(first, "FAILED +unary.*not serving")


class Swift(unittest.TestCase):
    """grpcio's client against our server."""

    def serve(self, address: str, *arguments: str) -> str:
        peer = harness.Peer([swift_program(), "serve", address, *arguments])
        self.addCleanup(peer.stop)
        return peer.address

    def stub(self, address: str, *options) -> interop_pb2_grpc.EchoStub:
        channel = harness.channel(address, *options)
        self.addCleanup(channel.close)
        return interop_pb2_grpc.EchoStub(channel)

    def test_abstract_unix_socket(self):
        address = self.serve(f"unix-abstract:vencejo-interop-{os.getpid()}")
        answer = self.stub(address).Unary(interop_pb2.EchoRequest(payload=b"a"), timeout=10)
        self.assertEqual(answer.payload, b"a")

    def test_connections_that_age_lose_no_call(self):
        # Not the tests' usual channel: without retries grpcio gives up calls that a GOAWAY meets
        # before they left.
        channel = grpc.insecure_channel(self.serve("127.0.0.1:0", "--max-age", "20"))
        self.addCleanup(channel.close)
        stub = interop_pb2_grpc.EchoStub(channel)
        for number in range(1500):
            answer = stub.Unary(interop_pb2.EchoRequest(payload=b"%d" % number), timeout=10)
            self.assertEqual(answer.payload, b"%d" % number)

    def beyond_the_limit(self, *arguments: str) -> grpc.StatusCode:
        stub = self.stub(self.serve("127.0.0.1:0", "--max-calls", "1", *arguments))
        held = stub.Hold(interop_pb2.HoldRequest(key="one"), timeout=30)
        next(held)
        with self.assertRaises(grpc.RpcError) as caught:
            stub.Unary(interop_pb2.EchoRequest(), timeout=10)
        held.cancel()
        return caught.exception.code()

    def test_calls_beyond_the_limit(self):
        self.assertEqual(self.beyond_the_limit(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_calls_beyond_the_limit_refused(self):
        self.assertEqual(self.beyond_the_limit("--refuse"), grpc.StatusCode.UNAVAILABLE)

    def test_retries_of_a_refused_call_succeed_later(self):
        """Refused calls were seen by nobody: grpcio makes them again by itself."""
        address = self.serve("127.0.0.1:0", "--max-calls", "1", "--refuse")
        # Not the tests' usual channel, on which retries are off.
        channel = grpc.insecure_channel(address, options=[
            ("grpc.service_config", '{"methodConfig": [{"name": [{}], "retryPolicy": {'
             '"maxAttempts": 5, "initialBackoff": "0.2s", "maxBackoff": "1s",'
             '"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}')])
        self.addCleanup(channel.close)
        stub = interop_pb2_grpc.EchoStub(channel)
        held = stub.Hold(interop_pb2.HoldRequest(key="one"), timeout=30)
        next(held)
        later = stub.Unary.future(interop_pb2.EchoRequest(payload=b"b"), timeout=30)
        held.cancel()
        self.assertEqual(later.result().payload, b"b")


if __name__ == "__main__":
    unittest.main()
